"""The bridge's pure parts: session keys, speaker labels, the text catalogue, what the inbox keeps."""

from __future__ import annotations

import re
import string
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ProviderError, Refusal, RefusalKind
from bridge.commands.table import NAMES
from bridge.errors import sentence
from bridge.inbound import dump, load
from bridge.session import memory_scope, session_of
from bridge.speakers import label
from bridge.texts import Say, Texts
from channels.base import (
    Address,
    Attachment,
    Capabilities,
    Command,
    InboundMessage,
    Press,
    Sender,
)

part = st.text(alphabet="ab:=%/tu-1", min_size=1, max_size=4)
addresses = st.builds(Address, part, part, part, st.one_of(st.none(), part), st.booleans())


@given(addresses, part, addresses, part)
def test_two_places_never_share_a_session(a: Address, who: str, b: Address, other: str) -> None:
    for scope in ("shared", "one_per_person"):
        key_a, key_b = session_of(a, who, scope).key, session_of(b, other, scope).key
        same_place = (a.channel, a.account, a.chat, a.thread) == (
            b.channel,
            b.account,
            b.chat,
            b.thread,
        )
        if scope == "shared":
            assert (key_a == key_b) == same_place
        elif not a.private and not b.private:
            assert (key_a == key_b) == (same_place and who == other)


@given(addresses, addresses)
def test_private_and_group_memory_are_apart(a: Address, b: Address) -> None:
    if memory_scope(a) == memory_scope(b):
        assert (a.private, a.channel, a.account, a.chat) == (
            b.private,
            b.channel,
            b.account,
            b.chat,
        )


@given(st.text(max_size=80), st.integers(1, 99))
def test_no_name_can_forge_another_speakers_line(name: str, number: int) -> None:
    made = label(name, number)
    head, _, tail = made.rpartition("#")
    assert tail == str(number)
    assert head
    assert len(head) <= 32
    assert not set(head) & set("[](){}<>#:|\n\r`")
    assert all(c.isprintable() for c in head)


def test_every_text_exists_in_every_language_with_the_same_placeholders() -> None:
    texts = Texts.load()
    english = texts.catalogue["en"]
    assert {"en", "zh"} <= set(texts.catalogue)

    def fields(text: str) -> set[tuple[str, str | None]]:
        found = string.Formatter().parse(text)
        return {
            (field, "" if "|" in (spec or "") else spec) for _, field, spec, _ in found if field
        }

    for language, catalogue in texts.catalogue.items():
        assert set(catalogue) == set(english), language
        for key, text in catalogue.items():
            assert fields(text) == fields(english[key]), (language, key)


def test_no_text_names_a_command_that_its_channel_would_not_take() -> None:
    """A command is named by `{cmd:name}` only, and by one that there is."""
    for language, catalogue in Texts.load().catalogue.items():
        for key, text in catalogue.items():
            assert re.search(r"(?<![A-Za-z0-9.])/[a-z]", text) is None, (language, key)
            specs = {spec for _, name, spec, _ in string.Formatter().parse(text) if name == "cmd"}
            assert specs <= NAMES | {""}, (language, key)


@pytest.mark.parametrize("count", [1, "1"])
def test_one_is_no_plural(count: object) -> None:
    texts = Texts.load()
    one = texts.say("en", "limit_steps", limit=count)
    assert one.startswith("I stopped after 1 step without")
    assert texts.say("en", "limit_steps", limit=12).startswith("I stopped after 12 steps without")
    waiting = texts.say("en", "queue_full", count=count)
    assert waiting.startswith("1 message is waiting here")
    assert "{" not in "".join((one, waiting, texts.say("zh", "limit_steps", limit=count)))


def test_a_number_of_things_has_a_word_for_one_of_them() -> None:
    """In English; what always is more than one (a limit of ours), or stands alone, needs none."""
    always_more = {"of", "megapixels", "bytes", "characters", "levels", "entries"}
    numbers = r"count|limit|minutes|days|messages|calls|tokens|usage|pictures|transcripts"
    for key, text in Texts.load().catalogue["en"].items():
        for word in re.findall(rf"\{{(?:{numbers})\}} (?:tool )?([a-z]+s)\b", text):
            assert word in always_more, (key, word)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("prefix", "other"), [("/", "/galata"), ("/galata ", " /new")])
def test_commands_read_as_they_are_typed_on_the_channel(
    language: str, prefix: str, other: str
) -> None:
    say = Say(Texts.load(), language, Capabilities(True, True, True, prefix))
    for key in ("help_new", "new_while_running", "not_while_running", "error_format"):
        told = say(key, id="X")
        assert f"{prefix}new" in told or f"{prefix}cancel" in told
        assert other not in told
    assert f"{prefix}foo" in say("unknown_command", command="foo")


@pytest.mark.parametrize(
    ("wishes", "language"),
    [
        (("zh",), "zh"),
        ((None, "zh-Hans-CN"), "zh"),
        ((None, "pt-BR"), "en"),
        ((None, None), "en"),
        (("en", "zh"), "en"),
    ],
)
def test_the_language_falls_back_to_english(wishes: tuple[str | None, ...], language: str) -> None:
    assert Texts.load().language(*wishes) == language


def test_an_inbound_message_survives_the_inbox() -> None:
    message = InboundMessage(
        Address("telegram", "1", "-100", "7", False),
        "m:1",
        "1",
        Sender("5", "Ana", "de"),
        datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
        "hi 😀",
        (Attachment("image", "f", "p.jpg", "image/jpeg", 5),),
        command=Command("ask", "x"),
        press=Press("1", "stop", "r", "9"),
        quote="q",
    )
    assert load(dump(message)) == message
    bare = replace(message, attachments=(), command=None, press=None, quote=None)
    assert load(dump(bare)) == bare


@pytest.mark.parametrize(
    ("wait_s", "told"), [(None, "in a minute"), (60.0, "in a minute"), (600.0, "in 10 minutes")]
)
def test_a_wait_that_the_provider_asks_for_is_told(wait_s: float | None, told: str) -> None:
    refused = ProviderError("p", Refusal(RefusalKind.RATE_LIMIT, 429, retry_after_s=wait_s))
    assert f"Please try again {told}." in sentence(refused, Say(Texts.load(), "en"), "ID")
