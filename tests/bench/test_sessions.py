"""Sessions that are only known cost nothing in a running process."""

from __future__ import annotations

from pathlib import Path

from bench.sessions import idle_sessions


async def test_nothing_is_kept_of_a_session_whose_work_has_ended(tmp_path: Path) -> None:
    found = await idle_sessions(60, tmp_path)
    assert found["kept"] == {}
    assert found["tasks"] == 0
    assert found["files"] == 0
