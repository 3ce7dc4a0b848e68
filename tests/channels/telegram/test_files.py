"""Files that people attach: what is had, and why it is not."""

from __future__ import annotations

import pytest

from channels.base import Attachment
from channels.errors import FileRefused
from channels.telegram import files
from channels.telegram.channel import TelegramChannel
from tests.channels.telegram.conftest import Inbox
from tests.servers.telegram import Chat, TelegramServer

pytestmark = pytest.mark.usefixtures("listening")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_AGAIN_S", (0.01, 0.01))


@pytest.fixture
def chat(server: TelegramServer) -> Chat:
    return server.private(server.user("Ana"))


async def attached(inbox: Inbox) -> Attachment:
    (message,) = await inbox.wait_for(1)
    (attachment,) = message.attachments
    return attachment


@pytest.fixture
async def photo(chat: Chat, inbox: Inbox) -> Attachment:
    chat.send_photo(caption="what is this?")
    return await attached(inbox)


async def refusal(channel: TelegramChannel, attachment: Attachment) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        await channel.fetch(attachment)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


async def test_a_photo_is_downloaded_in_full_size(
    channel: TelegramChannel, photo: Attachment
) -> None:
    data = await channel.fetch(photo)
    assert data.startswith(b"\xff\xd8\xff")
    assert len(data) == photo.size_bytes


async def test_a_text_file_is_downloaded_as_it_is(
    channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    chat.send_document("a.md", "# Ü".encode(), mime_type="text/markdown")
    assert await channel.fetch(await attached(inbox)) == "# Ü".encode()


async def test_what_only_claims_to_be_an_image_is_no_picture(
    channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    chat.send_document("a.png", b"<!DOCTYPE html>", mime_type="image/png")
    assert (await refusal(channel, await attached(inbox))).reason == "no_picture"


@pytest.mark.parametrize(
    ("name", "mime", "size", "limit"),
    [
        ("a.txt", "text/plain", 1_000_001, "1 MB"),
        ("a.png", "image/png", 20_000_001, "20 MB"),
        ("a.png", "image/png", 2_000_000_000, "20 MB"),
    ],
)
async def test_a_file_that_is_too_large_is_not_downloaded(
    server: TelegramServer,
    channel: TelegramChannel,
    chat: Chat,
    inbox: Inbox,
    name: str,
    mime: str,
    size: int,
    limit: str,
) -> None:
    chat.send_document(name, b"x", mime_type=mime, size=size)
    error = await refusal(channel, await attached(inbox))
    assert (error.reason, error.limit) == ("too_large", limit)
    assert server.calls_to("getFile") == []


async def test_a_size_that_comes_with_the_file_alone_counts_too(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    chat.send_document("a.txt", b"x" * 1_000_001, mime_type="text/plain")
    whole = await attached(inbox)
    unknown = Attachment(whole.kind, whole.ref, whole.name, whole.media_type)
    assert (await refusal(channel, unknown)).reason == "too_large"
    assert server.calls_to("download") == []
    server.files.get(whole.ref).size = 10  # it says less than it has
    error = await refusal(channel, unknown)
    assert (error.reason, error.limit) == ("too_large", "1 MB")


async def test_what_telegram_finds_too_big_is_too_large(
    channel: TelegramChannel, server: TelegramServer, chat: Chat, inbox: Inbox
) -> None:
    chat.send_document("a.png", PNG, mime_type="image/png", size=30 * 2**20)
    whole = await attached(inbox)
    error = await refusal(channel, Attachment("image", whole.ref, "a.png", "image/png"))
    assert (error.reason, error.limit) == ("too_large", "20 MB")


async def test_a_file_that_telegram_has_no_more_is_gone(
    server: TelegramServer, channel: TelegramChannel, photo: Attachment
) -> None:
    server.fail_next("download", status=404)
    assert (await refusal(channel, photo)).reason == "gone"
    unknown = Attachment("image", "no such id", "a.png", "image/png")
    assert (await refusal(channel, unknown)).reason == "gone"


async def test_a_file_without_a_place_to_have_it_from_is_gone(
    server: TelegramServer, channel: TelegramChannel, photo: Attachment
) -> None:
    server.files.get(photo.ref).path = ""
    assert (await refusal(channel, photo)).reason == "gone"


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("download", {"drop": True}),
        ("download", {"drop": True, "acted": True}),
        ("download", {"reset": True}),
        ("download", {"status": 502}),
        ("getFile", {"status": 500}),
        ("getFile", {"html": True}),
        ("getFile", {"drop": True}),
        ("getFile", {"status": 429, "parameters": {"retry_after": 0.01}}),
        ("download", {"html": True, "status": 302}),
    ],
)
async def test_a_passing_trouble_is_got_over_and_a_lasting_one_is_told(
    server: TelegramServer,
    channel: TelegramChannel,
    photo: Attachment,
    method: str,
    fault: dict[str, object],
) -> None:
    server.fail_next(method, count=2, **fault)  # type: ignore[arg-type]
    assert len(await channel.fetch(photo)) == photo.size_bytes
    # Twice the tries: a connection that was open before counts for none of them.
    server.fail_next(method, count=6, **fault)  # type: ignore[arg-type]
    assert (await refusal(channel, photo)).reason == "unavailable"


@pytest.mark.parametrize("status", [401, 429])
async def test_what_lasts_is_not_asked_for_again(
    server: TelegramServer, channel: TelegramChannel, photo: Attachment, status: int
) -> None:
    parameters = {"retry_after": 31} if status == 429 else None
    server.fail_next("getFile", status=status, parameters=parameters)
    assert (await refusal(channel, photo)).reason == "unavailable"
    assert len(server.calls_to("getFile")) == 1


async def test_without_a_connection_it_is_unavailable(
    server: TelegramServer, channel: TelegramChannel, photo: Attachment
) -> None:
    await server.stop()
    error = await refusal(channel, photo)
    assert error.reason == "unavailable"
    assert server.token not in repr(error)


async def test_no_refusal_tells_the_token(
    server: TelegramServer, channel: TelegramChannel, photo: Attachment
) -> None:
    for method, status in (("getFile", 400), ("getFile", 403), ("download", 404), ("getFile", 401)):
        server.fail_next(method, status=status)
        assert server.token not in repr(await refusal(channel, photo))
