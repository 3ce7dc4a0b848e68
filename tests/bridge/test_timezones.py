"""Time zones: the system's is found by name, and UTC is never taken in silence."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bridge.configuration import environment
from bridge.configuration.limit_layers import layers_of
from bridge.limits.keys import TIMEZONE
from bridge.timezones import is_zone, system_zone, zone_hint


def test_tz_comes_before_the_link_and_the_link_before_the_file(tmp_path: Path) -> None:
    localtime, name_file = tmp_path / "localtime", tmp_path / "timezone"
    localtime.symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    name_file.write_text("Europe/Rome\n")
    assert system_zone({"TZ": ":Africa/Cairo"}, localtime=localtime, name_file=name_file) == (
        "Africa/Cairo"
    )
    assert system_zone({}, localtime=localtime, name_file=name_file) == "Asia/Tokyo"
    localtime.unlink()
    assert system_zone({}, localtime=localtime, name_file=name_file) == "Europe/Rome"


@pytest.mark.parametrize("content", [b"", b"no zone", b"\xff", b"../../etc/passwd"])
def test_a_system_that_names_no_zone_is_told_apart(tmp_path: Path, content: bytes) -> None:
    name_file = tmp_path / "timezone"
    name_file.write_bytes(content)
    localtime = tmp_path / "localtime"
    localtime.write_bytes(b"TZif")  # a copy, no link
    assert system_zone({}, localtime=localtime, name_file=name_file) is None


def test_utc_is_used_with_a_warning_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environment, "system_zone", lambda environ: None)
    with caplog.at_level(logging.WARNING):
        config = environment.from_environment({})
    assert (config.timezone, config.zone_is_known) == ("UTC", False)
    assert TIMEZONE.name not in layers_of(config).top
    assert "UTC is used" in caplog.text
    monkeypatch.setattr(environment, "system_zone", lambda environ: "Asia/Tokyo")
    known = environment.from_environment({})
    assert (known.zone_is_known, layers_of(known).top[TIMEZONE.name]) == (True, "Asia/Tokyo")


@pytest.mark.parametrize("name", ["", "Mars/Base", "/etc/passwd", "../UTC", "Europe", "a\0b"])
def test_what_is_no_zone(name: str) -> None:
    assert not is_zone(name)
    assert zone_hint(name)


def test_without_a_zone_database_the_hint_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.timezones.available_timezones", set[str])
    assert "install tzdata" in zone_hint("Europe/Berlin")
    assert is_zone("UTC")
