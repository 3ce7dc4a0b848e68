"""`/privacy` and `/export`: what is stored and for how long, who reads it, what a person can do about
it, and what was said as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.answers import Answer, Handlers
from bridge.chats.rights import Rights
from bridge.commands.exporting import Words, documents
from bridge.limits.keys import KEEP_DAYS, MODEL
from bridge.limits.policies import zone_of
from bridge.runs.turn_plan import TurnServices
from bridge.speakers import plain_name
from bridge.texts import Say
from channels.base import Channel, InboundMessage, OutboundDocument, OutboundReply
from channels.errors import ReplyRefused, Unreachable
from memory.conversations import SessionPlace
from memory.transcripts import Said


class PrivacyCommands:
    """What people ask about their data."""

    def __init__(
        self, services: TurnServices, rights: Rights, channels: Mapping[str, Channel]
    ) -> None:
        self._services = services
        self._rights = rights
        self._channels = channels

    @property
    def commands(self) -> Handlers:
        """`/privacy` and `/export`."""
        return {"privacy": self.show, "export": self.export}

    async def show(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        """Everything at once, for whoever asks."""
        return await self.tell(message, say)

    async def tell(self, message: InboundMessage, say: Say, *, stranger: bool = False) -> str:
        """`stranger`: somebody without access, of whom nothing is kept yet."""
        storing, address = self._services.storing, message.address
        policy = self._services.policies.of(address, message.sender.id)
        keep, days = storing.keep, storing.backup_days
        own = policy[KEEP_DAYS]
        companies = storing.companies(policy[MODEL])
        where = self._services.memory.sharing.audience(address)
        parts = [
            say("privacy_stranger") if stranger else "",
            say(
                "privacy_stored",
                messages=min(keep.messages_days, own or keep.messages_days),
                pictures=keep.attachments_days,
                transcripts=keep.transcripts_days,
                usage=keep.usage_days,
            ),
            say("privacy_keep_days", days=own) if own is not None else "",
            "" if address.private else say("privacy_group_rest"),
            say("privacy_backups", days=days) if days else say("privacy_no_backups"),
            say("privacy_model", companies=say("list_comma").join(companies))
            if companies
            else say("privacy_local_model"),
            say(f"privacy_who_{where}"),
            say("privacy_commands"),
        ]
        return "\n\n".join(filter(None, parts))

    async def export(
        self, message: InboundMessage, place: SessionPlace, say: Say
    ) -> Answer | str | None:
        """The conversation as a file; from a group it goes to the asker's private chat."""
        private = message.address.private
        all_of_it = await self._rights.over_all(message)
        zone = zone_of(self._services.policies.of(message.address, message.sender.id))
        name = plain_name(message.sender.name)
        words = Words(say, name, zone, self._services.redactor.clean)
        files = documents(await self._said(message, place, everything=all_of_it), words)
        if not files:
            return say("export_nothing")
        if private:
            return Answer(say("export_here"), documents=files)
        told = [say("export_from"), "" if all_of_it else say("export_own")]
        sent = await self._send(message, "\n\n".join(filter(None, told)), files)
        return say("export_sent" if sent else "export_cannot")

    async def _said(
        self, message: InboundMessage, place: SessionPlace, *, everything: bool
    ) -> Sequence[Said]:
        """Where commands cannot be sent in threads, the conversation is the one in which the person
        has asked last."""
        person = None if everything else message.sender.id
        history = self._services.transcripts.history
        said = await history.said(await self._services.conversations.open(place), person)
        if not said and place.thread is None:
            newest = await history.newest_of(place, message.sender.id)
            said = [] if newest is None else await history.said(newest, person)
        return said

    async def _send(
        self, message: InboundMessage, text: str, files: tuple[OutboundDocument, ...]
    ) -> bool:
        """To the sender alone; whether it arrived."""
        channel = self._channels[message.address.channel]
        to = await channel.private_with(message.address, message.sender.id)
        if to is None:
            return False
        try:
            sink = channel.open_reply(to, reply_to=None)
            delivered = await sink.finish(OutboundReply(text, files))
        except (Unreachable, ReplyRefused):
            return False
        return delivered.complete
