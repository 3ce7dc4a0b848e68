"""Which content blocks Anthropic's Messages API takes, and in which words it refuses the rest."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from PIL import Image

from tests.servers.llm_request import Refused, missing
from tests.servers.llm_script import Json

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,200}")
MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAGIC = {  # https://en.wikipedia.org/wiki/List_of_file_signatures
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
TAGS = {
    "user": ("document", "image", "search_result", "text", "tool_result"),
    "assistant": ("redacted_thinking", "text", "thinking", "tool_use"),
}
KEYS = {  # the fields of each block; (required, optional)
    "text": ({"text"}, {"cache_control", "citations"}),
    "image": ({"source"}, {"cache_control", "transformations"}),
    "document": ({"source"}, {"cache_control", "citations", "context", "title"}),
    "search_result": ({"content", "source", "title"}, {"cache_control", "citations"}),
    "tool_use": ({"id", "name", "input"}, {"cache_control", "caller", "toolset_name"}),
    "tool_result": ({"tool_use_id"}, {"cache_control", "content", "is_error", "toolset_name"}),
    "thinking": ({"thinking", "signature"}, set[str]()),
    "redacted_thinking": ({"data"}, set[str]()),
}


@dataclass
class BlockRules:
    """What a test may set about blocks."""

    max_image_bytes: int = 5 * 1024 * 1024  # of the base64 text
    max_image_side: int = 8_000  # pixels
    many_images: int = 20  # in one request; with more of them their sides may have less
    max_side_of_many: int = 2_000


def check_text(where: str, text: Any) -> None:
    """Text that is empty or white space is refused, wherever it stands."""
    if not isinstance(text, str):
        raise Refused(f"{where}: Input should be a valid string")
    part = where.split(".", 1)[0]
    if not text:
        raise Refused(f"{part}: text content blocks must be non-empty")
    if not text.strip():
        raise Refused(f"{part}: text content blocks must contain non-whitespace text")


def check_system(system: Any) -> None:
    """The system prompt: a string, or a list of text blocks."""
    if system is None or isinstance(system, str):
        return
    for index, block in enumerate(system):
        if block.get("type") != "text":
            raise Refused(f"system.{index}.type: Input should be 'text'")
        check_keys(f"system.{index}", block)
        check_text(f"system.{index}.text", block["text"])


def check_content(index: int, role: str, content: Any, rules: BlockRules) -> None:
    """The content of a message: a string, or a list of blocks fit for its role."""
    if isinstance(content, str):
        if content:  # an empty message is judged by its place
            check_text(f"messages.{index}.content", content)
        return
    if not isinstance(content, list):
        raise Refused(f"messages.{index}.content: Input should be a valid list")
    for place, block in enumerate(content):
        check_block(f"messages.{index}.content.{place}", role, block, rules)


def check_block(where: str, role: str, block: Any, rules: BlockRules) -> None:
    """One block of a message."""
    if not isinstance(block, dict):
        raise Refused(f"{where}: Input should be a valid dictionary")
    kind = block.get("type")
    if kind in ("tool_use", "tool_result") and kind not in TAGS[role]:
        other = "assistant" if role == "user" else "user"
        raise Refused(f"{where}: `{kind}` blocks can only be in `{other}` messages")
    if kind not in TAGS[role]:
        tags = ", ".join(f"'{tag}'" for tag in TAGS[role])
        raise Refused(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {tags}"
        )
    check_keys(where, block)
    if kind == "text":
        check_text(f"{where}.text.text", block["text"])
        if role == "user" and block.get("citations"):
            raise Refused(f"{where}.text.citations: citations are not allowed in user messages")
    elif kind == "image":
        check_image(where, block, rules)
    elif kind == "tool_use":
        check_tool_use(where, block)
    elif kind == "tool_result":
        check_tool_result(where, block, rules)


def check_keys(where: str, block: Json) -> None:
    """The fields of a block: all that it needs, none that the API does not know."""
    kind = block["type"]
    required, optional = KEYS[kind]
    for key in sorted(required):
        if block.get(key) is None:
            raise missing(f"{where}.{kind}.{key}")
    for key in block:
        if key not in required | optional | {"type"}:
            raise Refused(f"{where}.{kind}.{key}: Extra inputs are not permitted")


def check_tool_use(where: str, block: Json) -> None:
    """A call: id and name by their patterns, an object as input."""
    check_id(f"{where}.tool_use.id", block["id"])
    if not isinstance(block["name"], str) or not NAME.fullmatch(block["name"]):
        raise Refused(
            f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'"
        )
    if not isinstance(block["input"], dict):
        raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")


def check_id(where: str, id_: Any) -> None:
    """An id of a call."""
    if not isinstance(id_, str) or not ID.fullmatch(id_):
        raise Refused(f"{where}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def check_tool_result(where: str, block: Json, rules: BlockRules) -> None:
    """A result: a string, or texts and images; an error says something, and only in text."""
    check_id(f"{where}.tool_result.tool_use_id", block["tool_use_id"])
    content = block.get("content")
    failed = block.get("is_error") is True
    if failed and not content:
        raise Refused(f"{where}.tool_result: content cannot be empty if `is_error` is true")
    if isinstance(content, list):
        for place, part in enumerate(content):
            inner = f"{where}.tool_result.content.{place}"
            check_block(inner, "user", part, rules)
            if part["type"] == "tool_result":
                raise Refused(f"{inner}: `tool_result` blocks cannot be nested")
            if failed and part["type"] != "text":
                raise Refused(
                    f"{where}.tool_result: all content must be type 'text' if 'is_error' is true"
                )


def check_image(where: str, block: Json, rules: BlockRules) -> None:
    """A base64 image: a media type that fits the data, and its size."""
    source = block["source"]
    if source.get("type") != "base64":
        return
    if source.get("media_type") not in MEDIA_TYPES:
        raise Refused(
            f"{where}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', "
            "'image/gif' or 'image/webp'"
        )
    data = source.get("data", "")
    if len(data) > rules.max_image_bytes:
        raise Refused(
            f"{where}.image.source.base64: image exceeds {rules.max_image_bytes // 1024**2} MB "
            f"maximum: {len(data)} bytes > {rules.max_image_bytes} bytes"
        )
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(f"{where}.image.source.base64.data: Invalid base64 data") from error
    actual = next((kind for head, kind in MAGIC.items() if raw.startswith(head)), None)
    if actual is None:
        raise Refused("Could not process image")
    if actual != source["media_type"]:
        raise Refused(
            f"{where}.image.source.base64.data: The image was specified using the "
            f"{source['media_type']} media type, but the image appears to be a {actual} image"
        )


def check_sides(messages: list[Json], rules: BlockRules) -> None:
    """The sides of all images in pixels; what has no readable size passes."""
    images = list(_images(messages))
    many = len(images) > rules.many_images
    most = rules.max_side_of_many if many else rules.max_image_side
    for where, data in images:
        if max(_size(data)) > most:
            raise Refused(
                f"{where}.image.source.base64.data: At least one of the image dimensions exceed "
                f"max allowed size{' for many-image requests' if many else ''}: {most} pixels"
            )


def _images(messages: list[Json]) -> Iterator[tuple[str, bytes]]:
    """Where each image stands, and its file."""
    for index, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for place, block in enumerate(blocks):
            where = f"messages.{index}.content.{place}"
            yield from _image_of(where, block)
            if block["type"] == "tool_result" and isinstance(block.get("content"), list):
                for inner, part in enumerate(block["content"]):
                    yield from _image_of(f"{where}.tool_result.content.{inner}", part)


def _image_of(where: str, block: Json) -> Iterator[tuple[str, bytes]]:
    if block["type"] == "image" and block["source"].get("type") == "base64":
        yield where, base64.b64decode(block["source"]["data"])


def _size(data: bytes) -> tuple[int, int]:
    try:
        with Image.open(BytesIO(data)) as image:
            return image.size
    except (OSError, ValueError):
        return 0, 0
