"""Slack as a `Channel`: one app in one workspace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final
from weakref import WeakSet

from slack_bolt.app.async_app import AsyncApp

from channels.base import (
    Address,
    Attachment,
    Capabilities,
    InboundMessage,
    Mark,
    OutboundReply,
    Receive,
    ReplyJournal,
    ReplySink,
    Resumed,
    StopControl,
    Wanted,
)
from channels.errands import Errands
from channels.errors import ChannelFailed
from channels.inputs import Form
from channels.slack import connection, files, reply
from channels.slack.api import BotIdentity, SlackApi
from channels.slack.catch_up import CatchUp, Nowhere, Places
from channels.slack.connection import ConnectionTiming, run_http, run_socket
from channels.slack.errors import FAILURES, Meaning, code_of, meaning_of
from channels.slack.intake import Intake
from channels.slack.logs import sdk_logger
from channels.slack.managers import manages
from channels.slack.manifest import COMMAND
from channels.slack.membership import SlackMembership
from channels.slack.notice import ResponseUrls, SlackNotice
from channels.slack.parse import CHANNEL, Bot, asker
from channels.slack.people import People, administers
from channels.slack.press import Presses
from channels.slack.reply import ReplyTiming, SlackReply
from channels.slack.settings import SlackSettings
from channels.slack.threads import Threads
from channels.trust import Trust

log = logging.getLogger(__name__)

_CAPABILITIES: Final = Capabilities(
    reactions=True,
    buttons=True,
    commands_in_threads=False,
    command_prefix=f"{COMMAND} ",
    forms=True,
    comes_again=False,
)
_WAITING = "eyes"
_DONE_ALREADY: Final = frozenset({"already_reacted", "no_reaction"})
_NOT_NOW: Final = frozenset({Meaning.NOT_SENT, Meaning.UNCERTAIN, Meaning.RATE_LIMITED})


class SlackChannel:
    """One app. To be used in one event loop. `places`: where it takes part, as stored."""

    def __init__(
        self,
        settings: SlackSettings,
        *,
        places: Places | None = None,
        connecting: ConnectionTiming = connection.DEFAULT_TIMING,
        replying: ReplyTiming = reply.DEFAULT_TIMING,
    ) -> None:
        self._settings = settings
        self._places = places or Nowhere()
        self._connecting = connecting
        self._replying = replying
        self._api = SlackApi(settings)
        self._people = People(self._api)
        self.membership = SlackMembership(self._api, self._people)
        self._threads = Threads(self._api, self._people)
        self._urls = ResponseUrls()
        self._errands = Errands()
        self._replies: WeakSet[SlackReply] = WeakSet()
        self._presses = Presses(self._api, self._urls, self._errands, self._in_the_making)
        self._connected = False
        self._trust = Trust()
        self._wanted: Wanted = _nothing

    @property
    def name(self) -> str:
        """`slack`."""
        return CHANNEL

    @property
    def capabilities(self) -> Capabilities:
        """Reactions and buttons; no slash commands in threads."""
        return _CAPABILITIES

    @property
    def receiving(self) -> bool:
        """Whether the websocket is connected, as of the last look at it; over HTTP whether the port
        is open."""
        return self._connected

    async def identify(self) -> BotIdentity:
        """Ask Slack who the bot is, which also checks the bot token. Raises `ChannelFailed`,
        `ChannelUnavailable`."""
        return await self._api.identify()

    async def listen(self, receive: Receive) -> None:
        """Connect and receive until cancelled."""
        try:
            await self._listen(receive)
        except ChannelFailed as error:
            raise self._trust.after(error) from None

    async def _listen(self, receive: Receive) -> None:
        identity = await self.identify()
        log.info("connected as %s in workspace %s", identity.user_id, identity.team_id)
        bot = Bot(identity.team_id, identity.user_id)
        intake = Intake(
            bot,
            receive,
            lambda message: self._wanted(message),
            people=self._people,
            threads=self._threads,
            urls=self._urls,
        )
        catch_up = CatchUp(self._api, bot, self._places, intake.found)
        intake.missed = catch_up.missed
        await catch_up.prepare()
        reading = asyncio.create_task(catch_up.run(), name="what was missed on Slack")
        try:
            await self._receive_through(intake, catch_up)
        finally:
            intake.close()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await catch_up.note_connected()

    async def _receive_through(self, intake: Intake, catch_up: CatchUp) -> None:
        settings = self._settings
        secret = settings.signing_secret
        app = AsyncApp(
            name=sdk_logger().name,  # by which Bolt names more loggers
            client=self._api.client,
            signing_secret=secret.get_secret_value() if secret else "",
            before_authorize=intake.take,
            logger=sdk_logger(),
        )

        def see(connection: str | None) -> None:
            self._connected = connection is not None
            if self._connected:
                self._trust.works()
            catch_up.see(connection)

        if settings.app_token is not None:
            token = settings.app_token.get_secret_value()
            await run_socket(self._api, app, token, self._connecting, see)
        elif settings.http_port is not None:
            await run_http(app, settings.http_port, self._connecting.look_s, see)

    def overhear(self, wanted: Wanted) -> None:
        """Whatever else is said in a channel is left out, and nobody looked up for it."""
        self._wanted = wanted

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
        """Start a reply. The answer to a slash command goes to the person alone, in a direct
        message as a message like any other."""
        one = asker(reply_to)
        notice = None if one is None else SlackNotice(self._api, to, one, self._urls, journal)
        if notice is not None and not to.private:
            return notice
        made = SlackReply(
            self._api,
            to,
            reply_to=reply_to if notice is None else None,
            stop=stop,
            errands=self._errands,
            otherwise=notice,
            journal=journal,
            resumed=resumed,
            timing=self._replying,
        )
        self._replies.add(made)
        return made

    def _in_the_making(self, ts: str) -> bool:
        return any(one.owns(ts) for one in self._replies)

    async def mark_waiting(self, to: Address, message_id: str, waiting: bool) -> Mark:
        """Set or clear 👀 on a message."""
        if asker(message_id) is not None:
            return "refused"
        params = {"channel": to.chat, "timestamp": message_id, "name": _WAITING}
        try:
            await self._api.write("reactions.add" if waiting else "reactions.remove", params)
        except FAILURES as error:
            code = code_of(error)
            log.debug("no reaction on message %s: %s", message_id, code)
            if code in _DONE_ALREADY:
                return "taken"
            return "later" if meaning_of(error) in _NOT_NOW else "refused"
        return "taken"

    async def is_admin(
        self, to: Address, person: str, *, managing: bool = False, named: Collection[str] = ()
    ) -> bool | None:
        """Whether the person is an admin or owner of the workspace; `managing`: or has made the
        channel, or is `named`, or in a user group (S…) that is. Asked anew each time."""
        if managing:
            return await manages(self._api, to, person, named)
        return await administers(self._api, to.account, person)

    async def answer_press(
        self, message: InboundMessage, text: str, *, spent: bool = False
    ) -> None:
        """Show a notice to the person who pressed, and take spent buttons away. The press itself is
        acknowledged already."""
        await self._presses.answer(message, text, spent=spent)

    async def replace(self, message: InboundMessage, reply: OutboundReply) -> bool:
        """Update the message whose button was pressed, also one that only this person sees."""
        return await self._presses.replace(message, reply)

    async def open_form(self, message: InboundMessage, form: Form) -> bool:
        """Open a modal."""
        return await self._presses.open_form(message, form)

    async def private_with(self, to: Address, person: str) -> Address | None:
        """The direct message, opened where there is none."""
        try:
            answer = await self._api.write("conversations.open", {"users": person})
        except FAILURES as error:
            log.warning("no direct message with %s: %s", person, code_of(error))
            return None
        return Address(CHANNEL, to.account, str(answer["channel"]["id"]))

    async def fetch(self, attachment: Attachment) -> bytes:
        """The file's bytes."""
        return await files.fetch(self._api, attachment, self._replying.repeats_s)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._errands.aclose()
        await self._api.aclose()


async def _nothing(message: InboundMessage) -> bool:
    """Until somebody wants what is not for us."""
    return False
