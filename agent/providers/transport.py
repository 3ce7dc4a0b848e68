"""The calls of the model SDKs on aiohttp, by httpx2's own way to bring another transport.

httpx2's default passes each chunk of an answer through several layers of Python, which took more of
the event loop's time than all that is ours (docs/decisions/0021). To be imported with an SDK: httpx2
takes its time.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import httpx2

IDLE_S = 5  # then a connection is closed: by us, so that a server does not while a request leaves
MOST_HEADER = 65_536  # bytes of one line; aiohttp takes 8,190, and policies in headers grow

# Of aiohttp's errors and httpx2's: the first that fits.
_MEANT: tuple[tuple[type[Exception], type[httpx2.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx2.ConnectTimeout),
    (TimeoutError, httpx2.ReadTimeout),
    (aiohttp.ClientProxyConnectionError, httpx2.ProxyError),
    (aiohttp.ClientHttpProxyError, httpx2.ProxyError),
    (aiohttp.ClientConnectorError, httpx2.ConnectError),
    (aiohttp.ClientOSError, httpx2.ReadError),
    (aiohttp.InvalidURL, httpx2.UnsupportedProtocol),
    (aiohttp.ClientError, httpx2.RemoteProtocolError),
)


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Without a limit of calls at a time. `proxy`: URL of an HTTP proxy."""

    def __init__(self, proxy: str | None) -> None:
        self._proxy = proxy
        self._context = httpx2.create_ssl_context(trust_env=False)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The head of the answer; its body is read as it comes."""
        with _as_httpx2():
            response = await self._answered(request)
        return httpx2.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=_Body(response),
            request=request,
            extensions={"reason_phrase": (response.reason or "").encode("latin-1", "replace")},
        )

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _answered(self, request: httpx2.Request) -> aiohttp.ClientResponse:
        """Once more where the connection had been used before, and ended without a word of an answer:
        some servers close it after each, and whether they have is not known before a request leaves.
        A model that was asked twice has answered once."""
        body = await request.aread()
        while True:
            kept = SimpleNamespace(used=False)
            try:
                return await self._open().request(
                    request.method,
                    str(request.url),
                    headers=request.headers.multi_items(),
                    # As a file: bytes of more than 1 MB bring a warning, for they are sent at once.
                    data=io.BytesIO(body) if body else None,
                    timeout=_timeout(request.extensions.get("timeout") or {}),
                    proxy=self._proxy,
                    allow_redirects=False,
                    trace_request_ctx=kept,
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not kept.used:
                    raise

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            reused = aiohttp.TraceConfig()
            reused.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=IDLE_S, ssl=self._context
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                max_line_size=MOST_HEADER,
                max_field_size=MOST_HEADER,
                trace_configs=[reused],
            )
        return self._session


class _Body(httpx2.AsyncByteStream):
    """What comes of an answer, as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2():
            async for data in self._response.content.iter_any():
                yield data

    async def aclose(self) -> None:
        """The connection is kept where the answer was read to its end."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


async def _note_reuse(
    session: aiohttp.ClientSession, context: Any, params: aiohttp.TraceConnectionReuseconnParams
) -> None:
    context.trace_request_ctx.used = True


def _timeout(seconds: Mapping[str, float | None]) -> aiohttp.ClientTimeout:
    """As httpx2 has it in a request's extensions."""
    return aiohttp.ClientTimeout(sock_connect=seconds.get("connect"), sock_read=seconds.get("read"))


@contextmanager
def _as_httpx2() -> Generator[None]:
    """aiohttp's errors as those that the SDKs expect."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError) as error:
        meant = next(meant for raised, meant in _MEANT if isinstance(error, raised))
        raise meant(f"{type(error).__name__}: {error}") from error
