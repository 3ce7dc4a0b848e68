"""How long it takes to index 10,000 day files, and to search in them."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from datetime import date, timedelta
from itertools import accumulate
from pathlib import Path

from bench.report import Measure, Measures, percentile
from memory.database import Database
from memory.indexing import Indexer
from memory.scopes import ChatScope, day_name, scope_path
from memory.search import Search

FILES = 10_000
SEARCHES = 200
ENTRIES = 8  # of a day, about 300 characters each
LAST = date(2026, 11, 30)
CHAT = ChatScope("person:telegram:1:7", "telegram", "1", "7")
_LETTERS = "bcdfglmnprst", "aeiou"
_WORDS = 20_000
_SHARES = list(accumulate(1 / (rank + 10) for rank in range(_WORDS)))
_HAN = [chr(0x4E00 + number) for number in range(800)]


def search(files: int = FILES) -> Measures:
    """All in one scope, which is the worst that there can be; time on the wall, since a search waits
    for the database's threads. `first`: the search that indexes everything."""
    return asyncio.run(_search(files))


async def _search(files: int) -> Measures:
    rng = random.Random(5)  # the same files each time
    vocabulary = [_word(rng) for _ in range(_WORDS)]
    with tempfile.TemporaryDirectory() as folder:
        memory = Path(folder) / "memory"
        _write(memory, vocabulary, files, rng)
        database = await Database.open(Path(folder) / "galata.db")
        try:
            indexer = Indexer(database, memory)
            since = time.perf_counter()
            await indexer.catch_up(CHAT)
            indexed_s = time.perf_counter() - since
            found = Search(database, memory, indexer)
            rare = [await _ms(found, " ".join(rng.sample(vocabulary, 2))) for _ in range(SEARCHES)]
            usual = [
                await _ms(found, " ".join(rng.sample(vocabulary[:100], 2))) for _ in range(SEARCHES)
            ]
            han = [await _ms(found, _some(_HAN, 2, rng)) for _ in range(SEARCHES)]
        finally:
            await database.close()
    return {
        "search_index_s": Measure(indexed_s, "s", 60),
        "search_p50_ms": Measure(percentile(rare, 50), "ms", 20),
        "search_p99_ms": Measure(percentile(rare, 99), "ms"),
        "search_usual_words_p50_ms": Measure(percentile(usual, 50), "ms", 20),
        "search_two_han_p50_ms": Measure(percentile(han, 50), "ms", 20),
    }


async def _ms(found: Search, query: str) -> float:
    since = time.perf_counter()
    await found.find(CHAT, query, today=LAST)
    return 1000 * (time.perf_counter() - since)


def _write(memory: Path, vocabulary: list[str], files: int, rng: random.Random) -> None:
    folder = scope_path(memory, CHAT.scope)
    folder.mkdir(parents=True)
    for number in range(files):
        entries = [
            f"\n## 1{n}:00 · left the conversation\n\n"
            f"- {_some(vocabulary, 45, rng, ' ')} {_some(_HAN, 12, rng)}\n"
            for n in range(ENTRIES)
        ]
        path = folder / day_name(LAST - timedelta(days=number))
        path.write_text("".join(entries), encoding="utf-8")
        os.utime(path, (1_700_000_000, 1_700_000_000))  # not written just now


def _some(vocabulary: list[str], count: int, rng: random.Random, between: str = "") -> str:
    """Words of which few are frequent, as in a language."""
    return between.join(rng.choices(vocabulary, cum_weights=_SHARES[: len(vocabulary)], k=count))


def _word(rng: random.Random) -> str:
    pairs = range(rng.randint(3, 5))
    return "".join(rng.choice(_LETTERS[0]) + rng.choice(_LETTERS[1]) for _ in pairs)
