"""Time zones: the system's is found by name, and UTC is never taken in silence."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bridge.config import load
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


@pytest.mark.parametrize(
    "name", ["UTC", "Etc/UTC", "Zulu", "GMT", "Etc/GMT", "Universal", "Etc/UCT"]
)
def test_a_machine_that_is_set_to_utc_says_of_nobody_where_they_are(
    tmp_path: Path, name: str
) -> None:
    localtime, name_file = tmp_path / "localtime", tmp_path / "timezone"
    localtime.symlink_to(f"/usr/share/zoneinfo/{name}")
    name_file.write_text(f"{name}\n")
    for environ in ({}, {"TZ": name}, {"TZ": f":{name}"}):
        assert system_zone(environ, localtime=localtime, name_file=name_file) is None
    far = {"TZ": "Etc/GMT+5"}
    assert system_zone(far, localtime=localtime, name_file=name_file) == "Etc/GMT+5"


CONFIG = """
model: m
providers: {p: {kind: anthropic, api_key: k-1}}
models: {m: {provider: p, id: x, context_tokens: 100000}}
"""


def test_utc_that_is_written_out_is_a_choice(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"timezone: UTC{CONFIG}")
    assert layers_of(load(path, {})).top[TIMEZONE.name] == "UTC"
    path.write_text(CONFIG)
    assert TIMEZONE.name not in layers_of(load(path, {"TZ": "Etc/UTC"})).top


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
