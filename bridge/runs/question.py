"""Inbound messages of one sender -> the one user message that a run answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.messages import Block, Message, TextBlock
from bridge.runs.pictures import Pictures
from channels.base import Attachment, Channel, InboundMessage
from channels.errors import FileRefused
from memory.text.quoting import ATTACHED, QUOTED

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
    said = _said(question.messages)
    if question.speaker is not None:
        said = f"[{question.speaker}] {said}".rstrip()
    if said:
        blocks.append(TextBlock(said))
    return Message("user", tuple(blocks))


def _said(messages: Sequence[InboundMessage]) -> str:
    """Their words: a text that its client has cut as it was, messages apart by an empty line; of
    several captions in an album each names its picture."""
    texts: list[str] = []
    captions = _captioned(messages)
    for before, message in zip((None, *messages), messages, strict=False):
        words = _words(message)
        if words.strip():
            words = captions.get(message.event, "") + words
        if before is not None and texts and _goes_on(before, message):
            texts[-1] += ("" if words[:1].isspace() else before.seam) + words
            continue
        if message.quote:
            quoted = _quoted(message.quote)
            texts.append(f"{QUOTED}\n{quoted}")
        texts.append(words)
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _words(message: InboundMessage) -> str:
    return message.command.args if message.command else message.text


def _captioned(messages: Sequence[InboundMessage]) -> dict[str, str]:
    """`[Image 3] ` for the event of each message of an album that has several captions. Pictures
    count from 1 in the order in which the model gets them."""
    captions = Counter(message.album for message in messages if _words(message).strip())
    labels: dict[str, str] = {}
    number = 1
    for message in messages:
        images = sum(file.kind == "image" for file in message.attachments)
        if message.album is not None and captions[message.album] > 1 and images:
            labels[message.event] = f"[Image {number}] "
        number += images
    return labels


def _goes_on(before: InboundMessage, message: InboundMessage) -> bool:
    """Whether a message is the next part of a text that its client has cut: sent at once, and with
    nothing else to it."""
    alone = not (message.command or message.quote or message.attachments or before.album)
    alike = alone and message.own_words == before.own_words
    pause_s = (message.sent_at - before.sent_at).total_seconds()
    return alike and before.more_expected_s > 0 and pause_s <= before.more_expected_s


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
    return TextBlock(f"{ATTACHED}{_file_name(attachment.name)}:]\n{text}")


def _file_name(name: str) -> str:
    return "".join(c for c in name if c.isalnum() or c in " ._-")[:80] or "without a name"
