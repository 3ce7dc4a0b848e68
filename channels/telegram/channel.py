"""Telegram as a `Channel`: one bot account, by long polling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence

from telegram import BotCommand, ReactionTypeEmoji
from telegram.constants import BotCommandLimit, CallbackQueryLimit, ReactionEmoji
from telegram.error import TelegramError

from channels.base import (
    Address,
    Attachment,
    Capabilities,
    InboundMessage,
    Mark,
    OutboundReply,
    Press,
    Receive,
    ReplyJournal,
    Resumed,
    StopControl,
    Wanted,
)
from channels.chunking import Part
from channels.errands import Errands
from channels.errors import ChannelError, ChannelFailed
from channels.inputs import Form
from channels.telegram.api import Api, build_api
from channels.telegram.compose import compose
from channels.telegram.deliver import Delivery
from channels.telegram.errors import Meaning, listening_failed, meaning_of, name_of
from channels.telegram.files import fetch
from channels.telegram.keyboard import keyboard_of
from channels.telegram.limiter import Dropped
from channels.telegram.membership import TelegramMembership
from channels.telegram.parse import CHANNEL, BotIdentity
from channels.telegram.poll import Poller, stored
from channels.telegram.reply import TelegramReply
from channels.telegram.settings import TelegramSettings
from channels.trust import Trust

log = logging.getLogger(__name__)

MAX_MENU_COMMANDS = 8

Menu = Sequence[tuple[str, str]]
MenuByLanguage = Mapping[str | None, Menu]

_NOT_NOW = frozenset({Meaning.NOT_SENT, Meaning.UNCERTAIN})
_CAPABILITIES = Capabilities(reactions=True, buttons=True, commands_in_threads=True, topics=True)


class TelegramChannel:
    """One bot. `menu` is the command menu: (command, description) pairs, at most 8, for everyone
    or by two-letter language code (None: for all other languages)."""

    def __init__(self, settings: TelegramSettings, *, menu: MenuByLanguage | Menu) -> None:
        self._menu: MenuByLanguage = menu if isinstance(menu, Mapping) else {None: menu}
        if any(len(commands) > MAX_MENU_COMMANDS for commands in self._menu.values()):
            raise ValueError(f"a command menu has at most {MAX_MENU_COMMANDS} entries")
        self._api: Api = build_api(settings)
        self.membership = TelegramMembership(self._api.bot, lambda: self.username)
        self._poller = Poller(self._api)
        self._identity: BotIdentity | None = None
        self._menu_is_set = False
        self._trust = Trust()
        self._errands = Errands()

    @property
    def name(self) -> str:
        """`telegram`."""
        return CHANNEL

    @property
    def capabilities(self) -> Capabilities:
        """Reactions, buttons, and commands everywhere."""
        return _CAPABILITIES

    @property
    def receiving(self) -> bool:
        """Whether getUpdates has returned within the last 90 s."""
        return self._poller.receiving

    @property
    def bot_id(self) -> str:
        """The bot's numeric id, which its token begins with: the `account` of its addresses."""
        return self._api.bot.token.partition(":")[0]

    @property
    def username(self) -> str | None:
        """The bot's name without `@`; None before the first connection."""
        return None if self._identity is None else self._identity.username

    @property
    def sees_all_group_messages(self) -> bool | None:
        """Whether privacy mode is off, so that mentions in groups arrive; None before the first
        connection."""
        return None if self._identity is None else self._identity.sees_all_group_messages

    async def identify(self) -> BotIdentity:
        """Ask Telegram who the bot is, which also checks the token. Raises `ChannelFailed`,
        `ChannelUnavailable`."""
        try:
            user = await self._api.bot.get_me()
        except TelegramError as error:
            raise listening_failed(error) from None
        sees_all = bool(user.can_read_all_group_messages)
        self._identity = BotIdentity(user.id, user.username or "", sees_all)
        self._trust.works()
        return self._identity

    async def listen(self, receive: Receive) -> None:
        """Connect and receive until cancelled."""
        try:
            await self._listen(receive)
        except ChannelFailed as error:
            raise self._trust.after(error) from None

    async def _listen(self, receive: Receive) -> None:
        identity = await self.identify()
        log.info("connected as bot %d", identity.id)
        await self._set_menu()
        moves = asyncio.create_task(self._tell_moves(receive), name="chats that have moved")
        try:
            await self._poller.run(identity, receive)
        finally:
            moves.cancel()
            await asyncio.wait({moves})

    async def _tell_moves(self, receive: Receive) -> None:
        """Hand on what a refused request has told of a group's new id."""
        await self._api.moves.tell(self.bot_id, lambda move: stored(move, "a move", receive))

    def overhear(self, wanted: Wanted) -> None:
        """Everything that Telegram shows to the bot is handed on as it is."""

    def open_reply(
        self,
        to: Address,
        *,
        reply_to: str | None,
        stop: StopControl | None = None,
        journal: ReplyJournal | None = None,
        resumed: Resumed | None = None,
        silent: bool = False,
    ) -> TelegramReply:
        """Start a reply. `stop.request_id` has at most 59 bytes."""
        return TelegramReply(
            self._api.bot,
            to,
            reply_to=reply_to,
            stop=stop,
            errands=self._errands,
            journal=journal,
            resumed=resumed,
            silent=silent,
        )

    async def mark_waiting(self, to: Address, message_id: str, waiting: bool) -> Mark:
        """Set or clear 👀 on a message; on none where the chat's number has changed since."""
        if not message_id:
            return "refused"
        reaction = [ReactionTypeEmoji(ReactionEmoji.EYES)] if waiting else []
        try:
            await self._api.bot.set_message_reaction(
                int(to.chat), int(message_id), reaction, rate_limit_args="reaction"
            )
        except Dropped:
            return "later"
        except TelegramError as error:
            log.debug("no reaction on message %s: %s", message_id, type(error).__name__)
            return "later" if meaning_of(error) in _NOT_NOW else "refused"
        return "taken"

    async def answer_press(
        self, message: InboundMessage, text: str, *, spent: bool = False
    ) -> None:
        """Show a notice to the person who pressed, cut at 200 characters; `spent` buttons go as soon
        as the chat allows."""
        if message.press is None:
            return
        if spent and message.press.message_id:
            self._errands.start(self._take_buttons(message), "spent buttons")
        await self._rest(message.press, text)

    async def replace(self, message: InboundMessage, reply: OutboundReply) -> bool:
        """Edit the message whose button was pressed."""
        press, items = message.press, compose(reply)
        if press is None or not press.message_id or len(items) != 1:
            return False
        content = items[0].content
        if not isinstance(content, Part):
            return False
        self._errands.start(self._rest(press, ""), "a press")
        try:
            return await Delivery(self._api.bot, message.address).edit(
                int(press.message_id),
                content,
                urgency="answer",
                keyboard=keyboard_of(reply.buttons),
            )
        except ChannelError as error:
            log.info("message %s stays as it is: %s", press.message_id, type(error).__name__)
            return False

    async def _rest(self, press: Press, text: str) -> None:
        """The button comes to rest, with a notice."""
        notice = text[: CallbackQueryLimit.ANSWER_CALLBACK_QUERY_TEXT_LENGTH]
        try:
            await self._api.bot.answer_callback_query(press.id, notice, rate_limit_args="control")
        except TelegramError as error:
            log.warning("press %s was not answered: %s", press.id, name_of(error))

    async def _take_buttons(self, message: InboundMessage) -> None:
        press = message.press
        if press is None:
            return
        try:
            await Delivery(self._api.bot, message.address).remove_buttons(int(press.message_id))
        except ChannelError as error:
            log.info("the buttons of message %s stay: %s", press.message_id, type(error).__name__)

    async def open_form(self, message: InboundMessage, form: Form) -> bool:
        """Telegram has none."""
        return False

    async def is_admin(
        self, to: Address, person: str, *, managing: bool = False, named: Collection[str] = ()
    ) -> bool | None:
        """Whether Telegram lists the person among the administrators of the group; `managing`: those
        who may change its info, and who is `named`. About one member a bot is told for certain only
        where it is an administrator itself; the list it always gets. Whoever writes as the group is
        one of them, anonymously."""
        if to.private or person == to.chat:
            return not to.private
        if managing and person in named:
            return True
        try:
            admins = await self._api.bot.get_chat_administrators(int(to.chat))
        except TelegramError as error:
            log.warning("who administers chat %s is not known: %s", to.chat, name_of(error))
            return None
        return any(
            str(admin.user.id) == person
            and (not managing or getattr(admin, "can_change_info", True))  # an owner may
            for admin in admins
        )

    async def private_with(self, to: Address, person: str) -> Address | None:
        """Its id is the person's. Whether they have ever written there shows when something is sent;
        whoever writes as the group has none."""
        return None if person.startswith("-") else Address(CHANNEL, to.account, person)

    async def fetch(self, attachment: Attachment) -> bytes:
        """An image up to 20 MB, checked to be one, or a text up to 1 MB."""
        return await fetch(self._api.bot, attachment)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._errands.aclose()
        await self._api.aclose()

    async def _set_menu(self) -> None:
        """Once in the channel's life; the bot works without it."""
        if self._menu_is_set:
            return
        try:
            for language, commands in self._menu.items():
                await self._api.bot.set_my_commands(
                    [BotCommand(command, _shortened(text)) for command, text in commands],
                    language_code=language,
                )
        except TelegramError as error:
            log.warning("the command menu was not set: %s", name_of(error))
            return
        self._menu_is_set = True


def _shortened(description: str) -> str:
    return description[: BotCommandLimit.MAX_DESCRIPTION]
