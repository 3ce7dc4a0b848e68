"""The data folder: one holder at a time, and closed to others where that can be done."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from bridge.operation.data_folder import LOCK, FolderRefused, held


def test_a_folder_is_held_by_one_and_free_afterwards(tmp_path: Path) -> None:
    data = tmp_path / "a" / "d"
    with held(data):
        assert data.stat().st_mode & 0o777 == 0o700
        assert (data / LOCK).read_text() == str(os.getpid())
        with (
            pytest.raises(FolderRefused, match=rf"another galata \(process {os.getpid()}\)"),
            held(data),
        ):
            pass
    with held(data):
        pass


def test_an_earlier_holders_longer_number_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("99999999999")
    with held(tmp_path):
        assert (tmp_path / LOCK).read_text() == str(os.getpid())


def test_a_holder_that_left_no_number_is_told_all_the_same(tmp_path: Path) -> None:
    with (tmp_path / LOCK).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FolderRefused, match=r"^another galata runs on"), held(tmp_path):
            pass


def test_a_folder_that_cannot_be_closed_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    tmp_path.chmod(0o750)
    monkeypatch.setattr(Path, "chmod", refused)
    with held(tmp_path):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"others can use {tmp_path} (mode 0750)")


@pytest.mark.parametrize(
    "raised", [OSError(37, "No locks available"), OSError(28, "No space left")]
)
def test_a_folder_that_cannot_be_locked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: OSError
) -> None:
    def refused(descriptor: int, operation: int) -> None:
        raise raised

    monkeypatch.setattr("bridge.operation.data_folder.fcntl.flock", refused)
    with pytest.raises(FolderRefused, match=f"cannot be locked: {raised.strerror}"), held(tmp_path):
        pass
