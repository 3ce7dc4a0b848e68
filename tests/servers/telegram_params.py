"""Parameters of a call: from a query string, a form, a multipart body or JSON, to typed values."""

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.web_request import FileField

from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import ApiError


@dataclass(frozen=True)
class Upload:
    """A file of a multipart body."""

    name: str
    content: bytes
    mime_type: str


@dataclass(frozen=True)
class Params:
    """Values as sent; strings are read as the documented type on access."""

    values: Json
    files: dict[str, Upload] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """A String."""
        value = self.values.get(name)
        return default if value is None else value if isinstance(value, str) else json.dumps(value)

    def integer(self, name: str, default: int = 0) -> int:
        """An Integer; what is no number counts as absent, as with the real server."""
        try:
            return int(self.values.get(name, default))
        except (TypeError, ValueError):
            return default

    def boolean(self, name: str) -> bool:
        """A Boolean: true, yes or 1."""
        return str(self.values.get(name, "")).lower() in ("true", "yes", "1")

    def parsed(self, name: str, what: str = "object") -> Any:
        """A JSON-serialised object or list, None if absent. Raises `ApiError` for broken JSON."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except ValueError:
            raise ApiError(400, f"Bad Request: can't parse {what} JSON object") from None


async def read(request: web.Request) -> Params:
    """The parameters of a request, those of the query string included."""
    values: Json = dict(request.query)
    files: dict[str, Upload] = {}
    if request.content_type == "application/json":
        raw = await request.read()
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            raise ApiError(400, "Bad Request: can't parse request JSON object") from None
        if isinstance(body, dict):
            values |= body
    else:
        for name, value in (await request.post()).items():
            if isinstance(value, FileField):
                files[name] = Upload(value.filename, value.file.read(), value.content_type)
                value.file.close()
            else:
                values[name] = value
    return Params(values, files)
