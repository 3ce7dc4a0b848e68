"""PTB on aiohttp: what a failed request tells about whether it left, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import RequestData
from telegram.request._requestparameter import RequestParameter

from channels.errors import ChannelUnavailable
from channels.telegram.errors import Meaning, delivery_failed, meaning_of
from channels.telegram.request import AiohttpRequest, Patience

FINE = b'HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n{"ok": true, "result": "a"}'
ASKED = RequestData([RequestParameter("text", "hi", None)])

LONG_S, SHORT_S = 10, 0.1
SECRET = "/bot123:SECRET/sendMessage"

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await peer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def requests(
    *, connect_s: float = LONG_S, read_s: float = LONG_S, most: int = 4, proxy: str | None = None
) -> AsyncIterator[AiohttpRequest]:
    patience = Patience(connect_s=connect_s, write_s=0, upload_s=0, read_s=read_s)
    made = AiohttpRequest(ssl.create_default_context(), patience, most=most, proxy=proxy)
    yield made
    await made.shutdown()


async def failure(request: AiohttpRequest, root: str) -> TelegramError:
    with pytest.raises(TelegramError) as caught:
        await request.post(f"{root}{SECRET}", RequestData())
    assert "SECRET" not in str(caught.value)
    return caught.value


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("by_proxy", [False, True])
async def test_what_finds_nobody_has_not_left(by_proxy: bool) -> None:
    nobody = f"http://127.0.0.1:{unused_port()}"
    async with requests(proxy=nobody if by_proxy else None) as request:
        root = "http://telegram.invalid" if by_proxy else nobody
        assert meaning_of(await failure(request, root)) is Meaning.NOT_SENT


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"])
@pytest.mark.parametrize("reset", [False, True])
async def test_what_a_proxy_does_not_put_through_has_not_left(answer: bytes, reset: bool) -> None:
    """It refuses the way by itself, or breaks off before that is there."""

    async def proxy(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        if reset:
            writer.transport.abort()

    async with listening(proxy) as way, requests(proxy=way) as request:
        error = await failure(request, "https://telegram.invalid")
    assert isinstance(delivery_failed(error), ChannelUnavailable)
    assert meaning_of(error) is Meaning.NOT_SENT


async def test_what_gets_no_connection_in_time_has_not_left() -> None:
    """The backlog of a socket that nobody accepts from is full: the next one hangs."""
    with socket.socket() as busy, socket.socket() as first, socket.socket() as second:
        busy.bind(("127.0.0.1", 0))
        busy.listen(0)
        for taken in (first, second):
            taken.setblocking(False)
            taken.connect_ex(busy.getsockname())
        async with requests(connect_s=SHORT_S) as request:
            error = await failure(request, f"http://127.0.0.1:{busy.getsockname()[1]}")
    assert isinstance(error, TimedOut)
    assert meaning_of(error) is Meaning.NOT_SENT


async def test_what_waits_for_a_connection_that_others_hold_has_not_left() -> None:
    held = asyncio.Event()

    async def silent(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await held.wait()

    async with listening(silent) as root, requests(connect_s=0.5, most=1) as request:
        holding = asyncio.create_task(request.do_request(f"{root}/x", "POST", read_timeout=60))
        await asyncio.sleep(0)
        assert meaning_of(await failure(request, root)) is Meaning.NOT_SENT
        holding.cancel()
        held.set()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
@pytest.mark.parametrize("ending", ["silence", "end", "reset"])
async def test_what_breaks_off_after_the_request_may_have_taken_effect(
    answer: bytes, ending: str
) -> None:
    let_go = asyncio.Event()

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        if ending == "silence":
            await let_go.wait()
        elif ending == "reset":
            writer.transport.abort()

    read_s = SHORT_S if ending == "silence" else LONG_S
    async with listening(peer) as root, requests(read_s=read_s) as request:
        error = await failure(request, root)
        let_go.set()
    assert meaning_of(error) is Meaning.UNCERTAIN
    assert isinstance(error, TimedOut) == (ending == "silence")


async def test_a_connection_that_was_closed_after_its_answer_fails_no_request() -> None:
    """Within the same instant, and without a word in the answer's head."""

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(FINE)

    async with listening(peer) as root, requests() as request:
        for _ in range(20):
            assert await request.post(f"{root}{SECRET}", ASKED) == "a"


async def test_a_redirect_takes_the_token_nowhere() -> None:
    asked: list[bytes] = []

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(b"")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")

    async with listening(peer) as root, requests() as request:
        assert isinstance(await failure(request, root), NetworkError)
    assert len(asked) == 1


async def test_it_is_closed_and_opened_again() -> None:
    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(FINE)

    async with listening(peer) as root, requests() as request:
        assert await request.post(f"{root}{SECRET}") == "a"
        await request.shutdown()
        await request.shutdown()
        assert "closed" in str(await failure(request, root))
        await request.initialize()
        assert await request.post(f"{root}{SECRET}") == "a"
