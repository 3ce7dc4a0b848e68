"""What is wrong with a configuration, in plain words: pydantic's findings and suggestions.

No message repeats a value: it could be a secret in the wrong place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bridge.configuration.schema import field_at, fields, section_at
from bridge.limits.sections import meaning_of
from bridge.log import Redactor
from bridge.suggestions import suggestion
from bridge.yaml_source import Document, Fault, Path

# Pydantic's error types in our words; `{ge}` and the like come from its context.
_WORDS = {
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a number, not infinite",
    "bool_parsing": "must be yes or no",
    "bool_type": "must be yes or no",
    "string_type": "must be a single text",
    "string_too_long": "may have {max_length} characters at most",
    "string_too_short": "must have {min_length} characters or more",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    "tuple_type": "must be a list: `[a, b]`, or a line `- a` for each",
    "dict_type": "must be a section of `key: value` lines",
    "model_type": "must be a section of `key: value` lines",
    "date_from_datetime_parsing": "must be a date such as 2026-11-30",
    "date_parsing": "must be a date such as 2026-11-30",
    "date_from_datetime_inexact": "must be a date such as 2026-11-30",
    "literal_error": "must be {expected}",
}

# Keys that an earlier Galata has had, and what they are now.
_RENAMED: Mapping[Path, str] = {("limits", "cost_per_month_usd"): "installation.cost_per_month_usd"}


class ConfigError(Exception):
    """The configuration cannot be used: `faults` in the order of the file, all of them."""

    def __init__(self, source: str, faults: Iterable[Fault]) -> None:
        self.source = source
        self.faults = tuple(sorted(faults))
        super().__init__(source)

    def __str__(self) -> str:
        redactor = Redactor()
        return "\n".join(redactor.clean(self._line(fault)) for fault in self.faults)

    def _line(self, fault: Fault) -> str:
        place = f"{self.source}:{fault.line}:{fault.column}" if fault.line else f"{self.source}:"
        key = f"{fault.key}: " if fault.key else ""
        return f"{place} {key}{fault.message}"


def validation_faults(error: ValidationError, document: Document) -> list[Fault]:
    """The findings of pydantic, except those that follow from a fault that is known already."""
    return [
        document.fault(path, message_of(details, path))
        for details in error.errors(include_url=False, include_input=False)
        for path in [tuple(part for part in details["loc"] if part != "[key]")]
        if not _follows(details, path, document)
    ]


def message_of(details: ErrorDetails, path: Path) -> str:
    """What is wrong with the key at `path`, and what is allowed."""
    kind = details["type"]
    if kind == "extra_forbidden":
        return _unknown(path)
    if kind == "value_error":
        return details["msg"].removeprefix("Value error, ")
    context = details.get("ctx", {})
    message = _WORDS.get(kind, "").format(**context) or details["msg"]
    keys = tuple(part for part in path if isinstance(part, str))
    field = field_at(keys)
    meaning = None if field is None else field.description or meaning_of(keys[-1])
    return message if meaning is None else f"{message} ({meaning})"


def _unknown(path: Path) -> str:
    if path in _RENAMED:
        return f"was renamed: it is {_RENAMED[path]} now"
    section = section_at(path[:-1])
    known = [] if section is None else list(fields(section))
    return f"unknown key{suggestion(str(path[-1]), known)} (allowed: {', '.join(known)})"


def _follows(details: ErrorDetails, path: Path, document: Document) -> bool:
    """Whether the finding only follows from a value that was left out: at the key itself, or in a
    check over all keys of its section."""
    if path in document.left_out:
        return True
    whole_section = details["type"] == "value_error"
    return whole_section and any(left[: len(path)] == path for left in document.left_out)
