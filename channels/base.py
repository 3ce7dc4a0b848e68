"""The contract between chat platforms and the bridge.

A channel parses updates into `InboundMessage`, hands them to `receive`, and acknowledges to the
platform only when `receive` has returned (the message is stored then). If `receive` raises
`NotStored`, the update is not acknowledged and comes again; if it raises `FormRefused`, the person is
shown what is wrong in the form; whatever else it raises must not hold up
the others for long. Strings are whole: no half of a character is in them. Replies are Markdown; a
channel renders them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from channels.inputs import Form, Submission


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
    """

    id: str
    name: str
    language: str | None = None


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
    `reply_to_person`, where the platform tells.
    `album`: what files have in common that were sent as one, each as a message of its own.
    `more_expected_s`: seconds in which a continuation by the same sender may follow (a long text
    that the client has cut, an album), else 0; `seam`: what stood between the two and is lost, as
    far as can be told.
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
    album: str | None = None
    more_expected_s: float = 0.0
    seam: str = ""


@dataclass(frozen=True, slots=True)
class OutboundDocument:
    """A small text document (up to 1 MB) that goes with a reply."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a reply: `label` is its text; its press has `action` and `value` (together at
    most 60 bytes, the smallest that a platform takes)."""

    label: str
    action: str
    value: str


@dataclass(frozen=True, slots=True)
class OutboundReply:
    """A reply: Markdown in, documents, and buttons under its last part. `silent`: no sound where the
    platform can."""

    markdown: str
    documents: tuple[OutboundDocument, ...] = ()
    buttons: tuple[Button, ...] = ()
    silent: bool = False


@dataclass(frozen=True, slots=True)
class StopControl:
    """A Stop button under a preview: `label` is its text, `request_id` the value of its press
    (action `stop`). Under an answer of several parts it stays until the last one is out."""

    label: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the bridge may count on: `reactions` mark a waiting message, `buttons` are Stop buttons,
    `commands_in_threads` is false where the platform refuses slash commands in threads.
    `command_prefix` is what stands before a command's name when it is typed; `forms`: forms can be
    opened. `topics`: threads of groups are topics with ids that stay; a message without one is in
    the first, `1`."""

    reactions: bool
    buttons: bool
    commands_in_threads: bool
    command_prefix: str = "/"
    forms: bool = False
    topics: bool = False


@dataclass(frozen=True, slots=True)
class Delivered:
    """How much of a reply arrived for certain: `sent` of its `of` parts. A part is a message or a
    document; a preview that became the first part is that part. A blank reply has none, and is
    complete."""

    sent: int
    of: int

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.sent == self.of


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """One message or document of a composed reply. `body` is JSON that only the channel reads which
    composed it.

    `open`: it had no turn yet. `again`: it was on its way as a new message when the process died, and
    may have arrived. `sent`: it has arrived, as `message_id`. `lost`: it was refused, or may have
    arrived; it is not sent again.
    """

    body: str
    state: Literal["open", "again", "sent", "lost"] = "open"
    message_id: str | None = None


class ReplyJournal(Protocol):
    """Where a reply's way is kept, so that another process can go on with it. Parts are numbered from
    0 in the order of `ReplySink.compose`."""

    async def showing(self) -> None:
        """A preview is about to be sent; when this returns, whoever goes on with the reply knows of
        it. Raises `NotStored`: it is not sent then."""
        ...

    async def previewed(self, message_id: str) -> None:
        """The preview is this message; nothing but a sign that there will be more stands in it yet,
        unless the channel can find it again by other means. Never raises."""
        ...

    async def leaving(self, number: int) -> None:
        """A part is about to leave as a new message; kept when this returns. Raises `NotStored`: it
        does not leave then."""
        ...

    async def stayed(self, number: int) -> None:
        """It has not left after all. Never raises."""
        ...

    async def ended(
        self, number: int, how: Literal["sent", "uncertain", "refused"], message_id: str | None
    ) -> None:
        """A part had its turn. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Resumed:
    """A reply that an earlier process had begun to show or to deliver. `preview_id`: the message that
    it used as preview, None where that is not known (there may be one all the same)."""

    preview_id: str | None = None


