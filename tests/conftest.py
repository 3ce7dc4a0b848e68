"""For all tests: no network beyond loopback, and python-telegram-bot's newer time-outs."""

from __future__ import annotations

import os

import pytest
from pytest_socket import socket_allow_hosts

# PTB 22.8 warns on every RetryAfter until one chooses the newer type (our warnings are errors).
os.environ.setdefault("PTB_TIMEDELTA", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)
