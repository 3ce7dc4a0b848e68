"""How many conversations: 40 in `make test`, 10,000 in `make fuzz`."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fuzz", max_examples=2_500, deadline=None)  # of each of four parts
settings.register_profile("sample", max_examples=40, deadline=None)