class ReplySink(Protocol):
    """One reply in the making. Exactly one of `deliver`, `finish` and `discard` ends it."""

    def show(self, more: str) -> None:
        """Append text to the preview. Never blocks and never raises; frames may be skipped."""
        ...

    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """The reply as the messages and documents that it becomes, as bodies of `ReplyPart`s; of
        several each text says which it is (`2/4`). Nothing is shown any more from now on."""
        ...

    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """A composed reply, also one of an earlier process, in place of the preview. Returns when it
        is delivered or halted; then the Stop control goes, at once or as soon as the platform allows.
        `note` stands above a part that is sent `again`. Raises `DeliveryError`, and
        `ChannelUnavailable` or `NotStored`: then the same parts may be delivered again on the same
        sink, which goes on with the one that was not sent."""
        ...

    async def finish(self, reply: OutboundReply) -> Delivered:
        """`compose` and `deliver`, for a reply that is kept nowhere. Raises as `deliver`."""
        ...

    def halt(self) -> None:
        """Nothing more is wanted: parts that are not under way stay unsent, every wait for them
        ends, and `deliver` returns what was sent (also one that is called later: a halt before it
        leaves 0 sent, and the preview as it stands). A part that is under way is finished, since
        its outcome would be unknown otherwise. Never blocks, never raises; nothing happens after
        the end."""
        ...

    @property
    def tidy(self) -> bool:
        """Whether nothing is left to be taken away, as the Stop control."""
        ...

    async def tidied(self) -> None:
        """Return when it is so, or cannot be. Never raises."""
        ...

    async def discard(self) -> None:
        """No reply comes: the preview is removed, if there is one. Never raises."""
        ...


Receive = Callable[[InboundMessage], Awaitable[None]]
Wanted = Callable[[InboundMessage], Awaitable[bool]]


class Channel(Protocol):
    """A chat platform with one bot account."""

    @property
    def name(self) -> str:
        """The name in the configuration: `telegram`, `slack`, `console`."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Fixed for the life of the channel."""
        ...

    @property
    def receiving(self) -> bool:
        """Whether messages reach us right now, as far as the platform shows it; false outside of
        `listen`."""
        ...

    async def listen(self, receive: Receive) -> None:
        """Connect and receive until cancelled or, for a channel with an end (the console), until
        its input ends. Raises `ChannelUnavailable` (the supervisor calls `listen` again) or
        `ChannelFailed`. May be called again after it raised."""
        ...

    def overhear(self, wanted: Wanted) -> None:
        """Text of groups that is not addressed to the bot is wanted where this says so; a channel may
        leave out all else of it. It raises `NotStored` where that cannot be said now."""
        ...

    def open_reply(
        self,
        to: Address,
        *,
        reply_to: str | None,
        stop: StopControl | None = None,
        journal: ReplyJournal | None = None,
        resumed: Resumed | None = None,
        silent: bool = False,
    ) -> ReplySink:
        """Start a reply to the message `reply_to`: shows "typing" and then the preview, which makes no
        sound where it is `silent`. `journal` None: it is kept nowhere.
        `resumed`: go on with one that an earlier process had begun, of which the
        Stop control is the same."""
        ...

    async def mark_waiting(self, to: Address, message_id: str, waiting: bool) -> bool:
        """Set or clear the reaction of a message that has to wait. False when the platform does not
        allow it here. Never raises."""
        ...

    async def answer_press(
        self, message: InboundMessage, text: str, *, spent: bool = False
    ) -> None:
        """Answer a press: a short notice for the person who pressed. `spent`: the buttons of the
        message are of no more use and are taken away. Never raises."""
        ...

    async def replace(self, message: InboundMessage, reply: OutboundReply) -> bool:
        """Put a reply, without documents, in the place of the message whose button was pressed; the
        press is answered too. False where that cannot be: the message is gone, or the reply is longer
        than one message. Never raises."""
        ...

    async def open_form(self, message: InboundMessage, form: Form) -> bool:
        """Open a form for the person who has just pressed a button or sent a command; from a button
        of a form, in its place. False where that cannot be: the platform has none, or it is too late
        (Slack: 3 s). Never raises."""
        ...

    async def is_admin(self, to: Address, person: str, *, managing: bool = False) -> bool | None:
        """Whether the platform says that the person administers this chat (Slack: the workspace);
        `managing`: and may change what it is (Telegram: its info). None when it does not answer.
        Never raises."""
        ...

    async def private_with(self, to: Address, person: str) -> Address | None:
        """The private chat of the bot with a person who is at `to`. None when the platform does not
        allow it or does not answer. Never raises."""
        ...

    async def fetch(self, attachment: Attachment) -> bytes:
        """The file's bytes. Raises `FileRefused`."""
        ...

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        ...
