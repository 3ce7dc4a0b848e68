"""What people read of the keys is made from their declarations."""

from __future__ import annotations

from pathlib import Path

from bridge.limits.documents import markdown, with_example
from bridge.limits.keys import KEYS
from bridge.limits.kinds import Known
from bridge.limits.reading import read

ROOT = Path(__file__).parents[3]
ANEW = "python -m bridge.limits.documents"


def test_the_page_says_what_the_declarations_say() -> None:
    assert (ROOT / "docs" / "limits.md").read_text("utf-8") == markdown(), ANEW


def test_the_example_says_what_the_declarations_say() -> None:
    text = (ROOT / "config.example.yaml").read_text("utf-8")
    assert text == with_example(text), ANEW


def test_the_examples_are_understood() -> None:
    text = "\n".join(f"{key.name}: {key.example}" for key in KEYS)
    reading = read(text.encode(), Known())
    assert not reading.faults
    assert len(reading.values) == len(KEYS)
