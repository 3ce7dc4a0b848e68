"""Each chat is told once that nothing can be stored, and again when it happens again."""

from __future__ import annotations

from bridge.intake.store_trouble import StoreTrouble
from channels.testing import FakeChannel


def test_each_chat_is_told_once_until_it_is_over() -> None:
    trouble, channel = StoreTrouble(), FakeChannel()
    here, there = channel.message("a"), channel.message("b", chat="2")
    assert [trouble.first_in(message) for message in (here, here, there, here)] == [
        True,
        False,
        True,
        False,
    ]
    trouble.over()
    assert trouble.first_in(channel.message("c"))
