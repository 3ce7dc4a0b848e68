"""config.example.yaml is the reference: it validates, and knows exactly the keys of the models."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from bridge.config import load
from bridge.configuration.schema import ANY_NAME, field_at, known_keys, section_at
from bridge.limits.keys import BY_NAME
from bridge.yaml_source import Path as KeyPath
from bridge.yaml_source import dotted, parse

EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
ENVIRON = {
    "ANTHROPIC_API_KEY": "a-key",
    "OPENAI_API_KEY": "a-key",
    "PROXY_PASSWORD": "a-password",
    "TELEGRAM_BOT_TOKEN": "123456:abc",
    "SLACK_BOT_TOKEN": "xoxb-1-a",
    "SLACK_APP_TOKEN": "xapp-1-a",
    "SLACK_SIGNING_SECRET": "a-secret",
}
# The one pair of keys that stands instead of another.
OVER_HTTP = ("signing_secret", "http_port")


def uncommented() -> str:
    """The example with every commented key switched on."""
    return re.sub(r"(?m)^( *)#(?=[a-z])", r"\1", EXAMPLE.read_text())


def as_known(path: KeyPath) -> KeyPath:
    """The path with chosen names replaced, as `known_keys` gives it."""
    names = ("providers", "models", "people")
    return (path[0], ANY_NAME, *path[2:]) if path[0] in names and len(path) > 1 else path


def test_it_validates_as_it_is() -> None:
    config = load(
        EXAMPLE, {name: ENVIRON[name] for name in ("ANTHROPIC_API_KEY", "TELEGRAM_BOT_TOKEN")}
    )
    assert config.channels.telegram is not None
    assert config.channels.slack is None
    assert set(config.providers) == {"anthropic"}


def test_it_validates_with_everything_switched_on(tmp_path: Path) -> None:
    text = "\n".join(
        line for line in uncommented().splitlines() if line.split(":")[0].strip() not in OVER_HTTP
    )
    path = tmp_path / "config.yaml"
    path.write_text(text)
    config = load(path, ENVIRON)
    assert config.channels.slack is not None
    assert set(config.providers) == {"anthropic", "openai"}


def test_it_and_the_models_know_the_same_keys() -> None:
    document = parse(uncommented().encode())
    written = {as_known(p) for p in document.positions if not isinstance(p[-1], int)}
    written -= {("providers", ANY_NAME), ("models", ANY_NAME), ("people", ANY_NAME)}
    known = set(known_keys())
    assert written <= known
    assert sorted(map(dotted, filter(must_be_shown, written))) == sorted(
        map(dotted, filter(must_be_shown, known))
    )


def must_be_shown(path: KeyPath) -> bool:
    """`defaults` shows the keys of limits; of the other sections with such keys it shows some."""
    elsewhere = path[0] in ("ceilings", "people") or path[2:3] == ("defaults",)
    return not (elsewhere and path[-1] in BY_NAME)


def test_every_key_has_a_comment() -> None:
    lines = uncommented().splitlines()
    seen: set[str] = set()
    for path, (line, _) in parse(uncommented().encode()).positions.items():
        key = str(path[-1])
        own, above = lines[line - 1], lines[line - 2].strip()
        if key in seen or (section_at(path) is not None and len(path) == 2):
            continue  # a second provider's keys, and chosen names
        assert " # " in own or above.startswith("# "), f"{dotted(path)} has no comment"
        seen.add(key)


def test_the_defaults_that_it_shows_are_the_defaults() -> None:
    """For keys that are commented out; what has no default of its own is an example."""
    shown = EXAMPLE.read_text()
    checked = 0
    for path in parse(uncommented().encode()).positions:
        info = field_at(path)
        found = re.search(rf"(?m)^ *#{path[-1]}: (.*?)(?: # .*)?$", shown)
        if info is None or found is None or info.default in (None, PydanticUndefined):
            continue
        section = section_at(path[:-1])
        assert section is not None
        assert default_of(section, str(path[-1])) == found[1], dotted(path)
        checked += 1
    assert checked >= 15


def default_of(section: type[BaseModel], key: str) -> str:
    """The default as it is written in YAML."""
    info = next(f for n, f in section.model_fields.items() if key in (n, f.alias))
    value = info.default
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else _plain(value)


def _plain(value: object) -> str:
    return "[]" if value == () else str(value)
