"""What the configuration's models say about a key: its field, and the keys of a section."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bridge.configuration.settings import Config
from bridge.yaml_source import Path

ANY_NAME = "*"  # stands for a name that whoever writes the file chooses


def section_at(path: Path) -> type[BaseModel] | None:
    """The model of the section at `path`, or None when no section is there."""
    kind: Any = Config
    for part in path:
        kind = _child(kind, part)
    return kind if _is_model(kind) else None


def field_at(path: Path) -> FieldInfo | None:
    """The field of the key at `path`."""
    section = section_at(path[:-1]) if path else None
    return None if section is None else fields(section).get(str(path[-1]))


def fields(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """The section's fields by the names that stand in the file."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def known_keys(section: type[BaseModel] = Config, path: Path = ()) -> Iterator[Path]:
    """Every key that there is, sections included; names within a mapping are `*`."""
    for name, info in fields(section).items():
        here = (*path, name)
        yield here
        kind = _bare(info.annotation)
        if get_origin(kind) is dict:
            here, kind = (*here, ANY_NAME), _bare(get_args(kind)[1])
        if _is_model(kind):
            yield from known_keys(kind, here)


def _child(kind: Any, part: str | int) -> Any:
    if _is_model(kind):
        info = fields(kind).get(str(part))
        return None if info is None else _bare(info.annotation)
    return _bare(get_args(kind)[1]) if get_origin(kind) is dict else None


def _bare(annotation: Any) -> Any:
    """The type without `Annotated` and without `| None`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return _bare(kinds[0])
    return annotation


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(cast("type[Any]", kind), BaseModel)
