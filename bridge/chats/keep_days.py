"""`keep_days`: chats that keep less than the operator's configuration would, cleaned by the clock."""

from __future__ import annotations

from datetime import datetime, timedelta

from bridge.limits.keys import KEEP_DAYS
from bridge.limits.policies import ChatPolicies
from bridge.session import memory_scope
from bridge.sharing import Sharing
from channels.base import Address
from memory.chats.chat_retention import ChatRetention
from memory.chats.reach import ChatPlace


async def clean_chats(
    policies: ChatPolicies, retention: ChatRetention, sharing: Sharing, now: datetime
) -> int:
    """Each chat by its own days, and a memory that several share by the fewest days of one of them; how
    many runs and files. Raises `OSError`, `StoreError`."""
    deleted = 0
    for place in await retention.chats():
        address = _address(place, private=False)
        await policies.read(address)
        days = policies.of(address, "")[KEEP_DAYS]
        if days is not None:
            scopes = {memory_scope(_address(place, private=private)) for private in (True, False)}
            scopes.add(sharing.scope(address))
            deleted += await retention.clean(place, sorted(scopes), now - timedelta(days=days))
    if deleted:
        await retention.scrub()
    return deleted


def _address(place: ChatPlace, *, private: bool) -> Address:
    return Address(place.channel, place.account, place.chat, None, private)
