"""What one section of the configuration says about another, checked on the texts as written, so
that it is reported together with everything else."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent.settings import MAX_OUTPUT_TOKENS, least_room
from bridge.limits.checks import policy_faults
from bridge.sharing import group_fault
from bridge.suggestions import suggestion
from bridge.yaml_source import Document, Fault, Value

_NEEDED = {
    "providers": "is missing: name at least one endpoint, see config.example.yaml",
    "models": "is missing: describe at least one model, see config.example.yaml",
    "model": "is missing: name the entry of models that answers",
}
_NO = ("false", "no", "off", "0", "f", "n")  # as pydantic reads a boolean
_IN_HEADERS = ("api_key", "organization")  # of a provider


def cross_faults(document: Document) -> list[Fault]:
    """The faults of the document's references to its own entries."""
    providers = _section(document.values.get("providers"))
    models = _section(document.values.get("models"))
    faults = [
        document.fault((key,), message)
        for key, message in _NEEDED.items()
        if (key,) not in document.positions or document.values.get(key) == {}
    ]
    model = document.values.get("model")
    if isinstance(model, str) and models and model not in models:
        faults.append(document.fault(("model",), _not_among(model, models, "models")))
    fallbacks = document.values.get("fallback_models")
    faults += [
        document.fault(("fallback_models", index), _not_among(name, models, "models"))
        for index, name in enumerate(fallbacks if isinstance(fallbacks, list) else [])
        if isinstance(name, str) and models and name not in models
    ]
    notes = _section(document.values.get("memory")).get("notes_model")
    if isinstance(notes, str) and models and notes not in models:
        faults.append(
            document.fault(("memory", "notes_model"), _not_among(notes, models, "models"))
        )
    shared = _section(document.values.get("memory")).get("shared")
    faults += [
        document.fault(("memory", "shared", index), fault)
        for index, name in enumerate(shared if isinstance(shared, list) else [])
        if isinstance(name, str) and (fault := group_fault(name)) is not None
    ]
    faults += _budget_faults(document, models)
    for name, entry in models.items():
        provider = _section(entry).get("provider")
        if isinstance(provider, str) and providers and provider not in providers:
            path = ("models", name, "provider")
            faults.append(document.fault(path, _not_among(provider, providers, "providers")))
    faults += [
        document.fault(
            ("providers", name, "api_key"),
            "is missing (only an endpoint at base_url may need none)",
        )
        for name, entry in providers.items()
        if isinstance(entry, dict) and not _reachable(document, name)
    ]
    return [*faults, *_header_faults(document, providers), *policy_faults(document)]


def no_header_value(text: str) -> str | None:
    """Why a key cannot travel in an HTTP header, without repeating it; None when it can."""
    if all("!" <= character <= "~" for character in text):
        return None
    return "holds a blank, a line break or a letter that no key has: was more than the key copied?"


def _header_faults(document: Document, providers: Mapping[str, Value]) -> list[Fault]:
    """Keys that no request could carry: it would fail at each question instead."""
    return [
        document.fault(("providers", name, key), message)
        for name, entry in providers.items()
        for key in _IN_HEADERS
        if isinstance(value := _section(entry).get(key), str)
        if (message := no_header_value(value)) is not None
    ]


def _budget_faults(document: Document, models: Mapping[str, Value]) -> list[Fault]:
    """A budget in which the reserved reply of a model that may answer leaves no room for a question
    (see `ModelSettings`)."""
    budget = _number(_section(document.values.get("context")).get("budget_tokens"))
    needs = [(_needs(_section(models.get(name))), name) for name in _answering(document)]
    (reserve, room), name = max(needs, key=lambda need: sum(need[0]), default=((0, 0), ""))
    if budget is None or reserve + room <= budget:
        return []
    message = (
        f"({budget}) must be at least {reserve + room}: models.{name}.max_output_tokens ({reserve}) "
        f"and {room} for one question with its instructions and tools"
    )
    return [document.fault(("context", "budget_tokens"), message)]


def _answering(document: Document) -> list[str]:
    """The names of the models that may answer somebody."""
    named = [document.values.get("model")]
    for key in ("fallback_models", "models_for_chats"):
        listed = document.values.get(key)
        named += listed if isinstance(listed, list) else []
    return [name for name in named if isinstance(name, str)]


def _needs(model: Mapping[str, Value]) -> tuple[int, int]:
    """Tokens that a model reserves for its answer, and those that it must leave for the question."""
    reserve = _number(model.get("max_output_tokens")) or MAX_OUTPUT_TOKENS
    return reserve, least_room(tools=str(model.get("tools", "true")).lower() not in _NO)


def _number(value: Value | None) -> int | None:
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _reachable(document: Document, provider: str) -> bool:
    return any(
        ("providers", provider, key) in document.positions for key in ("api_key", "base_url")
    )


def _section(value: Value | None) -> dict[str, Value]:
    return value if isinstance(value, dict) else {}


def _not_among(wrong: str, known: Collection[str], section: str) -> str:
    return (
        f"is no key of {section}{suggestion(wrong, known)} (there are: {', '.join(sorted(known))})"
    )
