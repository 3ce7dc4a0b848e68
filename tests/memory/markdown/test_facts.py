"""`MEMORY.md` keeps what people write into it, and no writer overwrites another."""

from __future__ import annotations

import asyncio
import multiprocessing
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.markdown import facts, files, versions
from memory.markdown.fact_files import FactFiles
from memory.markdown.facts import (
    MOST_ENTRIES,
    MOST_TEXT,
    Fact,
    FactsRefused,
    Line,
    Lines,
    parse,
    render,
)
from memory.markdown.files import locked
from memory.scopes import FACTS, scope_path

SCOPE = "person:telegram:1:7"
DAY = date(2026, 11, 30)
HAND = "# About us\r\n\nSome prose.\n- **7** (2026-11-01, Bo) likes tea\n* loose \udcff line\n"

said = st.text(min_size=1, max_size=80)
entries = st.builds(
    lambda number, day, who, text: facts.fact(number, day, who, f"a{text}"),
    st.integers(1, 999_999),
    st.dates(),
    st.text(max_size=50),
    said,
)
lines_of_text = st.one_of(
    st.text(max_size=40), st.builds(Fact.line, entries), st.sampled_from(["", "\r", "- **1** x"])
)
file_texts = st.lists(lines_of_text, max_size=8).map("\n".join)


@given(file_texts)
def test_reading_and_writing_changes_nothing(text: str) -> None:
    assert render(parse(text)) == text


@given(entries)
def test_an_entry_is_read_as_it_was_written(entry: Fact) -> None:
    (line,) = parse(entry.line())
    assert line.fact == entry


@given(file_texts, said, said)
def test_every_line_but_the_changed_one_stays_where_it_is(text: str, new: str, other: str) -> None:
    lines = parse(text)
    before = [line.raw for line in lines if line.raw]
    try:
        more, fact = facts.added(lines, DAY, "Ana", new)
        changed, _, _ = facts.corrected(more, fact.number, DAY, "Bo", other)
        fewer, _ = facts.removed(changed, [fact.number])
    except FactsRefused:
        return
    for made in (more, changed, fewer):
        numbers = [each.number for each in facts.facts(made)]
        assert len(set(numbers)) == len(numbers)
        assert parse(render(made)) == made, "what is kept in memory is what is in the file"
    if all(parse(line.raw)[0].fact == line.fact for line in lines):  # no number comes twice
        kept = [line.raw for line in fewer if line.raw]
        assert [raw for raw in kept if raw in before] == kept
        assert len(kept) == len(before)


@given(file_texts, file_texts)
def test_of_two_joined_files_each_entry_has_a_number_of_its_own(one: str, other: str) -> None:
    numbers = [fact.number for fact in facts.facts(parse(f"{one}\n{other}"))]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize(
    ("text", "why"), [(" \n ", "empty"), ("…", "empty"), ("x" * (MOST_TEXT + 1), "too_long")]
)
def test_what_is_no_entry_is_refused(text: str, why: str) -> None:
    with pytest.raises(FactsRefused) as caught:
        facts.added(parse(""), DAY, "Ana", text)
    assert caught.value.why == why


def test_an_entry_is_one_line_whatever_is_said() -> None:
    _, fact = facts.added(parse(""), DAY, "Ana)\n(x", "one\n# System\u2028two\x00")
    assert fact.line() == "- **1** (2026-11-30, Ana x) one # System two"


def test_what_is_known_is_not_said_twice() -> None:
    lines, first = facts.added(parse(""), DAY, "Ana", "I speak Chinese.")
    with pytest.raises(FactsRefused) as caught:
        facts.added(lines, DAY, "Ana", "i SPEAK  chinese")
    assert (caught.value.why, caught.value.number) == ("known", first.number)


def test_the_file_is_bounded_and_what_a_hand_made_too_large_can_shrink() -> None:
    lines = parse("")
    for number in range(MOST_ENTRIES):
        lines, _ = facts.added(lines, DAY, "Ana", f"entry {number}")
    with pytest.raises(FactsRefused) as caught:
        facts.added(lines, DAY, "Ana", "one more")
    assert caught.value.why == "full"
    large = (*lines[:-1], Line("prose " * 10_000), Line(""))
    shorter, _, _ = facts.corrected(large, 1, DAY, "Ana", "e")
    assert facts.size(shorter).characters < facts.size(large).characters
    with pytest.raises(FactsRefused):
        facts.corrected(large, 1, DAY, "Ana", "e" * 200)


async def test_hand_edits_are_kept_to_the_byte(tmp_path: Path) -> None:
    store, path = FactFiles(tmp_path), scope_path(tmp_path, SCOPE, FACTS)
    path.parent.mkdir()
    path.write_bytes(HAND.encode("utf-8", "surrogateescape"))
    fact = await store.add(SCOPE, DAY, "Ana", "has a cat")
    assert fact.number == 8
    made = path.read_bytes().decode("utf-8", "surrogateescape")
    assert made == HAND.replace("likes tea\n", "likes tea\n- **8** (2026-11-30, Ana) has a cat\n")
    assert path.stat().st_mode & 0o777 == 0o600
    await store.remove(SCOPE, [8])
    assert path.read_bytes() == HAND.encode("utf-8", "surrogateescape")


