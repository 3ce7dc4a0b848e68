"""How a question marks who writes it, and what is not their own: quotes and attached files. Pure."""

from __future__ import annotations

import re
from typing import Final

QUOTED: Final = "[In reply to this message, which is not mine:]"
"""Stands before a quote in a question; each of its lines begins with `> `."""
ATTACHED: Final = "[The attached file "
"""Begins the block of an attached file."""
QUOTE: Final = re.compile(rf"{re.escape(QUOTED)}\n(?:>[^\n]*(?:\n|$))*")
"""A quote with its mark."""
SPEAKER: Final = re.compile(r"\[([^\[\]\n]{1,32})#([0-9]+)\](?: |\Z)")
"""In a group a question begins with its speaker: the name, and a number of the conversation. Nothing
follows where only a file was sent."""
