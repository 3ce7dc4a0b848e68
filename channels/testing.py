"""For tests of what uses channels: a channel without a platform, that keeps what it was shown."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from channels.base import (
    Address,
    Attachment,
    Button,
    Capabilities,
    Command,
    Delivered,
    InboundMessage,
    Mark,
    OutboundDocument,
    OutboundReply,
    Press,
    Receive,
    ReplyJournal,
    ReplyPart,
    ReplySink,
    Resumed,
    Sender,
    StopControl,
    Wanted,
)
from channels.errors import FileRefused, Unreachable
from channels.inputs import Form, Submission
from channels.membership import Standing
from channels.parts import Finishing, Halt, Parts, Passage

PART_CHARACTERS = 4_000


def _everything() -> Capabilities:
    return Capabilities(True, True, True, topics=True)


@dataclass(slots=True)
class FakeReply(Finishing):
    """A reply as a person would see it. `parts` are those of the final text that arrived (of a
    document its name); `final` is None until it is finished, then all of it, or of a halted one
    what arrived."""

    to: Address
    reply_to: str | None
    stop: StopControl | None
    channel: FakeChannel
    journal: ReplyJournal | None = None
    resumed: Resumed | None = None
    preview: str = ""
    parts: list[str] = field(default_factory=list[str])
    final: str | None = None
    discarded: bool = False
    buttons: tuple[Button, ...] = ()
    documents: tuple[OutboundDocument, ...] = ()
    silent: bool = False
    _halt: Halt = field(default_factory=Halt)
    _delivery: Parts = field(init=False)
    _tidying: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self._delivery = Parts(self._halt, self.journal)

    def show(self, more: str) -> None:
        """Keep it."""
        self.preview += more
        self.channel.changed.set()

    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """Parts of `PART_CHARACTERS`, and the names of documents."""
        text = reply.markdown if reply.markdown.strip() else ""
        cuts = range(0, len(text), PART_CHARACTERS)
        self.buttons = reply.buttons
        self.documents = reply.documents
        self.buttons, self.silent = reply.buttons, reply.silent
        return (
            *(text[at : at + PART_CHARACTERS] for at in cuts),
            *(document.name for document in reply.documents),
        )

    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """Keep it; a second time is an error."""
        if self.final is not None or self.discarded:
            raise AssertionError("a reply ends once")

        async def one(number: int, part: ReplyPart, passage: Passage) -> str:
            text = f"{note}\n\n{part.body}" if part.state == "again" else part.body
            await self._deliver(number, text, passage)
            return f"{id(self)}.{number}"

        await self._delivery.send(parts, one)
        delivered = self._delivery.outcome()
        if self.channel.untidy:
            self._tidying = asyncio.create_task(self.channel.take_away())
        self.final = "".join(self.parts)
        self.channel.changed.set()
        return delivered

    def halt(self) -> None:
        """Leave the rest out."""
        self._halt.set()

    async def discard(self) -> None:
        """Keep that it is gone."""
        self.discarded = True
        self.channel.changed.set()

    async def _deliver(self, index: int, part: str, passage: Passage) -> None:
        if self.channel.hold_after is not None and index >= self.channel.hold_after:
            async with passage.interruptible():
                await self.channel.go_on.wait()
        await passage.leaving()
        if self.channel.stall_after is not None and index >= self.channel.stall_after:
            await self.channel.go_on.wait()
        if self.to.chat in self.channel.membership.unreachable:
            raise Unreachable("it has never been opened")
        if self.channel.failures:
            raise self.channel.failures.pop(0)
        self.parts.append(part)
        self.channel.changed.set()


@dataclass(slots=True)
class FakeMembership:
    """What tests set: standings of people who are not `full`, chats that are `shared`, members of chats
    (a chat that is not in it does not say), chats that are `silent` about who is in them, people who
    cannot be written to. `left`: what was left."""

    standings: dict[str, Standing | None] = field(default_factory=dict[str, Standing | None])
    shared: set[str] | None = field(default_factory=set[str])
    members: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    silent: set[str] = field(default_factory=set[str])
    titles: dict[str, str] = field(default_factory=dict[str, str])
    unreachable: set[str] = field(default_factory=set[str])
    left: list[str] = field(default_factory=list[str])
    asked: int = 0  # how often is_member was

    async def standing(self, to: Address, person: str) -> Standing | None:
        """As set, else full."""
        return self.standings.get(person, "full")

    async def is_shared(self, to: Address) -> bool | None:
        """None where `shared` is None."""
        return None if self.shared is None else to.chat in self.shared

    async def is_member(self, to: Address, person: str) -> bool | None:
        """As set."""
        self.asked += 1
        members = self.members.get(to.chat)
        return None if members is None else person in members

    async def is_in(self, to: Address, person: str) -> bool | None:
        """As set; where nothing is, everybody is."""
        if to.chat in self.silent:
            return None
        return person in self.members.get(to.chat, {person})

    async def title(self, to: Address) -> str | None:
        """As set."""
        return self.titles.get(to.chat)

    async def leave(self, to: Address) -> bool:
        """Keep it."""
        self.left.append(to.chat)
        return True

    async def can_write_to(self, person: str) -> bool | None:
        """As set."""
        return person not in self.unreachable

    def start_link(self, code: str) -> str | None:
        """A link that reads like one."""
        return f"https://fake.example/?start={code}"


@dataclass(slots=True)
class FakeChannel:
    """`message` and `press` are a person's acts; `replies` what the bot shows. `hold_after`: so many
    parts of a reply go out, the next waits as behind a rate limit until `go_on` is set; `stall_after`:
    the next is under way until then; `untidy`: Stop buttons stay until then."""

    name: str = "fake"
    capabilities: Capabilities = field(default_factory=_everything)
    replies: list[FakeReply] = field(default_factory=list["FakeReply"])
    marks: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    notices: list[str] = field(default_factory=list[str])
    forms: list[Form] = field(default_factory=list[Form])
    spent: list[str] = field(default_factory=list[str])
    membership: FakeMembership = field(default_factory=FakeMembership)
    admins: set[str] | None = field(default_factory=set[str])
    unreachable: set[str] = field(default_factory=set[str])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    fetching: asyncio.Event = field(default_factory=asyncio.Event)
    hold_files: bool = False  # a download has no end
    failures: list[Exception] = field(default_factory=list[Exception])
    hold_after: int | None = None
    stall_after: int | None = None
    untidy: bool = False
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    receive: Receive | None = None
    receiving: bool = False
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(time.time_ns()))

    async def listen(self, receive: Receive) -> None:
        """Until cancelled."""
        self.receive = receive
        self.receiving = True
        self.changed.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.receiving = False

    def overhear(self, wanted: Wanted) -> None:
        """Everything is handed on."""

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
        """A reply that is kept."""
        reply = FakeReply(to, reply_to, stop, self, journal, resumed)
        self.replies.append(reply)
        self.changed.set()
        return reply

    async def take_away(self) -> None:
        """What takes a Stop button away."""
        await self.go_on.wait()

    async def mark_waiting(self, to: Address, message_id: str, waiting: bool) -> Mark:
        """Keep it."""
        self.marks.append((message_id, waiting))
        self.changed.set()
        return "taken" if self.capabilities.reactions else "refused"

    async def answer_press(
        self, message: InboundMessage, text: str, *, spent: bool = False
    ) -> None:
        """Keep it."""
        self.notices.append(text)
        if spent and message.press is not None:
            self.spent.append(message.press.value)
        self.changed.set()

    async def replace(self, message: InboundMessage, reply: OutboundReply) -> bool:
        """Change the reply whose button was pressed; not when it is long."""
        if len(reply.markdown) > PART_CHARACTERS or message.press is None:
            return False
        pressed = next((r for r in self.replies if str(id(r)) == message.press.message_id), None)
        if pressed is None:
            return False
        pressed.final, pressed.buttons = reply.markdown, reply.buttons
        self.notices.append("")
        self.changed.set()
        return True

    async def open_form(self, message: InboundMessage, form: Form) -> bool:
        """Keep it, where forms can be opened."""
        if self.capabilities.forms:
            self.forms.append(form)
            self.changed.set()
        return self.capabilities.forms

    async def is_admin(
        self, to: Address, person: str, *, managing: bool = False, named: Collection[str] = ()
    ) -> bool | None:
        """Whether `admins` holds the person; None where `admins` is None."""
        if managing and person in named:
            return True
        return None if self.admins is None else person in self.admins

    async def private_with(self, to: Address, person: str) -> Address | None:
        """A chat that is called after the person; none for the `unreachable`."""
        if person in self.unreachable:
            return None
        return Address(self.name, to.account, f"private-{person}")

    async def fetch(self, attachment: Attachment) -> bytes:
        """What `files` holds under the attachment's ref."""
        self.fetching.set()
        if self.hold_files:
            await asyncio.Event().wait()
        if attachment.ref not in self.files:
            raise FileRefused("gone")
        return self.files[attachment.ref]

    async def aclose(self) -> None:
        """Nothing to close."""

    def message(
        self,
        text: str,
        *,
        person: str = "ana",
        chat: str = "1",
        private: bool = True,
        thread: str | None = None,
        addressed: bool = True,
    ) -> InboundMessage:
        """A message of a person; a leading slash makes a command."""
        number = str(next(self._numbers))
        command = None
        if text.startswith("/"):
            name, _, args = text[1:].partition(" ")
            command = Command(name, args)
        return InboundMessage(
            Address(self.name, "bot", chat, thread, private),
            f"m:{number}",
            number,
            Sender(person, person.title(), "en"),
            datetime.now(UTC),
            text,
            addressed=addressed,
            command=command,
        )

    def press(self, reply: FakeReply, *, person: str = "ana", button: int = 0) -> InboundMessage:
        """A press of the reply's Stop button, or of one of the buttons under its end."""
        if reply.buttons:
            action, value = reply.buttons[button].action, reply.buttons[button].value
        else:
            assert reply.stop is not None, "this reply has no button"  # noqa: S101
            action, value = "stop", reply.stop.request_id
        message = self.message("", person=person, chat=reply.to.chat, private=reply.to.private)
        press = Press(message.message_id, action, value, str(id(reply)))
        return replace(message, event=f"p:{message.message_id}", press=press)

    def submission(
        self, form: Form, *, person: str = "ana", chat: str = "1", **texts: str
    ) -> InboundMessage:
        """A form is sent, with these texts in place of what stood there."""
        filled = {one.name: texts.get(one.name, one.value) for one in form.fields}
        sent = Submission(form.action, form.value, filled)
        message = self.message("", person=person, chat=chat, private=False)
        return replace(message, event=f"f:{message.message_id}", message_id="", form=sent)

    def answer(self, reply: FakeReply, text: str, *, person: str = "ana") -> InboundMessage:
        """A message that answers one of the bot's."""
        message = self.message(text, person=person, chat=reply.to.chat, private=reply.to.private)
        return replace(message, reply_to_id=str(id(reply)))

    def said_in(self, chat: str) -> list[str]:
        """The finished replies' texts in one chat."""
        found = (reply for reply in self.replies if reply.to.chat == chat)
        return [reply.final for reply in found if reply.final is not None]

    @property
    def finals(self) -> list[str]:
        """The finished replies' texts, in the order in which they were opened."""
        return [reply.final for reply in self.replies if reply.final is not None]
