"""Whose name a line holds: a word that somebody calls themselves is none."""

from __future__ import annotations

import pytest

from memory.text.own_names import is_common, stands_in


@pytest.mark.parametrize(
    ("name", "text", "stands"),
    [
        ("Dora", "Dora has a cat", True),
        ("Bo", "Ana owes Bo 100 euros", True),
        ("安娜", "安娜住在柏林", True),
        ("the", "the launch is on Friday", False),
        ("Friday", "the launch is on Friday", False),
        ("launch", "the launch is on Friday", False),
        ("Launch", "the Launch is near", False),
        ("4711", "the code is 4711", False),
        ("Dora", "Theodora has a cat", False),
    ],
)
def test_only_what_stands_as_a_name_is_one(name: str, text: str, stands: bool) -> None:
    assert (stands_in(name, text) and not is_common(name)) is stands
