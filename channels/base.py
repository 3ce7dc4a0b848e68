"""The contract between chat platforms and the bridge.

A channel parses updates into `InboundMessage`, hands them to `receive`, and acknowledges to the
platform only when `receive` has returned (the message is stored then). If `receive` raises
`NotStored`, the update is not acknowledged and comes again; if it raises `FormRefused`, the person is
shown what is wrong in the form; whatever else it raises must not hold up the others for long. Replies
are Markdown; a channel renders them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from channels.membership import Membership

from channels.inputs import Form
from channels.messages import Address, Attachment, Command, InboundMessage, Press, Sender
from channels.replies import (
    Button,
    Delivered,
    OutboundDocument,
    OutboundReply,
    ReplyJournal,
    ReplyPart,
    ReplySink,
    Resumed,
    StopControl,
)

__all__ = [
    "Address",
    "Attachment",
    "Button",
    "Capabilities",
    "Channel",
    "Command",
    "Delivered",
    "InboundMessage",
    "Mark",
    "OutboundDocument",
    "OutboundReply",
    "Press",
    "Receive",
    "ReplyJournal",
    "ReplyPart",
    "ReplySink",
    "Resumed",
    "Sender",
    "StopControl",
]


Mark = Literal["taken", "later", "refused"]
"""What became of a mark: it is as it should be; not now, since the platform has too much to do or could
not be reached; the platform does not allow it there."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the bridge may count on: `reactions` mark a waiting message, `buttons` are Stop buttons,
    `commands_in_threads` is false where the platform refuses slash commands in threads.
    `command_prefix` is what stands before a command's name when it is typed; `forms`: forms can be
    opened. `topics`: threads of groups are topics with ids that stay; a message without one is in
    the first, `1`. `comes_again`: what was not acknowledged does so for a day or longer, also after a
    restart; else that is not sure."""

    reactions: bool
    buttons: bool
    commands_in_threads: bool
    command_prefix: str = "/"
    forms: bool = False
    topics: bool = False
    comes_again: bool = True


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

    async def mark_waiting(self, to: Address, message_id: str, waiting: bool) -> Mark:
        """Set or clear the reaction of a message that has to wait. Never raises."""
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

    @property
    def membership(self) -> Membership:
        """Who belongs where, asked of the platform."""
        ...

    async def is_admin(
        self, to: Address, person: str, *, managing: bool = False, named: Collection[str] = ()
    ) -> bool | None:
        """Whether the platform says that the person administers this chat (Slack: the workspace);
        `managing`: and may change what it is (Telegram: its info), or is one of `named`, the people
        and, where the platform has them, groups of people who may do so besides. None when it does
        not answer. Never raises."""
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
