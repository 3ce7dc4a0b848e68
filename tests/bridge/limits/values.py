"""Hypothesis strategies for the values of each key of a policy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from bridge.limits.keys import KEYS, Key
from bridge.limits.kinds import Choice, Number, YesNo
from bridge.limits.lists import ALL_TOPICS, SHARED_IDS, Audience, Ids, People, Tools, Topics
from bridge.limits.names import Language, Model, Text, Zone
from bridge.limits.times import Blocks, Hours, Pause, QuietHours, until_text

MODELS = ("claude-haiku", "gpt")
TOOLS = ("current_time", "read_transcript")
ids = st.frozensets(
    st.from_regex(r"-?[1-9][0-9]{0,10}", fullmatch=True).filter(lambda i: i not in SHARED_IDS),
    max_size=4,
)


minutes = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda moment: moment.replace(second=0, microsecond=0)
)


def _block(person: str) -> str:
    until = f" {until_text(datetime(2026, 11, 30, tzinfo=UTC))}" if person.endswith("7") else ""
    return f"{person}{until}"


NAMED: tuple[tuple[type[Any], st.SearchStrategy[Any]], ...] = (
    (YesNo, st.booleans()),
    (Ids, ids),
    (Pause, st.booleans() | minutes),
    (Blocks, ids.map(lambda found: frozenset(map(_block, found)))),
    (Topics, st.just(ALL_TOPICS) | st.frozensets(st.sampled_from(("1", "12", "40")), min_size=1)),
    (QuietHours, st.just(Hours()) | st.builds(Hours, st.integers(0, 719), st.integers(720, 1439))),
    (Tools, st.frozensets(st.sampled_from(TOOLS))),
    (Audience, st.builds(People, st.booleans(), st.none() | ids.filter(bool))),
    (Zone, st.sampled_from(("UTC", "Europe/Berlin", "America/Los_Angeles"))),
    (Language, st.sampled_from(("auto", "de", "zh-Hans"))),
    (Model, st.sampled_from(MODELS)),
    (Text, st.text(st.characters(exclude_categories=["Cs", "Co", "Cn"]), min_size=1, max_size=60)),
)


def values_of(key: Key[Any]) -> st.SearchStrategy[Any]:
    """Values of the key, without "no limit"."""
    kind = key.kind
    if isinstance(kind, Number):
        return st.integers(kind.least, kind.most)
    if isinstance(kind, Choice):
        return st.sampled_from(kind.words_in_order)
    found = next(strategy for type_, strategy in NAMED if isinstance(kind, type_))
    return found.filter(lambda value: not isinstance(value, str) or value == value.strip())


layers = st.fixed_dictionaries({}, optional={key.name: values_of(key) for key in KEYS})
ceilings = st.fixed_dictionaries(
    {}, optional={key.name: values_of(key) for key in KEYS if key.kind.ordered}
)
