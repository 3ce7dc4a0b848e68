"""The transport of the model SDKs, over real sockets: connections that servers close, and bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest

from agent.providers.transport import AiohttpTransport

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


@asynccontextmanager
async def serving(serve: Serve) -> AsyncGenerator[str]:
    """A server's address; `serve` gets each connection, which then ends."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=AiohttpTransport(None), timeout=5) as client:
        yield client


async def test_a_connection_that_a_server_closes_after_each_answer_fails_no_call(
    http: httpx2.AsyncClient,
) -> None:
    """As llama.cpp does, without saying so: the next call of a conversation follows at once."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await read_request(reader))
        writer.write(ANSWER)

    async with serving(serve) as url:
        for number in range(20):
            response = await http.post(url, content=f"{number}")
            assert response.text == "hi"
    assert asked == [f"{number}".encode() for number in range(20)]


async def test_a_connection_that_ends_under_a_request_is_replaced_by_another(
    http: httpx2.AsyncClient,
) -> None:
    """The server has read the second request, and closes without a word."""
    asked: list[list[bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append([await read_request(reader)])
        writer.write(ANSWER)
        asked[-1].append(await read_request(reader))

    async with serving(serve) as url:
        for body in ("first", "second"):
            assert (await http.post(url, content=body)).text == "hi"
        assert asked == [[b"first", b"second"], [b"second"]]
        await http.aclose()


async def test_a_new_connection_that_ends_without_an_answer_is_a_failure(
    http: httpx2.AsyncClient,
) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await read_request(reader))

    async with serving(serve) as url:
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.post(url, content="once")
    assert asked == [b"once"]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:1/", httpx2.ConnectError),
        ("https://127.0.0.1:{port}/", httpx2.ConnectError),
        ("http://127.0.0.1:{port}/", httpx2.ReadTimeout),
    ],
)
async def test_failures_are_those_of_httpx2(
    url: str, error: type[Exception], http: httpx2.AsyncClient
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if url.startswith("https"):
            writer.write(b"no TLS here")
        await reader.read()

    async with serving(serve) as address:
        port = address.rpartition(":")[2].strip("/")
        with pytest.raises(error):
            await http.post(url.format(port=port), content="x", timeout=0.05)


async def test_a_stream_is_read_as_it_comes_and_ends_early_without_harm(
    http: httpx2.AsyncClient,
) -> None:
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        assert await reader.read() == b"", "the client has closed the connection"
        left.set()

    async with serving(serve) as url:
        async with http.stream("POST", url, content="x") as response:
            async for part in response.aiter_bytes():
                assert part == b"first"
                break
        await left.wait()


async def test_a_body_of_megabytes_arrives_whole(http: httpx2.AsyncClient) -> None:
    """Pictures are part of it; warnings are errors here."""
    body = b"picture " * 400_000
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await read_request(reader))
        writer.write(ANSWER)

    async with serving(serve) as url:
        assert (await http.post(url, content=body)).text == "hi"
    assert asked == [body]
