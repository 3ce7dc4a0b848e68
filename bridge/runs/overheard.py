"""What is said in a group and not to the bot: answered, kept in mind for a while, or nothing at all.

It is kept in memory only, as many messages as the chat has set (none without a setting), and shown
to the model with the next questions as what others said. It is never part of the stored question.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from bridge.access import Access
from bridge.limits.keys import ANSWER_WHEN, BLOCKED, CONTEXT_MESSAGES, PAUSED
from bridge.limits.policy import Policy
from bridge.limits.times import is_blocked, is_paused
from bridge.speakers import plain_name
from channels.base import InboundMessage

HEARD: Final = "[Said in this chat shortly before, by others and not to me:]"
KEPT_FOR: Final = timedelta(hours=12)  # what is older is not what a question is about
MOST_CHARACTERS = 1_000  # of one message
MOST_PLACES = 1_000  # chats, topics and threads that are kept in mind

_Place = tuple[str, str, str, str | None]


@dataclass(frozen=True, slots=True)
class _Said:
    at: datetime
    person: str
    line: str


class Overheard:
    """All chats' groups."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._said: OrderedDict[_Place, deque[_Said]] = OrderedDict()

    def is_asked(self, message: InboundMessage, policy: Policy) -> bool:
        """Whether a message that is not addressed to the bot is a question all the same; else it is
        kept in mind where the chat wants that."""
        if not _is_said(message) or not self._access.hears(message.address, message.sender):
            return False
        blocked = policy[BLOCKED]
        for at in (datetime.now(UTC), message.sent_at):  # it may have been missed, and be read late
            if is_paused(policy[PAUSED], at) or is_blocked(blocked, message.sender.id, at):
                return False
        if policy[ANSWER_WHEN] == "every_message" and message.own_words and _is_no_command(message):
            return True
        self._keep(message, policy[CONTEXT_MESSAGES])
        return False

    def before(self, message: InboundMessage, policy: Policy) -> str:
        """What was said before this question, as the model is shown it; blank where nothing was."""
        most, place = policy[CONTEXT_MESSAGES], _place_of(message)
        if not most or message.address.private:
            self._said.pop(place, None)
            return ""
        since = datetime.now(UTC) - KEPT_FOR
        said = [one for one in self._said.get(place, ()) if since < one.at <= message.sent_at]
        return "\n".join((HEARD, *(one.line for one in said[-most:]))) if said else ""

    def forget(self, channel: str, person: str) -> None:
        """Nothing that this person has said is kept in mind any more."""
        for place, said in self._said.items():
            if place[0] == channel and any(one.person == person for one in said):
                rest = [one for one in said if one.person != person]
                self._said[place] = deque(rest, maxlen=said.maxlen)

    def forget_chat(self, channel: str, account: str, chat: str) -> None:
        """Nothing that was said in this chat is."""
        for place in [known for known in self._said if known[:3] == (channel, account, chat)]:
            del self._said[place]

    def _keep(self, message: InboundMessage, most: int) -> None:
        place = _place_of(message)
        if not most:
            self._said.pop(place, None)
            return
        if not message.text.strip():
            return
        kept = deque(self._said.pop(place, ()), maxlen=most)
        kept.append(_Said(message.sent_at, message.sender.id, _line(message)))
        self._said[place] = kept
        while len(self._said) > MOST_PLACES:
            self._said.popitem(last=False)


def listens(policy: Policy) -> bool:
    """Whether anything that is not addressed to the bot matters in the chat."""
    return policy[ANSWER_WHEN] == "every_message" or policy[CONTEXT_MESSAGES] > 0


def _is_said(message: InboundMessage) -> bool:
    """Whether somebody wrote it to the group."""
    nobody = message.joined or message.left or message.joined_deaf or message.moved_from
    act = message.command or message.press or message.form or message.edited_command
    return not (nobody or act or message.address.private or message.unreadable) and bool(
        message.text.strip() or message.attachments
    )


def _is_no_command(message: InboundMessage) -> bool:
    """It may be another bot's."""
    return not message.text.lstrip().startswith("/")


def _place_of(message: InboundMessage) -> _Place:
    """A topic or thread; what opens a thread in Slack was said in the channel."""
    to = message.address
    thread = None if to.thread == message.message_id else to.thread
    return (to.channel, to.account, to.chat, thread)


def _line(message: InboundMessage) -> str:
    """Quoted line by line, so that no text can pretend to stand outside; its further lines stand
    deeper, so that none looks like the first of somebody else's."""
    first, *more = message.text.strip()[:MOST_CHARACTERS].splitlines()
    lines = [f"> {plain_name(message.sender.name)}: {first}", *(f"> > {line}" for line in more)]
    return "\n".join(lines)
