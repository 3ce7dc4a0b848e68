"""What `/limits` shows: what is used, and the values that hold."""

from __future__ import annotations

from datetime import UTC, datetime

from bridge.limits.caps import MINUTE, windows_of
from bridge.limits.keys import KEYS, QUESTIONS_PER_DAY
from bridge.limits.policies import ChatPolicies, places_of, zone_of
from bridge.limits.policy import BUILT_IN, Policy
from bridge.limits.reading import line_of
from bridge.limits.showing import use_of, value_of
from bridge.texts import Say
from channels.base import Address
from memory.inbox import Inbox
from memory.usage import UsageStore


class Overview:
    """Of one chat, for one person."""

    def __init__(self, policies: ChatPolicies, usage: UsageStore, inbox: Inbox) -> None:
        self._policies = policies
        self._usage = usage
        self._inbox = inbox

    async def of(self, address: Address, person: str, say: Say) -> str:
        """Use against the limits, what is set, and the faults of the chat's files."""
        policy = self._policies.of(address, person)
        lines = [say("limits"), *await self._used(address, person, policy, say)]
        values = [value_of(key, policy, say) for key in KEYS if policy.origin(key) != BUILT_IN]
        if values:
            lines += ["", *values]
        faults = [
            f"- {line_of(fault, say)}"
            for one in places_of(address)
            for fault in self._policies.files.state(one).pending
        ]
        if faults:
            lines += ["", say("limits_pending"), *faults]
        return "\n".join(lines)

    async def _used(self, address: Address, person: str, policy: Policy, say: Say) -> list[str]:
        place = (address.channel, address.account, address.chat)
        used = await self._usage.used(place, person, zone_of(policy))
        lines = use_of(policy, used, say, private=address.private)
        per_day = policy[QUESTIONS_PER_DAY]
        if per_day is not None:
            window = windows_of(policy, datetime.now(UTC) + MINUTE, used.day)[-1]
            asked = await self._inbox.questions(place, person, window)
            lines.append(say("limits_questions", used=asked, limit=per_day))
        return lines
