"""The configuration: read from a YAML file, or from the environment when there is none.

All faults of a file that parses are reported at once, each with its place. The environment is read
here only (and by `bridge.configuration.environment`, its part for no file): callers hand it in as a
mapping.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from dotenv.parser import Binding, parse_stream
from pydantic import SecretStr, ValidationError

from bridge.configuration.cross_checks import cross_faults
from bridge.configuration.environment import default_zone, from_environment
from bridge.configuration.faults import ConfigError, validation_faults
from bridge.configuration.references import References, Unresolved
from bridge.configuration.settings import Config, passwords
from bridge.log import MASK
from bridge.yaml_source import Document, Fault, Unparsable, Value, parse
from bridge.yaml_source import Path as KeyPath

__all__ = ["Config", "ConfigError", "Fault", "from_environment", "load", "masked"]

ENV_FILE = ".env"


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """The configuration in the file `path`. Raises `ConfigError` with every fault of the file.

    `${NAME}` comes from `environ`, else from a file `.env` beside `path`.
    """
    source = str(path)
    try:
        document = parse(path.read_bytes())
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ConfigError(source, [Fault(0, 0, "", message)]) from None
    except Unparsable as error:
        raise ConfigError(source, [error.fault]) from None
    env_file = path.parent / ENV_FILE
    references = References(environ, _env_values(env_file), str(env_file))
    _resolve(document, references, _switched_on(document.values))
    document.faults += cross_faults(document)
    if ("timezone",) not in document.positions:
        zone = default_zone(environ)
        if zone is not None:
            document.values["timezone"] = zone
    try:
        config = Config.model_validate(document.values)
    except ValidationError as error:
        document.faults += validation_faults(error, document)
    else:
        if not document.faults:
            return config
    raise ConfigError(source, document.faults)


def masked(config: Config) -> str:
    """The configuration as YAML, defaults included and secrets replaced."""
    from ruamel.yaml import YAML

    yaml: Any = YAML(typ="safe", pure=True)  # its attributes are typed as None
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 100
    yaml.sort_base_mapping_type_on_output = False
    out = io.StringIO()
    yaml.dump(_masked(config.model_dump(mode="python", by_alias=True, exclude_none=True)), out)
    return out.getvalue()


def _masked(value: Any) -> Any:
    match value:
        case dict():
            items = cast("dict[str, Any]", value)
            return {key: _masked(item) for key, item in items.items()}
        case list() | tuple():
            return [_masked(item) for item in cast("list[Any]", value)]
        case SecretStr():
            return MASK
        case str():
            for password in passwords(value):
                value = value.replace(password, MASK)
            return value
        case _:
            return value


def _env_values(path: Path) -> Mapping[str, str]:
    """The `.env` beside the file; nothing when there is none. Raises `ConfigError`."""
    if not path.exists():
        return {}
    try:
        data = path.read_bytes()
        bindings = list(parse_stream(io.StringIO(data.decode("utf-8-sig"))))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ConfigError(str(path), [Fault(0, 0, "", message)]) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), [Fault(line, 1, "", "is not UTF-8 text")]) from None
    faults = [Fault(line, 1, key, what) for line, key, what in _env_faults(bindings)]
    if faults:
        raise ConfigError(str(path), faults)
    return {binding.key: binding.value for binding in bindings if binding.key and binding.value}


def _env_faults(bindings: Iterable[Binding]) -> Iterator[tuple[int, str, str]]:
    """Line, name and what is wrong; nothing of the line itself, which may be a secret."""
    seen: dict[str, int] = {}
    for binding in bindings:
        text = binding.original.string  # with the empty lines before it
        line = binding.original.line + len(text) - len(text.lstrip("\n"))
        if binding.error:
            yield line, "", "is no line of the form NAME=value"
        elif binding.key is not None:
            if binding.key in seen:
                yield line, binding.key, f"stands in line {seen[binding.key]} already"
            seen.setdefault(binding.key, line)


def _switched_on(values: Mapping[str, Value]) -> Callable[[KeyPath], bool]:
    """Whether the key at a path has an effect: all do, but for providers that no answer needs."""
    models, fallbacks = values.get("models"), values.get("fallback_models")
    named = [values.get("model"), *(fallbacks if isinstance(fallbacks, list) else [])]
    known = models if isinstance(models, dict) else {}
    entries = [known.get(name) for name in named if isinstance(name, str)]
    needed = [entry.get("provider") for entry in entries if isinstance(entry, dict)]

    def on(path: KeyPath) -> bool:
        return path[0] != "providers" or len(path) < 2 or not needed or path[1] in needed

    return on


def _resolve(document: Document, references: References, on: Callable[[KeyPath], bool]) -> None:
    """Replace references in place. One that fails is a fault where the section is on; its key is
    left out."""

    def resolved(value: Value, path: KeyPath) -> Value | None:
        match value:
            case dict():
                pairs = [(key, resolved(item, (*path, key))) for key, item in value.items()]
                return {key: item for key, item in pairs if item is not None}
            case list():
                items = [resolved(item, (*path, index)) for index, item in enumerate(value)]
                return ["" if item is None else item for item in items]
            case _:
                try:
                    return references.resolve(value)
                except Unresolved as error:
                    if on(path):
                        document.leave_out(path, str(error))
                    return None

    document.values = cast("dict[str, Value]", resolved(document.values, ()))
