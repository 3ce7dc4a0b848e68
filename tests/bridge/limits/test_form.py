"""/limits as a form: opened for admins, faults at their fields, sending is the confirmation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bridge.limits.policies import PolicyLayers
from channels.base import Capabilities
from channels.errors import FormRefused
from channels.inputs import Form
from channels.messages import Press
from tests.bridge.bed import Bed, bed
from tests.bridge.limits.test_command import group_file
from tests.bridge.limits.test_effects import GROUP, write

FORMS = Capabilities(reactions=True, buttons=True, commands_in_threads=False, forms=True)
COSTLY = PolicyLayers(ceilings={"cost_per_day_usd": 5_000_000})


async def opened(it: Bed, person: str = "boss") -> Form:
    it.channel.admins = {"boss"}
    it.channel.capabilities = FORMS
    await it.send("/limits", person=person, chat=GROUP, private=False)
    await it.bridge.idle()
    return it.channel.forms[-1]


async def sent(it: Bed, form: Form, person: str = "boss", **texts: str) -> str:
    count = len(it.channel.finals)
    message = it.channel.submission(form, person=person, chat=GROUP, **texts)
    await it.bridge.receive(message)
    await it.bridge.idle()
    return it.channel.finals[-1] if len(it.channel.finals) > count else ""


async def test_a_field_for_each_key_with_ceilings_as_hints(tmp_path: Path) -> None:
    write(tmp_path, "cost_per_day_usd: 1.00\n")
    async with bed(tmp_path, layers=COSTLY) as it:
        form = await opened(it)
        fields = {field.name: field for field in form.fields}
        assert fields["cost_per_day_usd"].value == "1.00"
        assert "allows: 5.00" in fields["cost_per_day_usd"].hint
        assert [value for value, _ in fields["paused"].choices] == ["", "no", "yes"]
        told = await sent(it, form, cost_per_day_usd="2.50", paused="yes")
        assert told.startswith("Boss: Changed (revision 2)")
        assert "`cost_per_day_usd`: 1.00 → 2.50" in told
        assert group_file(tmp_path).read_text() == "cost_per_day_usd: 2.50\npaused: yes\n"
        assert [button.label for button in it.channel.replies[-1].buttons] == ["Undo"]


async def test_the_form_is_in_the_chats_language(tmp_path: Path) -> None:
    async with bed(tmp_path, language="zh") as it:
        fields = {field.name: field for field in (await opened(it)).fields}
        assert fields["tokens_per_day"].hint.startswith("聊天一天读写的 token 数")


async def test_an_empty_field_removes_its_key_and_what_is_not_touched_stays(tmp_path: Path) -> None:
    write(tmp_path, "# ours\ninstructions: 'Short: please'\nlanguage: de\n")
    async with bed(tmp_path) as it:
        form = await opened(it)
        assert await sent(it, form) == ""
        await sent(it, form, language="")
        assert group_file(tmp_path).read_text() == "# ours\ninstructions: 'Short: please'\n"
        form = await opened(it)
        await sent(it, form, instructions="Two\nlines: both")
        form = await opened(it)
        fields = {field.name: field.value for field in form.fields}
        assert fields["instructions"] == "Two\nlines: both"


async def test_all_faults_are_at_their_fields_and_nothing_is_stored(tmp_path: Path) -> None:
    async with bed(tmp_path, layers=COSTLY) as it:
        form = await opened(it)
        with pytest.raises(FormRefused) as refused:
            await sent(it, form, cost_per_day_usd="12", tokens_per_day="0,50")
        assert set(refused.value.faults) == {"cost_per_day_usd", "tokens_per_day"}
        assert "above what you may set (5.00)" in refused.value.faults["cost_per_day_usd"]
        assert not group_file(tmp_path).exists()
        assert await sent(it, form, cost_per_day_usd="4")


async def test_who_may_no_more_and_an_older_revision_are_refused_in_the_form(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        form = await opened(it)
        it.channel.admins = set()
        with pytest.raises(FormRefused) as refused:
            await sent(it, form, paused="yes")
        assert "Only admins" in refused.value.faults["paused"]
        it.channel.admins = {"boss"}
        write(tmp_path, "language: de\n")
        with pytest.raises(FormRefused) as refused:
            await sent(it, form, paused="yes")
        assert "`language`: not set → de" in refused.value.faults["paused"]
        assert group_file(tmp_path).read_text() == "language: de\n"


async def test_members_see_it_as_text_and_a_form_that_comes_too_late_has_a_button(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        await opened(it)
        await it.ask("/limits", person="ana", chat=GROUP, private=False)
        assert len(it.channel.forms) == 1
        assert it.channel.replies[-1].buttons == ()


@pytest.mark.parametrize("written", ["[42", "a: b", "@bob", "{"])
async def test_a_fault_of_the_syntax_is_at_its_field_too(tmp_path: Path, written: str) -> None:
    async with bed(tmp_path) as it:
        form = await opened(it)
        with pytest.raises(FormRefused) as refused:
            await sent(it, form, blocked=written, language="de", tokens_per_day="50")
        assert set(refused.value.faults) == {"blocked"}


async def test_an_empty_text_does_not_take_all_limits_away(tmp_path: Path) -> None:
    stood = "cost_per_day_usd: 1.00\n"
    write(tmp_path, stood)
    async with bed(tmp_path) as it:
        (as_text,) = (await opened(it)).buttons
        pressed = it.channel.message("", person="boss", chat=GROUP, private=False)
        press = Press("1", as_text.action, as_text.value, "")
        await it.bridge.receive(replace(pressed, event="p:1", press=press))
        await it.bridge.idle()
        for text in ("", " \n", "# nothing"):
            with pytest.raises(FormRefused) as refused:
                await sent(it, it.channel.forms[-1], text=text)
            assert "`key: default`" in refused.value.faults["text"]
            command = f"/limits replace {text}"
            await it.ask(command, person="boss", chat=GROUP, private=False)
            assert group_file(tmp_path).read_text() == stood
        removed = "cost_per_day_usd: default"
        assert "1.00 → not set" in await sent(it, it.channel.forms[-1], text=removed)


async def test_a_text_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        form = await opened(it)
        it.channel.capabilities = replace(FORMS, forms=False)
        (as_text,) = form.buttons
        pressed = it.channel.message("", person="boss", chat=GROUP, private=False)
        press = Press("1", as_text.action, as_text.value, "")
        await it.bridge.receive(replace(pressed, event="p:1", press=press))
        await it.bridge.idle()
        assert "limits replace" in it.channel.notices[-1]


async def test_faults_of_the_chats_file_are_told_at_the_first_field(tmp_path: Path) -> None:
    write(tmp_path, "pasued: yes\n")
    async with bed(tmp_path) as it:
        form = await opened(it)
        with pytest.raises(FormRefused) as refused:
            await sent(it, form, tokens_per_day="777")
        assert set(refused.value.faults) == {"paused"}
        assert "mended in the file" in refused.value.faults["paused"]
