"""What changes in files while the bot runs: taken over where it is safe, and nothing by a bad file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.settings import PriceSettings
from bridge.access import ChannelAccess
from bridge.config import Config, load
from bridge.limits.keys import COST_PER_DAY, PAUSED
from bridge.reloading import ACCESS, Reloading, Source, differing, merged
from channels.base import Address
from channels.slack.settings import SlackSettings
from channels.telegram.settings import TelegramSettings
from memory.policies import PolicyPlace
from tests.bridge.bed import Bed, bed

GROUP = Address("fake", "bot", "team", None, private=False)
FIRST = """\
timezone: UTC
model: m
providers:
  p: {kind: openai, api_key: abc}
models:
  m: {provider: p, id: gpt-x, price: {input: 1, output: 2, as_of: 2026-11-01}}
channels:
  telegram: {token: "123:abc"}
"""


class Files:
    """A configuration that changes."""

    def __init__(self, folder: Path, it: Bed, first: str = FIRST) -> None:
        self.path = folder / "config.yaml"
        self.path.write_text(first)
        config = load(self.path, {})
        price = config.models["m"].price
        assert price is not None
        self.prices: dict[str, PriceSettings] = {"m": price}
        self.applied = 0
        self.admitted: list[Mapping[str, ChannelAccess]] = []
        self.source = Source(self.path, lambda: load(self.path, {}))
        services = it.services
        self.reloading = Reloading(
            config,
            self.source,
            services.policies,
            services.gate,
            self.prices,
            (),
            self._applied,
            self.admitted.append,
        )

    def _applied(self) -> None:
        self.applied += 1

    async def change(self, text: str) -> None:
        self.path.write_text(text)
        await self.reloading.reload(self.source)


async def test_what_is_safe_is_taken_over_and_the_rest_needs_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with bed(tmp_path) as it:
        files = Files(tmp_path, it)
        more = "defaults: {cost_per_day_usd: 2}\nceilings: {cost_per_day_usd: 1}\n"
        limits = "installation: {cost_per_month_usd: 7}\nlimits: {steps_per_run: 3}\n"
        limits += "log: {level: DEBUG}\n"
        await files.change(FIRST.replace("input: 1", "input: 3") + more + limits)
        policy = it.services.policies.of(GROUP, "ana")
        assert (policy[COST_PER_DAY], policy.origin(COST_PER_DAY)) == (1_000_000, "ceilings")
        assert it.services.gate.limit_microusd == 7_000_000
        assert files.prices["m"].input == 3
        assert files.applied == 1
        assert files.reloading.restart == ("limits.steps_per_run", "log.level")
        assert "this needs a restart: limits.steps_per_run, log.level" in caplog.text
        await files.change(FIRST)
        assert files.reloading.restart == ()
        assert it.services.policies.of(GROUP, "ana")[COST_PER_DAY] is None


async def test_who_may_talk_is_taken_over_and_how_to_connect_is_not(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        files = Files(tmp_path, it)
        more = ", owners: [1], allowed: [2, -3], members_of: [-4], access: open"
        await files.change(FIRST.replace('"123:abc"', f'"124:abc"{more}'))
        assert files.reloading.restart == ("channels.telegram.token",)
        (rules,) = files.admitted
        assert rules["telegram"] == ChannelAccess(
            frozenset({"1"}), frozenset({"2", "-3"}), open=True, members_of=frozenset({"-4"})
        )
        await files.change(FIRST)
        assert files.admitted[1]["telegram"] == ChannelAccess()


async def test_slacks_managers_are_taken_over(tmp_path: Path) -> None:
    slack = "  slack: {bot_token: xoxb-1, app_token: xapp-1, managers: [%s]}\n"
    async with bed(tmp_path) as it:
        files = Files(tmp_path, it, FIRST + slack % "")
        await files.change(FIRST + slack % "U0ANA00001, S0LEADS001")
        assert files.reloading.restart == ()
        (rules,) = files.admitted
        assert rules["slack"].managers == {"U0ANA00001", "S0LEADS001"}


def test_all_that_rules_of_access_are_made_of_is_taken_over() -> None:
    ours = {
        "slack": set(SlackSettings.model_fields),
        "telegram": set(TelegramSettings.model_fields),
    }
    connecting = {"token", "bot_token", "app_token", "signing_secret", "http_port"}
    assert ours["slack"] | ours["telegram"] == ACCESS | connecting | {"base_url", "proxy"}


async def test_a_bad_file_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with bed(tmp_path) as it:
        files = Files(tmp_path, it)
        await files.change(FIRST + "defaults: {cost_per_day_usd: 2}\n")
        await files.change(FIRST + "defaults: {cost_per_day_usd: much}\n")
        assert it.services.policies.of(GROUP, "ana")[COST_PER_DAY] == 2_000_000
        assert "config.yaml:9:12 defaults.cost_per_day_usd" in caplog.text
        assert files.applied == 1
        (refused,) = files.reloading.refused
        assert "config.yaml:9:12 defaults.cost_per_day_usd" in refused
        files.path.unlink()
        await files.reloading.reload(files.source)
        assert "cannot be read" in files.reloading.refused[0]
        await files.change(FIRST)
        assert files.reloading.refused == (), "it is mended"


async def test_both_are_watched(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        files, policies = Files(tmp_path, it), it.services.policies
        watching = asyncio.create_task(files.reloading.run())
        try:
            async with asyncio.timeout(10):
                while not files.applied or not policies.of(GROUP, "ana")[PAUSED]:
                    # again, since nobody tells when a watch has begun
                    files.path.write_text(FIRST + "defaults: {cost_per_day_usd: 2}\n")
                    file = policies.files.path(PolicyPlace("fake", "team"))
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text("paused: yes\n")
                    await asyncio.sleep(0.3)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        assert policies.of(GROUP, "ana")[COST_PER_DAY] == 2_000_000


def test_merged_is_new_where_it_is_asked_and_old_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"

    def read(text: str) -> Config:
        path.write_text(text)
        return load(path, {})

    old = read(FIRST)
    new = read(FIRST.replace('{token: "123:abc"}', '{token: "124:x", defaults: {paused: yes}}'))
    changed = sorted(differing(old, new))
    assert changed == ["channels.telegram.defaults", "channels.telegram.token"]
    made = merged(old, new, ["channels.telegram.defaults"])
    assert list(differing(made, new)) == ["channels.telegram.token"]
