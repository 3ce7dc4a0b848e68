"""Texts of a given form in the settings of channels."""

from __future__ import annotations

import re

from pydantic import AfterValidator


def form(pattern: str, words: str) -> AfterValidator:
    """The whole text is of this form; else `words` say what it must be. They repeat no value."""
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise ValueError(words)
        return text

    return AfterValidator(check)


URL = form(r"https?://[^\s/]+\S*", "must begin with http:// or https:// and be without spaces")
