"""Two data folders never receive for one bot."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from bridge.configuration.settings import Channels, Config, Slack, Telegram
from bridge.operation.token_lock import TokenInUse, held_tokens, runtime_folder

TOKEN = "123456:a-token-of-the-bot"


def telegram(token: str = TOKEN, base_url: str | None = None) -> Config:
    settings = Telegram.model_validate({"token": token, "base_url": base_url})
    return Config(channels=Channels(telegram=settings))


def slack(app_token: str = "xapp-1-a") -> Config:
    settings = Slack.model_validate({"bot_token": "xoxb-1-a", "app_token": app_token})
    return Config(channels=Channels(slack=settings))


def test_a_token_is_held_by_one_which_is_named_and_the_token_is_not(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with held_tokens(telegram(), first, tmp_path):
        with pytest.raises(TokenInUse) as raised, held_tokens(telegram(), second, tmp_path):
            pass
        left = b"".join(path.read_bytes() for path in tmp_path.glob("*.lock"))
        names = [path.name for path in tmp_path.glob("*.lock")]
    text = str(raised.value)
    assert text.startswith("channels.telegram.token: another galata (process ")
    assert f"(process {os.getpid()}, data folder {first})" in text
    for secret in (TOKEN, "a-token-of-the-bot"):
        assert secret not in text
        assert secret.encode() not in left
        assert not any(secret in name for name in names)
    with held_tokens(telegram(), second, tmp_path):
        pass


def test_other_bots_and_other_servers_are_no_obstacle(tmp_path: Path) -> None:
    with (
        held_tokens(telegram(), tmp_path, tmp_path),
        held_tokens(telegram("123456:another"), tmp_path, tmp_path),
        held_tokens(telegram(base_url="http://127.0.0.1:1"), tmp_path, tmp_path),
        held_tokens(slack(), tmp_path, tmp_path),
        held_tokens(slack("xapp-1-b"), tmp_path, tmp_path),
        held_tokens(Config(), tmp_path, tmp_path),
        pytest.raises(TokenInUse, match=r"^channels\.slack\.app_token: "),
        held_tokens(slack(), tmp_path, tmp_path),
    ):
        pass


def test_the_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with held_tokens(telegram(), tmp_path, folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


@pytest.mark.parametrize("kind", ["file", "link", "missing"])
def test_a_folder_that_cannot_be_trusted_is_logged_and_the_bot_runs(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    if kind == "file":
        folder.touch()
    elif kind == "link":
        folder.symlink_to(tmp_path)
    else:
        (tmp_path / "no").touch()
        folder = tmp_path / "no" / "such"
    with held_tokens(telegram(), tmp_path, folder):
        pass
    assert "whether another galata runs with the same token is not known" in caplog.text


def test_the_lock_lies_in_one_place_whatever_session_the_process_was_started_from(
    tmp_path: Path,
) -> None:
    home = {"HOME": str(tmp_path)}
    folder = runtime_folder(home)
    assert folder == tmp_path / ".cache" / "galata"
    session = {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_CACHE_HOME": "/var", "TMPDIR": "/var/tmp"}
    assert runtime_folder({**home, **session}) == folder
    assert runtime_folder({}) == runtime_folder({"HOME": pwd.getpwuid(os.getuid()).pw_dir})
    with (
        held_tokens(telegram(), tmp_path, folder),
        pytest.raises(TokenInUse),
        held_tokens(telegram(), tmp_path, runtime_folder({**home, **session})),
    ):
        pass
    assert runtime_folder(home) == folder, "also once it is there"


def test_without_a_home_the_lock_lies_in_a_place_of_the_users_own(tmp_path: Path) -> None:
    assert runtime_folder({"HOME": str(tmp_path / "gone")}) == Path(f"/tmp/galata-{os.getuid()}")