def _write_many(folder: Path, name: str, count: int) -> None:
    async def write() -> None:
        store = FactFiles(folder)
        for number in range(count):
            await store.add(SCOPE, DAY, name, f"{name} says {number}")

    asyncio.run(write())


async def test_writers_in_several_processes_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_write_many, args=(tmp_path, f"p{n}", 20)) for n in range(2)]
    for process in others:
        process.start()
    store = FactFiles(tmp_path)
    await asyncio.gather(*(store.add(SCOPE, DAY, "here", f"here says {n}") for n in range(40)))
    for process in others:
        await asyncio.to_thread(process.join)
    known = facts.facts(await store.load(SCOPE))
    assert len({fact.text for fact in known}) == 80
    assert sorted(fact.number for fact in known) == list(range(1, 81))


def _also(lines: Lines, text: str, path: Path, times: list[int]) -> tuple[Lines, Fact]:
    """A change during which somebody saves the file by hand, `times` times."""
    if times[0]:
        times[0] -= 1
        path.write_text(path.read_text() + f"by hand {times[0]}\n")
    return facts.added(lines, DAY, "Ana", text)


async def test_a_change_by_hand_meanwhile_is_kept(tmp_path: Path) -> None:
    store, path = FactFiles(tmp_path), scope_path(tmp_path, SCOPE, FACTS)
    await store.add(SCOPE, DAY, "Ana", "first")
    twice, always = [2], [99]
    await store.change(SCOPE, lambda lines: _also(lines, "second", path, twice))
    text = path.read_text()
    assert text.index("second") < text.index("by hand 1") < text.index("by hand 0")
    with pytest.raises(FactsRefused) as caught:
        await store.change(SCOPE, lambda lines: _also(lines, "third", path, always))
    assert caught.value.why == "changed"
    assert "third" not in path.read_text()


async def test_changes_are_taken_back_one_by_one(tmp_path: Path) -> None:
    store = FactFiles(tmp_path)
    states = [render(await store.load(SCOPE))]
    for step in (
        lambda: store.add(SCOPE, DAY, "Ana", "one"),
        lambda: store.add(SCOPE, DAY, "Ana", "two"),
        lambda: store.correct(SCOPE, 1, DAY, "Bo", "uno"),
        lambda: store.remove(SCOPE, [2]),
    ):
        await step()
        states.append(render(await store.load(SCOPE)))
    for earlier in reversed(states[:-1]):
        await store.undo(SCOPE)
        assert render(await store.load(SCOPE)) == earlier
    with pytest.raises(FactsRefused) as caught:
        await store.undo(SCOPE)
    assert caught.value.why == "nothing_to_undo"


async def test_a_step_back_never_takes_a_hands_change_along(tmp_path: Path) -> None:
    store, path = FactFiles(tmp_path), scope_path(tmp_path, SCOPE, FACTS)
    await store.add(SCOPE, DAY, "Ana", "one")
    path.write_text(path.read_text() + "by hand\n")
    with pytest.raises(FactsRefused) as caught:
        await store.undo(SCOPE)
    assert caught.value.why == "changed"
    assert "by hand" in path.read_text()


async def test_what_is_forgotten_is_in_no_earlier_version_and_the_rest_can_be_taken_back(
    tmp_path: Path,
) -> None:
    store, folder = FactFiles(tmp_path), scope_path(tmp_path, SCOPE)
    for text in ("my secret is plover", "likes tea", "has a cat"):
        await store.add(SCOPE, DAY, "Ana", text)
    gone = await store.forget(SCOPE, lambda line: line.fact is not None and line.fact.number == 1)
    assert [line.fact.text for line in gone if line.fact] == ["my secret is plover"]
    held = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert held
    assert not any("plover" in text for text in held)
    await store.undo(SCOPE)
    assert [fact.text for fact in facts.facts(await store.load(SCOPE))] == ["likes tea"]


async def test_versions_are_bounded_and_a_change_that_did_not_come_to_be_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder = FactFiles(tmp_path), scope_path(tmp_path, SCOPE)
    for number in range(versions.MOST + 5):
        await store.add(SCOPE, DAY, "Ana", f"entry {number}")
    assert len(versions.versions(folder)) == versions.MOST
    last = render(await store.load(SCOPE))

    def full(path: Path, before: bytes, after: bytes) -> bool:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("memory.markdown.fact_files.replace", full)
        with pytest.raises(OSError, match="No space"):
            await store.add(SCOPE, DAY, "Ana", "never")
    assert render(await store.load(SCOPE)) == last
    await store.undo(SCOPE)
    assert f"entry {versions.MOST + 4}" not in render(await store.load(SCOPE))


def test_a_lock_that_is_not_let_go_of_is_an_error_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LOCK_WAIT_S", 0.0)
    with locked(tmp_path), pytest.raises(OSError, match="another writer"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_full_disk_leaves_no_half_of_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "day.md", files.os.write
    files.append(path, b"whole\n")

    def half(handle: int, data: bytes) -> int:
        return write(handle, data[: len(data) // 2])

    monkeypatch.setattr(files.os, "write", half)
    with pytest.raises(OSError, match="only a part"):
        files.append(path, b"second entry\n")
    assert path.read_bytes() == b"whole\n"
