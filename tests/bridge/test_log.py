"""Logs: no secret gets out, whichever part of a record it hides in, at any level."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

import httpx
import pytest
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from bridge.log import MASK, Redactor, setup

TOKEN = "123456789:AAHabcdefghijklmnopqrstuvwxyz0123456"
SLACK = "xoxb-1234567890-abcdefghij"
APP = "xapp-1-A123-456-abcdef"
KEY = "sk-ant-api03-abcdefghijklmnop"
ODD = 'p@ss.*word"\\'


@pytest.fixture
def logs(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """What was logged; the root logger and the levels are put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    others = {
        name: logging.getLogger(name).level for name in list(logging.Logger.manager.loggerDict)
    }
    yield lambda: capsys.readouterr().err
    root.handlers[:], root.level = handlers, level
    for name, old in others.items():
        logging.getLogger(name).setLevel(old)


@pytest.mark.parametrize("as_json", [False, True])
def test_secrets_leave_message_arguments_and_traces(logs: Callable[[], str], as_json: bool) -> None:
    setup("DEBUG", as_json=as_json, redactor=Redactor([ODD]))
    log = logging.getLogger("test_log")
    log.info("GET https://api.telegram.org/bot%s/getMe", TOKEN)
    log.debug("tokens %s and %r", SLACK, {"app": APP, "password": ODD})
    log.info(f"Authorization: Bearer {KEY}")
    try:
        try:
            raise httpx.ConnectError(f"https://api.telegram.org/bot{TOKEN}/sendMessage")
        except httpx.ConnectError as error:
            raise RuntimeError(f"the key {KEY} and {ODD} were refused") from error
    except RuntimeError:
        log.exception("failed with %s", APP)
    text = logs()
    for secret in (TOKEN, SLACK, APP, KEY, ODD, json.dumps(ODD)[1:-1]):
        assert secret not in text
    assert "ConnectError" in text
    assert text.count(MASK) >= 8


def test_a_clean_text_keeps_what_is_no_secret() -> None:
    redactor = Redactor(["hunter22", ""])
    text = "12:30, bot 5, chat -1001234567890, message 1:2, task-sk-1, v1.2, abc"
    assert redactor.clean(text) == text
    assert redactor.clean("it is hunter22!") == f"it is {MASK}!"


def test_of_two_secrets_the_longer_goes_first() -> None:
    """Else the rest of it would stay behind."""
    assert Redactor(["secret", "secret-and-more"]).clean("secret-and-more") == MASK


def test_secrets_can_be_added_while_running() -> None:
    redactor = Redactor()
    redactor.add(["opensesame"])
    redactor.add(["other-one"])
    assert redactor.clean("opensesame other-one") == f"{MASK} {MASK}"


@pytest.mark.parametrize(
    "text",
    [f"https://api.telegram.org/bot{TOKEN}/x", f"{TOKEN}", f"<{SLACK}>", f"token={APP}", KEY,
     "Bearer abcdefgh12345678", "sk-proj-abc_def-ghi_jkl-mno"],
)  # fmt: skip
def test_tokens_are_recognised_by_their_form(text: str) -> None:
    cleaned = Redactor().clean(text)
    assert MASK in cleaned
    for secret in (TOKEN, SLACK, APP, KEY, "abcdefgh12345678", "abc_def"):
        assert secret not in cleaned


def test_libraries_that_log_urls_are_quiet_even_at_debug(logs: Callable[[], str]) -> None:
    setup("DEBUG", as_json=False, redactor=Redactor())
    for name in ("httpx", "aiohttp.client", "telegram.ext.ExtBot", "slack_sdk.web", "openai"):
        logging.getLogger(name).info("HTTP Request: POST https://example.org")
        logging.getLogger(name).warning("worth knowing: %s", name)
    text = logs()
    assert "HTTP Request" not in text
    assert text.count("worth knowing") == 5


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "name", ["telegram.request.BaseRequest", "httpx", "slack_sdk.socket_mode", "slack_bolt.App",
             "channels.slack.sdk", "channels.slack.sdk:Listener", "anthropic", "openai._base_client"],
)  # fmt: skip
def test_nothing_that_a_library_logs_carries_a_message(
    logs: Callable[[], str], name: str, as_json: bool
) -> None:
    setup("DEBUG", as_json=as_json, redactor=Redactor())
    log = logging.getLogger(name)
    text = '{"from":{"first_name":"Ana"},"text":"PRIVATE"}'
    try:
        raise ValueError(text)
    except ValueError as error:
        log.exception('Can not load invalid JSON data: "%s"', text)
        log.error(f"Failed to parse the value from {text}")
        log.error("Failed: " + text, stack_info=True)
        log.critical(error)
    told = logs()
    assert "PRIVATE" not in told
    assert "Ana" not in told
    assert "Can not load invalid JSON data" in told
    assert "test_log.py:" in told
    assert "ValueError" in told or name == "channels.slack.sdk", "which drops it itself"
    assert len(told.splitlines()) == 4


def test_a_broken_response_of_telegram_is_logged_without_what_is_in_it(
    logs: Callable[[], str],
) -> None:
    setup("DEBUG", as_json=False, redactor=Redactor())
    body = b'{"ok":true,"result":[{"message":{"from":{"first_name":"Ana"},"text":"PRIVATE'
    with pytest.raises(TelegramError):
        HTTPXRequest.parse_json_payload(body)
    told = logs()
    assert "ERROR telegram.request" in told
    assert "PRIVATE" not in told
    assert "Ana" not in told


def test_json_is_one_object_a_line(logs: Callable[[], str]) -> None:
    setup("INFO", as_json=True, redactor=Redactor())
    logging.getLogger("galata.test").info("two\nlines, 中文 and %d", 5)
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("galata.test").exception("failed")
    first, second = (json.loads(line) for line in logs().splitlines())
    assert first["message"] == "two\nlines, 中文 and 5"
    assert first["level"] == "INFO"
    assert first["logger"] == "galata.test"
    assert first["time"].endswith("+00:00")
    assert second["trace"].endswith("ValueError: no")


def test_a_line_break_in_a_text_log_cannot_forge_a_line(logs: Callable[[], str]) -> None:
    setup("INFO", as_json=False, redactor=Redactor())
    logging.getLogger("test_log").info("id %s", "1\n2026-11-30 00:00:00 INFO bridge: forged")
    assert len(logs().splitlines()) == 1
