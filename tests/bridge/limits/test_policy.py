"""Resolution: the last layer counts, and no ceiling is ever passed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.limits.keys import CEILING_KEYS, COST_PER_DAY, KEYS, PAUSED, WHO_CAN_ASK
from bridge.limits.lists import People
from bridge.limits.policy import BUILT_IN, CEILINGS, Layer, clamped, resolve
from tests.bridge.limits.values import ceilings, layers, values_of

pairs = st.sampled_from(CEILING_KEYS).flatmap(
    lambda key: st.tuples(st.just(key), *[values_of(key)] * 3)
)


@given(pairs)
def test_clamping_never_widens(given_: tuple[Any, Any, Any, Any]) -> None:
    """`meet` is the lower bound of an order: what it gives is allowed by both, whatever the order in
    which they are asked."""
    key, a, b, c = given_
    meet = key.kind.meet
    assert meet(a, b) == meet(b, a)
    assert meet(a, a) == a
    assert meet(a, meet(b, c)) == meet(meet(a, b), c)
    assert meet(meet(a, b), a) == meet(a, b)


@given(layers, layers, ceilings)
def test_no_layer_passes_a_ceiling(one: dict[str, Any], two: dict[str, Any], top: Any) -> None:
    policy = resolve([Layer("a", one), Layer("b", two)], top)
    for key in KEYS:
        value = policy[key]
        if key.name in top:
            assert clamped(key, value, top[key.name]) == value
        else:
            assert value == two.get(key.name, one.get(key.name, key.default))


@given(layers, layers)
def test_each_key_is_resolved_by_itself(one: dict[str, Any], two: dict[str, Any]) -> None:
    policy = resolve([Layer("a", one), Layer("b", two)], {})
    for key in KEYS:
        expected = "b" if key.name in two else "a" if key.name in one else BUILT_IN
        assert policy.origin(key) == expected


@given(layers)
def test_an_empty_layer_changes_nothing(one: dict[str, Any]) -> None:
    layered = [Layer("a", one)]
    assert resolve([*layered, Layer("b", {})], {}) == resolve(layered, {})


def test_a_ceiling_holds_where_nothing_is_set_and_says_so() -> None:
    policy = resolve([], {"cost_per_day_usd": 5})
    assert (policy[COST_PER_DAY], policy.origin(COST_PER_DAY)) == (5, CEILINGS)
    policy = resolve([Layer("file", {"cost_per_day_usd": 9})], {"cost_per_day_usd": 5})
    assert policy.effective["cost_per_day_usd"].wished == 9
    assert resolve([Layer("file", {"paused": False})], {"paused": True})[PAUSED]


def test_admins_and_a_list_are_the_admins_of_the_list() -> None:
    policy = resolve(
        [Layer("file", {"who_can_ask": People(ids=frozenset({"1"}))})],
        {"who_can_ask": People(admins=True)},
    )
    assert policy[WHO_CAN_ASK] == People(True, frozenset({"1"}))
