"""Inbound messages of one sender -> the one user message that a run answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.messages import Block, Message, TextBlock
from bridge.pictures import Pictures
from channels.base import Attachment, Channel, InboundMessage
from channels.errors import FileRefused

# What people may send in one message, in characters; beyond it the bot asks for parts. Telegram cuts
# at 4,096, Slack at 40,000.
MOST_CHARACTERS = 100_000


class NothingToRetry(Exception):
    """/retry came to a conversation without a question."""


class GivenUp(Exception):
    """The process has died each time that it tried to answer this question."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a turn is about: messages of one sender, oldest first, and how the model sees them
    (`speaker` is None in private chats)."""

    messages: tuple[InboundMessage, ...]
    speaker: str | None

    @property
    def newest(self) -> InboundMessage:
        """The message that the reply refers to."""
        return self.messages[-1]


async def user_message(question: Question, channel: Channel, pictures: Pictures) -> Message:
    """Fetch what is attached and put everything into one user message; pictures as they are sent.

    Raises `FileRefused`. Quotes and documents are marked as such: their words are not the
    sender's.
    """
    blocks: list[Block] = []
    for message in question.messages:
        blocks += [await _attached(file, channel, pictures) for file in message.attachments]
    texts = [part for message in question.messages for part in _texts(message)]
    said = "\n\n".join(texts)
    if question.speaker is not None:
        said = f"[{question.speaker}] {said}".rstrip()
    if said:
        blocks.append(TextBlock(said))
    return Message("user", tuple(blocks))


def _texts(message: InboundMessage) -> Sequence[str]:
    words = message.command.args if message.command else message.text
    quoted = f"[In reply to this message, which is not mine:]\n{_quoted(message.quote)}"
    return [text for text in (quoted if message.quote else "", words.strip()) if text]


def _quoted(text: str | None) -> str:
    return "\n".join(f"> {line}" for line in (text or "").splitlines())


async def _attached(attachment: Attachment, channel: Channel, pictures: Pictures) -> Block:
    await pictures.check_room()
    data = await channel.fetch(attachment)
    if attachment.kind == "image":
        return await pictures.fit(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileRefused("no_text") from None
    return TextBlock(f"[The attached file {_file_name(attachment.name)}:]\n{text}")


def _file_name(name: str) -> str:
    return "".join(c for c in name if c.isalnum() or c in " ._-")[:80] or "without a name"
