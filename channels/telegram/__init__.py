"""Telegram, on python-telegram-bot: long polling, private chats, groups, forum topics."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

# httpx imports its command line, if click and rich happen to be installed, and goes on without it if
# not. Nobody needs it here, and it is 80 modules and 4 MB.
sys.modules.setdefault("httpx._main", cast("ModuleType", None))
