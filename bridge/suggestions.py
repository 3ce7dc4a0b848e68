"""What somebody may have meant who has written something else."""

from __future__ import annotations

import difflib
from collections.abc import Collection


def nearest(wrong: str, known: Collection[str]) -> str | None:
    """Which of `known` may be meant."""
    near = difflib.get_close_matches(wrong, known, n=1, cutoff=0.6)
    return near[0] if near else None


def suggestion(wrong: str, known: Collection[str]) -> str:
    """`, did you mean …?`, or nothing when none of `known` is near."""
    near = nearest(wrong, known)
    return f", did you mean {near}?" if near else ""
