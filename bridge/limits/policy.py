"""The policy of one chat, topic and person: each key's value, and where it comes from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from bridge.limits.keys import BY_NAME, KEYS, Key

T = TypeVar("T")
Values = Mapping[str, Any]

BUILT_IN = "built in"
CEILINGS = "ceilings"


@dataclass(frozen=True, slots=True)
class Layer:
    """Values that were set at one place; `origin` names it to people."""

    origin: str
    values: Values


@dataclass(frozen=True, slots=True)
class Effective:
    """A value that holds. `wished`: what was set, where a ceiling has made it narrower."""

    value: Any
    origin: str
    wished: Any = None


@dataclass(frozen=True, slots=True)
class Policy:
    """All keys with their values. `policy[KEY]` is the value."""

    effective: Mapping[str, Effective]

    def __getitem__(self, key: Key[T]) -> T:
        return cast("T", self.effective[key.name].value)

    def origin(self, key: Key[Any]) -> str:
        """Where the value comes from; `ceilings` where one has made it narrower."""
        return self.effective[key.name].origin


_DEFAULTS = {key.name: Effective(key.default, BUILT_IN) for key in KEYS}


def resolve(layers: Iterable[Layer], ceilings: Values) -> Policy:
    """Of each key the last layer that has it counts, and never more than its ceiling."""
    effective = dict(_DEFAULTS)
    for layer in layers:
        for name, value in layer.values.items():
            effective[name] = Effective(value, layer.origin)
    for name, ceiling in ceilings.items():
        found = effective[name]
        value = clamped(BY_NAME[name], found.value, ceiling)
        if value != found.value:
            effective[name] = Effective(value, CEILINGS, found.value)
    return Policy(effective)


def clamped(key: Key[Any], value: Any, ceiling: Any) -> Any:
    """The value, or what of it the ceiling allows; a value of None is no limit."""
    return ceiling if value is None else key.kind.meet(value, ceiling)
