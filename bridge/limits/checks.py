"""What the configuration's limits say about its models, checked on the texts as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bridge.limits.keys import KEYS, MODEL
from bridge.limits.kinds import Number
from bridge.suggestions import suggestion
from bridge.yaml_source import Document, Fault, Path, Value

_COST_OF_A_RUN = "cost_per_run_usd"
_COSTS_OF_CHATS = (key.name for key in KEYS if isinstance(key.kind, Number) and key.kind.cost)
_COSTS = frozenset((_COST_OF_A_RUN, *_COSTS_OF_CHATS))


def policy_faults(document: Document) -> list[Fault]:
    """Costs that no price is there for, and models that no chat may use."""
    usable = _usable(document.values)
    models = _section(document.values.get("models"))
    notes = _section(document.values.get("memory")).get("notes_model")  # a chat pays for its notes
    paid = [*usable, *([notes] if isinstance(notes, str) else [])]
    unpriced = [name for name in paid if name in models and "price" not in _section(models[name])]
    faults = [
        document.fault(("models_for_chats", index), _not_there(name, models))
        for index, name in enumerate(_names(document.values.get("models_for_chats")))
        if models and name not in models
    ]
    for path, section in _sections(document.values):
        model = section.get(MODEL.name)
        if isinstance(model, str) and model not in usable:
            faults.append(document.fault((*path, MODEL.name), _not_usable(model, usable)))
        if unpriced:
            faults += [
                document.fault((*path, key), f"needs models.{unpriced[0]}.price, which is missing")
                for key in section
                if key in _COSTS
            ]
    return faults


def _usable(values: Mapping[str, Value]) -> list[str]:
    """The models that a chat may use."""
    model = values.get("model")
    names = [model] if isinstance(model, str) else []
    names += _names(values.get("fallback_models")) + _names(values.get("models_for_chats"))
    return list(dict.fromkeys(names))


def _sections(values: Mapping[str, Value]) -> Iterator[tuple[Path, Mapping[str, Value]]]:
    """What may set a limit. Those that stand without being written hold as far as there are prices:
    a bot whose model has none starts as well."""
    for name in ("defaults", "ceilings", "installation"):
        yield (name,), _section(values.get(name))
    caps = _section(values.get("limits"))
    yield ("limits",), {key: caps[key] for key in caps if key == _COST_OF_A_RUN}
    for name, channel in _section(values.get("channels")).items():
        yield ("channels", name, "defaults"), _section(_section(channel).get("defaults"))
    for name, person in _section(values.get("people")).items():
        yield ("people", name), _section(person)


def _section(value: Value | None) -> Mapping[str, Value]:
    return value if isinstance(value, dict) else {}


def _names(value: Value | None) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _not_there(wrong: str, models: Mapping[str, Value]) -> str:
    return (
        f"is no key of models{suggestion(wrong, models)} (there are: {', '.join(sorted(models))})"
    )


def _not_usable(wrong: str, usable: list[str]) -> str:
    return (
        f"is not among the models for chats{suggestion(wrong, usable)} (model, fallback_models and "
        f"models_for_chats name: {', '.join(usable)})"
    )
