"""What people wrote, on an operator's terminal."""

from __future__ import annotations

import re

from bridge.cli.options import say

# Control characters, and those that reorder a line or break it: a message could otherwise change the
# terminal's title, colours or what stands above it.
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def say_safely(line: str) -> None:
    """A line that is safe for a terminal."""
    say(_UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), line))
