"""What the texts of a reply of several parts end with."""

from __future__ import annotations

from collections.abc import Sequence


def unnumbered(texts: Sequence[str]) -> list[str]:
    """Without `\\n\\n2/4`, which each of several has; raises `AssertionError` where that is wrong."""
    if len(texts) < 2:
        return list(texts)
    ends = [f"\n\n{number}/{len(texts)}" for number in range(1, len(texts) + 1)]
    for text, end in zip(texts, ends, strict=True):
        assert text.endswith(end), (text[-20:], end)
    return [text.removesuffix(end) for text, end in zip(texts, ends, strict=True)]
