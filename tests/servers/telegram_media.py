"""Files: what members and the bot send, and what getFile and the download give."""

import base64
import itertools
from dataclasses import dataclass

from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import ApiError

DOWNLOAD_LIMIT = 20 * 2**20  # core.telegram.org/bots/api#getfile: up to 20 MB
UPLOAD_LIMIT = 50 * 2**20  # core.telegram.org/bots/api#senddocument: up to 50 MB
PHOTO_LIMIT = 10 * 2**20  # core.telegram.org/bots/api#sendphoto: at most 10 MB
# Longest sides of the sizes that Telegram makes of a photo (types s, m, x, y).
PHOTO_SIDES = (90, 320, 800, 1280)
_IMAGE_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"RIFF", b"BM")


@dataclass
class StoredFile:
    """A file on the platform. `size` is what Telegram states, whatever the content's length."""

    id: str
    unique_id: str
    path: str
    content: bytes
    size: int

    def json(self) -> Json:
        """The fields that all file objects share."""
        return {"file_id": self.id, "file_unique_id": self.unique_id, "file_size": self.size}


class FileStore:
    """All files, by id and by download path."""

    def __init__(self) -> None:
        self._count = itertools.count(1)
        self._by_id: dict[str, StoredFile] = {}
        self._by_path: dict[str, StoredFile] = {}

    def add(self, folder: str, suffix: str, content: bytes, size: int | None = None) -> StoredFile:
        """Keeps a file; `size` in bytes states another size than the content has."""
        number = next(self._count)
        raw = f"{folder}:{number}".encode()
        file = StoredFile(
            id="BQAC" + base64.urlsafe_b64encode(raw).decode().rstrip("="),
            unique_id=f"AgAD{number:06d}",
            path=f"{folder}/file_{number}{suffix}",
            content=content,
            size=len(content) if size is None else size,
        )
        self._by_id[file.id] = file
        self._by_path[file.path] = file
        return file

    def get(self, file_id: str) -> StoredFile:
        """The file of an id. Raises `ApiError` 400."""
        file = self._by_id.get(file_id)
        if file is None:
            raise ApiError(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        return file

    def to_download(self, file_id: str) -> Json:
        """getFile. Raises `ApiError` 400 for an unknown id and for more than 20 MB."""
        file = self.get(file_id)
        if file.size > DOWNLOAD_LIMIT:
            raise ApiError(400, "Bad Request: file is too big")
        return file.json() | {"file_path": file.path}

    def at_path(self, path: str) -> StoredFile:
        """The file behind a download link. Raises `ApiError` 404."""
        file = self._by_path.get(path)
        if file is None:
            raise ApiError(404, "Not Found")
        return file

    def photo(self, content: bytes | None, width: int, height: int) -> list[Json]:
        """The sizes of a photo, smallest first; `content` is the largest, else all are grey."""
        longest = max(width, height)
        sides = [side for side in PHOTO_SIDES if side < longest] + [min(longest, PHOTO_SIDES[-1])]
        sizes: list[Json] = []
        for side in sides:
            w, h = (max(1, round(n * side / longest)) for n in (width, height))
            largest = content if content is not None and side == sides[-1] else None
            file = self.add("photos", ".jpg", largest or grey_jpeg(w, h))
            sizes.append(file.json() | {"width": w, "height": h})
        return sizes

    def document(self, name: str, content: bytes, mime_type: str, size: int | None = None) -> Json:
        """A Document."""
        suffix = "." + name.rpartition(".")[2] if "." in name else ""
        file = self.add("documents", suffix, content, size)
        return file.json() | {"file_name": name, "mime_type": mime_type}

    def voice(self, content: bytes, duration: int) -> Json:
        """A Voice; `duration` in seconds."""
        file = self.add("voice", ".oga", content)
        return file.json() | {"duration": duration, "mime_type": "audio/ogg"}

    def sticker(self, emoji: str) -> Json:
        """A static Sticker."""
        file = self.add("stickers", ".webp", b"RIFF\x00\x00\x00\x00WEBP")
        kind = {"width": 512, "height": 512, "is_animated": False, "is_video": False}
        return file.json() | kind | {"type": "regular", "emoji": emoji, "set_name": "TestSet"}


def is_image(content: bytes) -> bool:
    """Whether the bytes begin like a picture."""
    return content.startswith(_IMAGE_MAGIC)


def grey_jpeg(width: int, height: int) -> bytes:
    """A real baseline JPEG of this size, all mid-grey.

    Each Huffman table has one code, the bit 0: "no difference" and "end of block". So each block
    of 8 by 8 pixels is two zero bits (ITU-T T.81).
    """
    size = bytes([8, *divmod(height, 256), *divmod(width, 256), 1, 1, 0x11, 0])
    blocks = -(-width // 8) * -(-height // 8)
    whole, left = divmod(blocks * 2, 8)
    data = bytes(whole) + (bytes([0xFF >> left]) if left else b"")
    one_code = bytes([1]) + bytes(15) + bytes([0])
    return b"".join(
        (
            b"\xff\xd8",
            _segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
            _segment(0xDB, bytes([0]) + bytes([1] * 64)),
            _segment(0xC0, size),
            _segment(0xC4, bytes([0x00]) + one_code),
            _segment(0xC4, bytes([0x10]) + one_code),
            _segment(0xDA, bytes([1, 1, 0x00, 0, 63, 0])),
            data,
            b"\xff\xd9",
        )
    )


def _segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker, *divmod(len(body) + 2, 256)]) + body
