"""What people send to the bot, or do: the same for every platform. Strings are whole: no half of a
character is in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from channels.inputs import Submission

STOP_WORDS: Final = frozenset({"cancel", "stop", "!cancel", "停止", "取消", "停"})
STOP_COMMANDS: Final = frozenset({"cancel", "stop"})
STOP_ACTION: Final = "stop"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a conversation happens.

    `channel` is the channel's name; `account` the bot's own id there (Slack: the team's id), so
    that two bots never share anything; `thread` a forum topic or a Slack thread; `private` a chat
    of one person with the bot.
    """

    channel: str
    account: str
    chat: str
    thread: str | None = None
    private: bool = True


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote. `id` is the platform's stable id, the only thing that rights are checked against.

    `name` is what they call themselves: untrusted text. `language` is a BCP 47 tag of their client.
    `timezone` is what their profile says, in private chats of platforms that have one: an IANA name,
    untrusted.
    """

    id: str
    name: str
    language: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message, not yet fetched. `ref` is what `Channel.fetch` needs.

    `media_type` is what the platform claims; `size_bytes` None where it does not say.
    """

    kind: Literal["image", "document"]
    ref: str
    name: str
    media_type: str
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A command that may be executed: `name` in lower case without a slash, `args` as typed.

    Forwards, quotes, edits, automatic channel posts and messages via inline bots never carry one.
    """

    name: str
    args: str = ""


@dataclass(frozen=True, slots=True)
class Press:
    """A button was pressed. `id` is what `Channel.answer_press` needs; `message_id` is the message
    that carries the button, empty where a form does; `action` and `value` are what the button was
    made with."""

    id: str
    action: str
    value: str
    message_id: str


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """Something that a person sent to the bot, or did.

    `event` is the id that stays the same when the platform delivers it again: the message's id
    (`m:17`), or that of the press (`p:…`); unique with channel, account and chat. `addressed` is
    false for group text that is not meant for the bot. `own_words` is false where somebody else wrote
    the text, or a part of it (a forward, an inline bot's text, a channel's automatic post): such a
    text executes nothing, whatever it says. `quote` is the text that it replies to or
    quotes: untrusted. `unreadable` names a kind that cannot be read yet (`voice`, `sticker`).
    `joined_deaf`: the bot was added to a group in which it cannot see mentions. `edited_command`: a
    message was edited into a command, which is not carried out. `joined`, `left`: the bot can
    write in this chat again, or was removed or blocked (with an empty chat: its whole account was);
    `moved_from`: this chat had that id before. Nobody wrote these three.
    `form`: a form was sent, and nothing else. `reply_to_id`: the message that this one answers, of
    `reply_to_person`, where the platform tells; of a command that cannot answer a message: whom it
    names first.
    `whispered`: the sender alone sees what it is answered with (a slash command in a Slack channel).
    `album`: what files have in common that were sent as one, each as a message of its own.
    `more_expected_s`: seconds in which a continuation by the same sender may follow (a long text
    that the client has cut, an album), else 0; `seam`: what stood between the two and is lost, as
    far as can be told.
    `behind`: something before it cannot be stored, so it is not to be taken in now and comes again.
    """

    address: Address
    event: str
    message_id: str
    sender: Sender
    sent_at: datetime
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    addressed: bool = True
    own_words: bool = True
    command: Command | None = None
    press: Press | None = None
    form: Submission | None = None
    reply_to_id: str | None = None
    reply_to_person: Sender | None = None
    quote: str | None = None
    unreadable: str | None = None
    joined_deaf: bool = False
    edited_command: bool = False
    joined: bool = False
    left: bool = False
    moved_from: str | None = None
    whispered: bool = False
    album: str | None = None
    more_expected_s: float = 0.0
    seam: str = ""
    behind: bool = False


def is_stop_word(text: str) -> bool:
    """Whether it says nothing else; telephones set a capital and a full stop."""
    return text.strip().rstrip(".!。！").rstrip().lower() in STOP_WORDS


def asks_to_stop(message: InboundMessage) -> bool:
    """Whether it is a command or a press that stops something; a bare word may be one too."""
    if message.press is not None:
        return message.press.action == STOP_ACTION
    return message.command is not None and message.command.name in STOP_COMMANDS
