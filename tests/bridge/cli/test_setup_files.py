"""The two files of setup are read as they are, and replaced at once and privately."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from bridge.cli.options import CommandFailed
from bridge.cli.setup_files import (
    copy_beside,
    env_of,
    env_text,
    must_be_writable,
    read_file,
    write_private,
)

SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="'\"\\"), min_size=1
)
NAMES = st.sampled_from(["ANTHROPIC_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_APP_TOKEN"])


@given(st.dictionaries(NAMES, SECRETS, min_size=1))
def test_dotenv_reads_what_was_written(secrets: dict[str, str]) -> None:
    text = env_text("# a comment\nexport ANTHROPIC_API_KEY=old\nOTHER=1", secrets)
    read = dotenv_values(stream=io.StringIO(text), interpolate=False)
    assert read.items() >= {**secrets, "OTHER": "1"}.items()
    assert text.count("ANTHROPIC_API_KEY=") == 1
    assert text.startswith("# a comment\n")


def test_other_variables_stay_to_the_letter_also_those_of_several_lines() -> None:
    present = (
        '# mine\r\nCERT="a\nSLACK_APP_TOKEN=b\n"\nSLACK_APP_TOKEN="x\ny"\n\nno variable\nZ=\x0b1'
    )
    text = env_text(present, {"SLACK_APP_TOKEN": "new"})
    assert text == present.replace('SLACK_APP_TOKEN="x\ny"', "SLACK_APP_TOKEN='new'")
    assert env_text(present, {}) == present
    assert env_text(present, {"SLACK_APP_TOKEN": "x\ny"}) == present


def test_files_are_replaced_at_once_and_private(tmp_path: Path) -> None:
    path, link, other = tmp_path / ".env", tmp_path / "link", tmp_path / "config.yaml"
    path.write_text("old")
    path.chmod(0o644)
    link.symlink_to(path)
    write_private({link: b"new\n", other: b"\xc3\xa9\n"})
    assert path.read_bytes() == b"new\n"
    assert link.is_symlink()
    for written in (path, other):
        assert written.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [path, other, link]


def test_a_file_that_is_right_already_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    write_private({path: b"A=1\n"})
    before = path.stat().st_ino
    write_private({path: b"A=1\n"})
    assert path.stat().st_ino == before
    path.chmod(0o640)
    write_private({path: b"A=1\n"})
    assert path.stat().st_mode & 0o777 == 0o600


def test_when_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("old")
    with pytest.raises(CommandFailed, match="cannot be written"):
        write_private({path: b"new", tmp_path / "no" / "config.yaml": b""})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_or_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="nothing was written"):
        env_of(b"A=\xff", tmp_path / ".env")
    assert env_of(None, tmp_path / ".env") == ""
    assert read_file(tmp_path / "none") is None
    with pytest.raises(CommandFailed, match="cannot be read"):
        read_file(tmp_path)
    must_be_writable(tmp_path)
    with pytest.raises(CommandFailed, match="create it first"):
        must_be_writable(tmp_path / "none")


def test_a_copy_takes_no_name_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    assert copy_beside(path).name == "config.yaml.old"
    copy_beside(path).write_text("")
    assert copy_beside(path).name == "config.yaml.old2"
