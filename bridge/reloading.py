"""What changes in files while the bot runs: chats' limits at once, the configuration where it is safe.

A configuration with a fault changes nothing. What needs a restart is logged, and told by
`galata status`, until the file says again what runs; so are the faults of a file that was refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from agent.settings import PriceSettings
from agent.tools import Tool
from bridge.access import ChannelAccess
from bridge.config import Config, ConfigError
from bridge.configuration.limit_layers import known_of, layers_of
from bridge.limits.gate import MonthlyGate
from bridge.limits.policies import ChatPolicies
from bridge.registry import access_rules
from memory.errors import StoreError

log = logging.getLogger(__name__)

DEBOUNCE_MS = 200  # changes that come together are one

_WHOLE = frozenset(("defaults", "ceilings", "people", "conversation", "who_can_stop"))
# Who may talk and set limits, in a channel's section: all that `access_rules` reads.
ACCESS = frozenset(
    (
        *("owners", "allowed", "access", "members_of", "workspace_members"),
        *("guests", "other_organizations", "shared_channels", "managers"),
    )
)
_SINGLE = frozenset(
    (
        *("installation.cost_per_month_usd", "installation.cost_per_day_usd"),
        "installation.cost_per_person_per_day_usd",
    )
)


@dataclass(frozen=True, slots=True)
class Source:
    """The file of the configuration; `load` reads it anew and raises `ConfigError`."""

    path: Path
    load: Callable[[], Config]


class Reloading:
    """`prices`: those that calls are counted by, of the models that there are. `applied()` comes after
    each change; `admit(rules)` where who may talk has changed."""

    def __init__(
        self,
        config: Config,
        source: Source | None,
        policies: ChatPolicies,
        gate: MonthlyGate,
        prices: dict[str, PriceSettings],
        more_tools: Sequence[Tool],
        applied: Callable[[], None],
        admit: Callable[[Mapping[str, ChannelAccess]], None],
    ) -> None:
        self._config = config
        self._source = source
        self._policies = policies
        self._gate = gate
        self._prices = prices
        self._more_tools = more_tools
        self._applied = applied
        self._admit = admit
        self.restart: tuple[str, ...] = ()
        self.refused: tuple[str, ...] = ()  # why the file as it is now is not taken over

    async def run(self) -> None:
        """Watch until cancelled. Where that cannot be, files are read when a message needs them."""
        try:
            await self._watch()
        except Exception:
            log.exception("files are not watched any more: what changes is seen later")

    async def _watch(self) -> None:
        folder = self._policies.files.folder
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_groups(folder), name="files of limits")
            if self._source is not None:
                group.create_task(self._watch_config(self._source), name="configuration")

    async def _watch_groups(self, folder: Path) -> None:
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

        files = self._policies.files
        async for changes in awatch(folder, debounce=DEBOUNCE_MS):
            for place in {files.place_of(Path(path)) for _, path in changes} - {None}:
                try:
                    await files.read(cast("Any", place))
                except StoreError as error:
                    log.warning("limits that have changed are read later: %s", error)

    async def _watch_config(self, source: Source) -> None:
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

        name = source.path.name
        async for changes in awatch(
            source.path.absolute().parent, recursive=False, debounce=DEBOUNCE_MS
        ):
            if any(Path(path).name == name for _, path in changes):
                await self.reload(source)

    async def reload(self, source: Source) -> None:
        """Read the file, and take over what can be taken over."""
        try:
            new = await asyncio.to_thread(source.load)
        except ConfigError as error:
            log.error("the configuration is not taken over, what held before holds on:\n%s", error)
            self.refused = tuple(str(error).splitlines())
            return
        self.refused = ()
        changed = list(differing(self._config, new))
        safe = [key for key in changed if self._is_safe(key, new)]
        self.restart = tuple(key for key in changed if key not in safe)
        if safe:
            self._take_over(new, safe)
            log.info("the configuration has changed: %s", ", ".join(safe))
        if self.restart:
            log.warning("this needs a restart: %s", ", ".join(self.restart))

    def _is_safe(self, key: str, new: Config) -> bool:
        parts = key.split(".")
        if parts[0] in _WHOLE or key in _SINGLE:
            return True
        if parts[0] == "channels" and parts[2:3]:
            return parts[2] == "defaults" or parts[2] in ACCESS
        if parts[0] == "models" and parts[2:3] == ["price"]:
            model = new.models.get(parts[1])
            return parts[1] in self._prices and model is not None and model.price is not None
        return key == "models_for_chats" and set(new.models_for_chats) <= set(self._built())

    def _built(self) -> Sequence[str]:
        config = self._config
        return (config.model, *config.fallback_models, *config.models_for_chats)

    def _take_over(self, new: Config, safe: Sequence[str]) -> None:
        before = access_rules(self._config)
        config = self._config = merged(self._config, new, safe)
        self._policies.layers = layers_of(config)
        self._policies.files.know(known_of(config, self._more_tools))
        self._gate.change(
            limit_usd=config.installation.cost_per_month_usd,
            day_usd=config.installation.cost_per_day_usd,
            person_usd=config.installation.cost_per_person_per_day_usd,
        )
        for name in self._prices:
            price = config.models[name].price
            if price is not None:
                self._prices[name] = price
        rules = access_rules(config)
        if rules != before:
            self._admit(rules)
        self._applied()


def differing(old: BaseModel, new: BaseModel, above: str = "") -> Iterator[str]:
    """The keys that differ, as `channels.telegram.defaults`; of sections that only one has the
    section's."""
    for name in type(old).model_fields:
        yield from _differing(getattr(old, name), getattr(new, name), f"{above}{name}")


def _differing(one: Any, other: Any, key: str) -> Iterator[str]:
    if one == other:
        return
    if isinstance(one, BaseModel) and type(one) is type(other):
        yield from differing(one, other, f"{key}.")
    elif isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        for name in sorted({*ours, *theirs}):
            yield from _differing(ours.get(name), theirs.get(name), f"{key}.{name}")
    else:
        yield key


def merged(old: Config, new: Config, keys: Sequence[str]) -> Config:
    """The old configuration with the new values of these keys."""
    made: BaseModel = old
    for key in keys:
        made = _with(made, new, key.split("."))
    return cast("Config", made)


def _with(old: Any, new: Any, parts: Sequence[str]) -> Any:
    name, *rest = parts
    if isinstance(old, dict):
        ours, theirs = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        if not rest and name not in theirs:
            return {key: value for key, value in ours.items() if key != name}
        return {**ours, name: _with(ours[name], theirs[name], rest) if rest else theirs[name]}
    there = getattr(old, name)
    value = getattr(new, name)
    if rest and there is not None and value is not None:
        value = _with(there, value, rest)
    return old.model_copy(update={name: value})
