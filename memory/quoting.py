"""How a question marks what is not its writer's own: quotes and attached files. Pure."""

from __future__ import annotations

import re
from typing import Final

QUOTED: Final = "[In reply to this message, which is not mine:]"
"""Stands before a quote in a question; each of its lines begins with `> `."""
ATTACHED: Final = "[The attached file "
"""Begins the block of an attached file."""
QUOTE: Final = re.compile(rf"{re.escape(QUOTED)}\n(?:>[^\n]*(?:\n|$))*")
"""A quote with its mark."""
