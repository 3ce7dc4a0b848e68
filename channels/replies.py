"""What the bot sends: a reply, its parts, and the sink that shows and delivers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


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

    async def previewed(self, message_id: str) -> bool:
        """The preview is this message; nothing but a sign that there will be more stands in it yet,
        unless the channel can find it again by other means. Whether that is kept now: until it is,
        nothing else is to stand there. Never raises."""
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
