"""A heading goes with the last line below it, and with no other."""

from __future__ import annotations

import pytest

from memory.markdown.lines import left

DAY = """# my own title

## 10:00–11:00 UTC · conversation 1, messages 1–4

### Office
- **Eve** moves to Ulm [1]

### Bob's divorce
- **Bob** is getting divorced [3]

## 12:00–12:00 UTC · conversation 1, messages 5–6

- **Bob** has a boat [5]

## 13:00–13:00 UTC · conversation 1, messages 7–8
"""


@pytest.mark.parametrize(
    ("gone", "headings"),
    [
        ((), ("# my", "## 10", "### Office", "### Bob", "## 12", "## 13")),
        (("divorced",), ("# my", "## 10", "### Office", "## 12", "## 13")),
        (("Ulm", "divorced"), ("# my", "## 12", "## 13")),
        (("### Bob",), ("# my", "## 10", "### Office", "## 12", "## 13")),
        (("### Bob", "Ulm"), ("# my", "## 10", "## 12", "## 13")),
        (("Ulm", "divorced", "boat"), ("# my", "## 13")),
    ],
)
def test_a_heading_goes_with_the_last_line_below_it(
    gone: tuple[str, ...], headings: tuple[str, ...]
) -> None:
    kept = left(DAY.encode(), lambda line: any(word in line for word in gone)).decode()
    found = [line for line in kept.split("\n") if line.startswith("#")]
    assert [line.startswith(head) for line, head in zip(found, headings, strict=True)] == [
        True
    ] * len(headings)
    there = [line for line in DAY.split("\n") if line.startswith("-")]
    stays = [line for line in there if not any(word in line for word in gone)]
    assert [line for line in kept.split("\n") if line.startswith("-")] == stays


def test_what_stays_stays_to_the_byte() -> None:
    data = DAY.encode() + b"\xff\xfe broken\r\n\n\n"
    assert left(data, lambda line: False) == data
