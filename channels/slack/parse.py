"""What Slack sends to `InboundMessage`: pure, and the only reader of Slack's shapes. Strings are whole.

What is nothing for the bot gives None: messages of bots, edits (but into a command), deletions,
hidden updates (an unfurled link, a new reply), others' joins, unknown kinds, and channel text that does
not mention the bot, but where that is to be overheard. A `message` and an `app_mention` about the same
text give the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from channels.base import Address, Command, InboundMessage, Press, Sender
from channels.messages import is_stop_word
from channels.slack.buttons import action_of
from channels.slack.manifest import COMMAND
from channels.slack.markup import mentioned, readable, without_mention
from channels.slack.media import files_of
from channels.slack.mention import is_command, with_command
from channels.slack.views import place_of, submission_of

CHANNEL: Final = "slack"

COMMANDS: Final = frozenset(
    {
        *("ask", "cancel", "compact", "context", "help", "new", "retry", "start", "status", "stop"),
        *("undo", "whoami", "resend", "limits", "memory", "remember", "forget"),
        *("privacy", "export", "private", "why"),
        *("approve", "invite", "people", "revoke"),
        *("pause", "resume", "block", "unblock", "model", "usage"),
    }
)
"""What the first word after `/galata` may name; any other text is a question."""

_ALONE: Final = frozenset({"private", "why"})
"""Words that questions begin with too: with more behind them they are one."""

_EDIT = "message_changed"
_COMING_AND_GOING = frozenset(
    {
        *("channel_left", "group_left", "member_joined_channel", "member_left_channel"),
        *("app_uninstalled", "tokens_revoked"),
    }
)
_READ_SUBTYPES = (None, "file_share", "thread_broadcast", "me_message")
_QUOTE_CHARACTERS = 1000
_EPHEMERAL = "ephemeral:"
_VIEW = "view:"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Person:
    """What users.info tells: `language` is a BCP 47 tag, `timezone` an IANA name."""

    name: str
    language: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Bot:
    """Ids of the workspace and of the bot in it."""

    team_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Asker:
    """Who used a slash command, or pressed a button that only they see: the answers go to that
    person alone. `trigger` names the use."""

    user: str
    trigger: str


def parse(
    body: Json, bot: Bot, people: Mapping[str, Person], *, now: datetime, overhear: bool = False
) -> InboundMessage | None:
    """What a person sent or did. `people` are those known by id (others appear with their id);
    `now` is the time of a press or command, which Slack does not tell. `overhear`: also what is not
    for us.

    Raises `KeyError`, `TypeError` or `ValueError` when the payload is not what Slack documents.
    """
    message = _parsed(body, bot, people, now)
    if message is not None and message.address.private:
        message = replace(message, sender=_with_zone(message.sender, people))
    return message if message is None or overhear or is_for_us(message) else None


def is_for_us(message: InboundMessage) -> bool:
    """What is addressed to the bot, tells of its own coming and going, or may be a stop in a
    thread, where Slack refuses commands."""
    if message.addressed or message.joined or message.left:
        return True
    in_thread = message.address.thread != message.message_id
    return message.own_words and in_thread and is_stop_word(message.text)


def _parsed(
    body: Json, bot: Bot, people: Mapping[str, Person], now: datetime
) -> InboundMessage | None:
    if "command" in body:
        return _command(body, bot, people, now)
    if body.get("type") == "event_callback":
        event: Json = body["event"]
        if event.get("type") in _COMING_AND_GOING:
            return _membership(event, bot, now)
        if event.get("subtype") == _EDIT:
            return _edit(event, bot, people)
        message = _message(event, bot, people)
        if message is None:
            return None
        return with_command(message, _seen_by_one(message.sender.id, message.message_id))
    if body.get("type") == "block_actions":
        return _press(body, bot, people, now)
    if body.get("type") == "view_submission":
        return _form(body, bot, people, now)
    return None


def from_history(message: Json, channel: str) -> Json | None:
    """The event that told of a message which was read from the history; None for one that was edited
    into a command."""
    edited = message.get("edited") is not None
    text = str(message.get("text") or "")
    if edited and (_is_command(text) or is_command(text)):
        return None
    plain = {key: value for key, value in message.items() if key != "edited"}
    event = plain | {"type": "message", "channel": channel}
    return {"type": "event_callback", "event": event}


def people_in(body: Json) -> tuple[str, ...]:
    """The ids of the people whose names the message needs, the sender first."""
    event = _inner(body)
    event = event["message"] if event.get("subtype") == _EDIT else event
    user = event.get("user") or event.get("user_id")
    sender = str(cast("Json", user).get("id") if isinstance(user, Mapping) else user)
    return tuple(dict.fromkeys((sender, *mentioned(str(event.get("text") or "")))))


def is_bare_mention(body: Json) -> bool:
    """Whether this is an `app_mention` that may lack the files of its text."""
    event = _inner(body)
    return event.get("type") == "app_mention" and not event.get("files")


def _inner(body: Json) -> Json:
    """The event; a command or press as a whole."""
    event = body.get("event")
    if body.get("type") != "event_callback" or not isinstance(event, Mapping):
        return body
    return cast("Json", event)


def asker(message_id: str | None) -> Asker | None:
    """Who used the slash command, or pressed the button of an answer to one, that has this
    `message_id`; None for all other messages."""
    if message_id is None or not message_id.startswith(_EPHEMERAL):
        return None
    user, _, trigger = message_id.removeprefix(_EPHEMERAL).partition(":")
    return Asker(user, trigger)


def _message(
    event: Json, bot: Bot, people: Mapping[str, Person], *, names_us: bool = False
) -> InboundMessage | None:
    """`names_us`: it is for the bot also without a mention."""
    if not _is_written_by_a_person(event, bot):
        return None
    raw = str(event.get("text") or "")
    channel, ts, thread = str(event["channel"]), str(event["ts"]), event.get("thread_ts")
    kind = event.get("channel_type")
    private = kind == "im" or (kind is None and channel.startswith("D"))
    to_us = names_us or private or event["type"] == "app_mention" or bot.user_id in mentioned(raw)
    text = readable(without_mention(raw, bot.user_id), _names(people))
    own_words = not (_shared(event) or event.get("app_id"))
    attachments, unreadable = files_of(event.get("files") or ())
    if not private:
        thread = thread or ts  # a mention opens a thread
    return InboundMessage(
        address=Address(CHANNEL, bot.team_id, channel, str(thread) if thread else None, private),
        event=f"m:{ts}",
        message_id=ts,
        sender=_sender(str(event["user"]), people),
        sent_at=time_of(ts),
        text=text,
        attachments=attachments,
        addressed=to_us,
        own_words=own_words,
        quote=_forwarded(event, people),
        unreadable=unreadable,
    )


def _edit(event: Json, bot: Bot, people: Mapping[str, Person]) -> InboundMessage | None:
    """A message that its author has changed into a command. Slack tells as an edit what it adds
    itself too, with the same text."""
    now: Json = event.get("message") or {}
    before: Json = event.get("previous_message") or {}
    edited: Json = now.get("edited") or {}
    if edited.get("user") != now.get("user") or now.get("text") == before.get("text"):
        return None
    plain = {key: value for key, value in now.items() if key != "edited"}
    plain |= {key: event[key] for key in ("type", "channel", "channel_type") if key in event}
    named = str(now.get("text") or "").lower().split()[:1] == [COMMAND]
    message = _message(plain, bot, people, names_us=named)
    if message is None or not (_is_command(message.text) or is_command(plain["text"])):
        return None
    at = str(edited["ts"])
    event_id = f"e:{message.message_id}:{at}"
    return replace(message, event=event_id, sent_at=time_of(at), edited_command=True)


def _membership(event: Json, bot: Bot, now: datetime) -> InboundMessage | None:
    """The bot was added or removed: from a channel, or as an app, which has no channel."""
    kind = event["type"]
    about_us = event.get("user", bot.user_id) == bot.user_id
    if kind == "tokens_revoked":
        tokens: Json = event.get("tokens") or {}
        about_us = bot.user_id in (tokens.get("bot") or ())
    if not about_us:
        return None
    at = event.get("event_ts")
    joined = kind == "member_joined_channel"
    return InboundMessage(
        address=Address(CHANNEL, bot.team_id, str(event.get("channel") or ""), None, private=False),
        event=f"{kind}:{at}",
        message_id="",
        sender=Sender(str(event.get("inviter") or bot.user_id), ""),
        sent_at=time_of(str(at)) if at else now,
        addressed=False,
        joined=joined,
        left=not joined,
    )


def _is_command(text: str) -> bool:
    """Whether a text reads like a command of ours. Slack keeps such texts from being sent, but not
    from being made by an edit."""
    first = next(iter(text.lower().split()), "")
    if first == COMMAND or is_stop_word(text):
        return True
    return first.startswith("/") and first.removeprefix("/") in COMMANDS


def _is_written_by_a_person(event: Json, bot: Bot) -> bool:
    """Not by a bot, and neither an edit nor a notice about a message."""
    return (
        event.get("type") in ("message", "app_mention")
        and event.get("subtype") in _READ_SUBTYPES
        and not (event.get("bot_id") or event.get("hidden") or event.get("edited"))
        and event.get("user") not in (None, bot.user_id, "USLACKBOT")
    )


def _command(body: Json, bot: Bot, people: Mapping[str, Person], now: datetime) -> InboundMessage:
    user, channel, trigger = str(body["user_id"]), str(body["channel_id"]), str(body["trigger_id"])
    text = readable(str(body.get("text") or ""), _names(people)).strip()
    private = channel.startswith("D")
    named = mentioned(str(body.get("text") or ""))
    return InboundMessage(
        address=Address(CHANNEL, bot.team_id, channel, None, private),
        event=f"c:{trigger}",
        message_id=_seen_by_one(user, trigger),
        sender=_sender(user, people),
        sent_at=now,
        text=text,
        command=_meant(text),
        reply_to_person=_sender(named[0], people) if named else None,
        whispered=not private,
    )


def _meant(text: str) -> Command:
    """What was typed after `/galata`: a command (also an unknown one, where it is a single word),
    else a question; nothing: help."""
    first, *rest = text.split(maxsplit=1) or ["help"]
    name = first.removeprefix("/").lower()
    if not rest and name.isascii() and name.isalpha():
        return Command(name)  # a slip in `cancel` is not to wait behind what it should stop
    if name not in COMMANDS or (name in _ALONE and rest and not first.startswith("/")):
        return Command("ask", text)
    return Command(name, rest[0] if rest else "")


def _press(
    body: Json, bot: Bot, people: Mapping[str, Person], now: datetime
) -> InboundMessage | None:
    container, action = body["container"], body["actions"][0]
    if container.get("type") == "view" and "value" in action:
        return _press_in_a_form(body, action, bot, people, now)
    if container.get("type") != "message" or "value" not in action:
        return None
    channel, ts = str(container["channel_id"]), str(container["message_ts"])
    private = channel.startswith("D")
    thread = container.get("thread_ts")
    if private and thread == ts:  # a thread under this message does not make it part of one
        thread = None
    user, trigger = str(body["user"]["id"]), str(body["trigger_id"])
    name, value = action_of(str(action["action_id"])), str(action["value"])
    press = Press(trigger, name, value, ts)
    return InboundMessage(
        address=Address(CHANNEL, bot.team_id, channel, str(thread) if thread else None, private),
        event=f"p:{ts}:{action.get('action_ts') or press.id}",
        message_id=_seen_by_one(user, trigger) if container.get("is_ephemeral") else ts,
        sender=_sender(user, people),
        sent_at=now,
        press=press,
        whispered=bool(container.get("is_ephemeral")) and not private,
    )


def _press_in_a_form(
    body: Json, action: Json, bot: Bot, people: Mapping[str, Person], now: datetime
) -> InboundMessage:
    user, view = str(body["user"]["id"]), body["view"]
    trigger = f"{_VIEW}{view['id']}:{view['hash']}"
    return InboundMessage(
        address=place_of(view, CHANNEL, bot.team_id),
        event=f"p:{view['id']}:{action.get('action_ts') or body['trigger_id']}",
        message_id="",
        sender=_sender(user, people),
        sent_at=now,
        press=Press(trigger, action_of(str(action["action_id"])), str(action["value"]), ""),
    )


def _form(body: Json, bot: Bot, people: Mapping[str, Person], now: datetime) -> InboundMessage:
    """A modal that was sent: once, since it closes then."""
    user, view = str(body["user"]["id"]), body["view"]
    return InboundMessage(
        address=place_of(view, CHANNEL, bot.team_id),
        event=f"f:{view['id']}",
        message_id="",
        sender=_sender(user, people),
        sent_at=now,
        form=submission_of(view),
    )


def view_in(trigger: str) -> tuple[str, str] | None:
    """Id and state of the form whose button was pressed; None for a button under a message."""
    if not trigger.startswith(_VIEW):
        return None
    id_, _, state = trigger.removeprefix(_VIEW).partition(":")
    return id_, state


def _seen_by_one(user: str, trigger: str) -> str:
    return f"{_EPHEMERAL}{user}:{trigger}"


def _forwarded(event: Json, people: Mapping[str, Person]) -> str | None:
    """The text of a message that was forwarded along."""
    texts = [str(one.get("text") or one.get("fallback") or "") for one in _shared(event)]
    quote = readable("\n\n".join(text for text in texts if text), _names(people))
    return quote[:_QUOTE_CHARACTERS] or None


def _shared(event: Json) -> list[Json]:
    """The messages that were forwarded along."""
    return [one for one in event.get("attachments") or () if one.get("is_share")]


def _sender(user: str, people: Mapping[str, Person]) -> Sender:
    person = people.get(user, Person(user))
    return Sender(user, person.name, person.language)


def _with_zone(sender: Sender, people: Mapping[str, Person]) -> Sender:
    person = people.get(sender.id)
    return sender if person is None else replace(sender, timezone=person.timezone)


def _names(people: Mapping[str, Person]) -> dict[str, str]:
    return {user: person.name for user, person in people.items()}


def time_of(ts: str) -> datetime:
    """The time of a message's `ts` (`1732950000.123456`). Raises `ValueError`."""
    seconds, _, fraction = ts.partition(".")
    microseconds = int(fraction[:6].ljust(6, "0")) if fraction else 0
    return _EPOCH + timedelta(seconds=int(seconds), microseconds=microseconds)
