"""The configuration's sections of limits, made from the declarations of the keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, create_model

from bridge.limits.keys import BY_NAME, CEILING_KEYS, DEFAULT_KEYS, KEYS, LANGUAGE, PERSON_KEYS, Key
from bridge.limits.kinds import Known
from bridge.limits.numbers import Wrong
from bridge.yaml_source import Value, parse

WhoCanStop = Literal["asker_and_admins", "anyone"]
_ANYTHING = Known()


def _read(key: Key[Any], written: Any) -> Any:
    try:
        return key.kind.read(written, _ANYTHING)
    except Wrong as error:
        raise ValueError(str(error)) from None


# At the top of the configuration it means what it means in a chat's file.
Language = Annotated[str, BeforeValidator(lambda written: _read(LANGUAGE, written))]


def _written(key: Key[Any], value: Any) -> Value:
    """The value as a file has it: a text or a list."""
    return parse(f"value: {key.show(value)}".encode()).values["value"]


def _field(key: Key[Any]) -> tuple[Any, Any]:
    kind = Annotated[
        Any,
        BeforeValidator(lambda written: _read(key, written)),
        PlainSerializer(lambda value: None if value is None else _written(key, value)),
    ]
    return kind, Field(default=None)


def meaning_of(name: str) -> str | None:
    """What may stand behind a key of these sections, and what it does. Made when it is asked for: to
    read the catalogue takes longer than all else at a start of the command line."""
    key = BY_NAME.get(name)
    return None if key is None else f"{key.kind.words}; {key.sentence}"


def _section(name: str, doc: str, keys: Iterable[Key[Any]]) -> type[BaseModel]:
    config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    fields: dict[str, Any] = {key.name: _field(key) for key in keys}
    return create_model(name, __config__=config, __doc__=doc, **fields)


if TYPE_CHECKING:

    class Defaults(BaseModel): ...

    class ChannelDefaults(BaseModel): ...

    class Ceilings(BaseModel): ...

    class PersonLimits(BaseModel): ...

else:
    Defaults = _section("Defaults", "What holds in all chats.", DEFAULT_KEYS)
    ChannelDefaults = _section("ChannelDefaults", "What holds in a channel's chats.", KEYS)
    Ceilings = _section("Ceilings", "What no chat can pass.", CEILING_KEYS)
    PersonLimits = _section("PersonLimits", "What holds for one person.", PERSON_KEYS)


def values_of(section: BaseModel | None) -> dict[str, Any]:
    """What is set in a section."""
    if section is None:
        return {}
    return {name: getattr(section, name) for name in section.model_fields_set}
