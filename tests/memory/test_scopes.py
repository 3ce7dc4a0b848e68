"""A scope's files lie in its own folder, whatever the scope or the name says."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.scopes import FACTS, NoSuchName, day_name, day_of, scope_folder, scope_of, scope_path

ROOT = Path("/data/memory")
texts = st.one_of(st.text(max_size=60), st.text(alphabet="./\\-_:%a\0~", max_size=60))
names = st.one_of(
    texts,
    st.builds(str.__add__, texts, st.sampled_from(["MEMORY.md", "2026-11-30.md"])),
    st.builds(str.__add__, st.sampled_from(["MEMORY.md", "2026-11-30.md", "changes/"]), texts),
)


@given(texts, names)
def test_no_path_leaves_its_scopes_folder(scope: str, name: str) -> None:
    folder = scope_path(ROOT, scope)
    assert folder.parent == ROOT
    assert Path(os.path.normpath(folder)) == folder
    try:
        path = scope_path(ROOT, scope, name)
    except NoSuchName:
        return
    assert Path(os.path.normpath(path)).is_relative_to(folder)
    assert not name or path.name == FACTS or day_of(path.name) is not None


@given(texts, texts)
def test_two_scopes_never_share_a_folder(one: str, other: str) -> None:
    assert (scope_folder(one) == scope_folder(other)) == (one == other)


@given(st.dates())
def test_a_days_file_is_found_by_its_name(day: date) -> None:
    name = day_name(day)
    assert day_of(name) == day
    assert scope_path(ROOT, "s", name).name == name
    assert scope_path(ROOT, "s", f"changes/{name}").parent.name == "changes"


@pytest.mark.parametrize(
    "name",
    [
        *("..", ".lock", "2026-13-01.md", "2026-1-1.md", "memory.md", "changes"),
        *("changes/MEMORY.md", "versions/MEMORY.md", "2026-11-30.md/..", "/etc/passwd"),
        *("２０２６-11-30.md", "2026-11-30.md\n"),
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(NoSuchName):
        scope_path(ROOT, "s", name)


def test_a_person_and_a_group_of_one_id_have_two_scopes() -> None:
    assert scope_of("telegram:1:7", private=True) != scope_of("telegram:1:7", private=False)


def test_a_scopes_folder_can_be_read_and_is_short() -> None:
    assert scope_folder("person:telegram:1:7").startswith("person-telegram-1-7-")
    assert len(scope_folder("x" * 500)) <= 71
