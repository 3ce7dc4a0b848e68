"""One warm process for all that run `galata`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bridge.cli.processes import FORKS


@pytest.fixture(scope="session", autouse=True)
def forks() -> Iterator[None]:
    yield
    FORKS.close()
