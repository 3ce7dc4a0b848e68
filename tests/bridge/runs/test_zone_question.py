"""Nobody's hours are counted in UTC in silence: the zone is the configuration's, the profile's, or
asked for once in a private chat, when it first matters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent.testing import calls
from bridge.limits.keys import TIMEZONE
from bridge.limits.policies import PolicyLayers
from channels.base import InboundMessage, Press
from tests.bridge.bed import Bed, bed

CLOCK = calls(("a", "current_time", {}))
ASKED = "I do not know your time zone"


def at(it: Bed, zone: str) -> InboundMessage:
    message = it.channel.message("when?")
    return replace(message, sender=replace(message.sender, timezone=zone))


async def ask(it: Bed, message: InboundMessage) -> str:
    await it.bridge.receive(message)
    await it.bridge.idle()
    return it.channel.finals[-1]


def clock(it: Bed) -> str:
    """What the model was told last."""
    return str(it.provider.requests[-1].messages[-1].tool_results[0].content)


async def press(it: Bed, zone: str) -> str:
    message = it.channel.message("")
    pressed = replace(message, event=f"p:{zone}", press=Press("1", "zone", zone, "7"))
    await it.bridge.receive(pressed)
    await it.bridge.idle()
    return it.channel.notices[-1]


async def test_it_is_asked_once_when_it_first_matters(tmp_path: Path) -> None:
    async with bed(
        tmp_path, ["Hi.", CLOCK, "Noon.", CLOCK, "One.", CLOCK, "Two."], zone=None
    ) as it:
        assert await it.ask("hi") == "Hi."
        assert ASKED in await it.ask("what time is it?")
        assert "UTC" in clock(it)
        labels = [button.label for button in it.channel.replies[-1].buttons]
        assert labels == ["New York", "Los Angeles", "London", "Kolkata", "UTC"]
        assert await it.ask("and now?") == "One."
        assert "Your time zone is now Asia/Kolkata" in await press(it, "Asia/Kolkata")
        assert await it.ask("and now?") == "Two."
        assert "(Asia/Kolkata)" in clock(it)


async def test_what_a_command_writes_down_with_its_date_makes_it_matter(tmp_path: Path) -> None:
    async with bed(tmp_path, [], zone=None) as it:
        assert ASKED in await it.ask("/remember likes tea")
        assert ASKED not in await it.ask("/remember likes coffee"), "once"


async def test_a_group_is_told_once_and_not_asked(tmp_path: Path) -> None:
    team = {"chat": "team", "private": False}
    async with bed(tmp_path, [CLOCK, "Noon.", CLOCK, "One."], zone=None) as it:
        told = await it.ask("time?", **team)
        assert "I do not know this group's time zone" in told
        assert "Admins set it: /limits timezone: Europe/Berlin" in told
        assert not it.channel.replies[-1].buttons
        assert await it.ask("time?", **team) == "One."
        assert "time zone" not in await it.ask("/remember likes tea", **team)


async def test_notes_of_earlier_days_make_it_matter(tmp_path: Path) -> None:
    async with bed(tmp_path, ["a", "b", "c"], zone=None) as it:
        await it.ask("one")
        await it.ask("/new")
        assert ASKED in await it.ask("two")
        assert await it.ask("three") == "c"


async def test_it_is_not_asked_where_it_is_known(tmp_path: Path) -> None:
    async with bed(tmp_path, [CLOCK, "Noon."]) as it:
        assert await it.ask("time?") == "Noon.", "the configuration says it"


async def test_a_profile_says_it_also_after_a_restart_and_the_chat_has_the_last_word(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, [CLOCK, "Noon."], zone=None) as it:
        assert await ask(it, at(it, "Asia/Tokyo")) == "Noon."
        assert "(Asia/Tokyo)" in clock(it)
    async with bed(tmp_path, [CLOCK, "One.", CLOCK, "Two.", CLOCK, "Three."], zone=None) as it:
        assert await it.ask("time?") == "One."
        assert "(Asia/Tokyo)" in clock(it)
        assert await ask(it, at(it, "Nowhere/Land")) == "Two."
        assert "(Asia/Tokyo)" in clock(it)
        await it.ask("/limits timezone: Europe/Rome")
        await ask(it, at(it, "Asia/Tokyo"))
        assert "(Europe/Rome)" in clock(it)


async def test_the_configuration_comes_before_a_profile(tmp_path: Path) -> None:
    async with bed(tmp_path, [CLOCK, "Noon."], zone="Europe/Rome") as it:
        await ask(it, at(it, "Asia/Tokyo"))
        assert "(Europe/Rome)" in clock(it)


async def test_everybody_sets_the_zone_of_their_private_chat_and_nothing_else(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, [], zone=None) as it:
        assert "timezone" in await it.ask("/limits timezone: Europe/Rome")
        assert "only an owner" in await it.ask("/limits cost_per_day_usd: 1")
        both = "/limits timezone: Asia/Tokyo\nblocked: [1]"
        assert "only an owner" in await it.ask(both, person="bo", chat="2")
        await it.ask("/limits timezone: Europe/Rome", chat="team", private=False)
        team = it.channel.message("", chat="team", private=False).address
        await it.services.policies.read(team)
        assert it.services.policies.of(team, "ana")[TIMEZONE] == "UTC"


async def test_when_a_limit_opens_again_in_utc_it_says_how_to_tell_the_zone(tmp_path: Path) -> None:
    layers = PolicyLayers(defaults={"questions_per_person_per_day": 1})
    async with bed(tmp_path, ["Yes.", "Yes."], zone=None, layers=layers) as it:
        await it.ask("one")
        told = await it.ask("two")
        assert "(UTC)" in told
        assert "I do not know your time zone" in told
        await it.ask("/limits timezone: Asia/Tokyo")
        told = await it.ask("three")
        assert "(Asia/Tokyo)" in told
        assert "I do not know" not in told
