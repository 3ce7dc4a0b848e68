"""For all tests: no network beyond loopback, python-telegram-bot's newer time-outs, less garbage to
look for."""

from __future__ import annotations

import functools
import gc
import os
import ssl

import pytest
from pytest_socket import socket_allow_hosts

from tests import databases

# PTB 22.8 warns on every RetryAfter until one chooses the newer type (our warnings are errors).
os.environ.setdefault("PTB_TIMEDELTA", "1")

# Each of hundreds of bots would read all certificates for its own context (20 ms), and then talk to a
# server on this machine without TLS.
ssl.create_default_context = functools.cache(ssl.create_default_context)

databases.install()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)


def pytest_collection_finish() -> None:
    """All that is imported and collected stays: the garbage collector need not look at it again in
    every test (a tenth of the CPU time of a run)."""
    gc.collect()
    gc.freeze()
