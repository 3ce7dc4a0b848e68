"""Not one request is refused for its form, whatever happened before: generated conversations, judged
by the rules of the strict servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings

from agent.history import repair
from agent.messages import Message, TextBlock, user_text
from agent.provider import ModelRequest
from tests.fuzz.conversation import TOOLS, Conversation, judged_speech
from tests.fuzz.histories import histories
from tests.fuzz.judges import judged, judges
from tests.fuzz.operations import Operation, Turn, operations
from tests.fuzz.sockets import LESSONS, Street, street

big = settings.get_current_profile_name() == "fuzz"
sized = settings(settings.get_profile("fuzz" if big else "sample"))
plain = settings(sized, max_examples=500 if big else 40)
few = settings(sized, max_examples=60 if big else 3)
pytestmark = pytest.mark.timeout(3_600 if big else 180)
in_parts = pytest.mark.parametrize("part", range(4 if big else 1))  # for two processes


@in_parts
@given(history=histories)
@plain
def test_every_api_takes_any_history(part: int, history: list[Message]) -> None:
    del part
    messages = tuple(repair([*history, user_text("question")]))
    request = ModelRequest("model", "s", messages, tuple(t.spec for t in TOOLS), 500)
    judged(judges(), request)


@in_parts
@given(happened=operations)
@sized
def test_every_api_takes_every_request_of_a_conversation(
    part: int, happened: Sequence[Operation]
) -> None:
    del part
    asyncio.run(lead(Conversation(judged_speech()), happened))


async def lead(conversation: Conversation, happened: Sequence[Operation]) -> None:
    """All that happened, and then the next question is answered."""
    for operation in happened:
        await conversation.go_on(operation)
    await conversation.go_on(Turn((TextBlock("and now?"),), (), 0))
    assert conversation.rows[-1].text == "done"


@pytest.fixture(scope="module")
def on_the_street() -> Iterator[tuple[asyncio.Runner, Street]]:
    """Servers and clients that live as long as many conversations, as they do in use."""
    with asyncio.Runner() as runner:
        opened = street()
        made = runner.run(opened.__aenter__())
        try:
            yield runner, made
        finally:
            runner.run(opened.__aexit__(None, None, None))


@given(happened=operations)
@few
def test_through_the_real_sdks_only_a_servers_dialect_is_learnt(
    on_the_street: tuple[asyncio.Runner, Street], happened: Sequence[Operation]
) -> None:
    runner, servers = on_the_street
    runner.run(lead(Conversation(servers.speak, spins=20), happened))
    for name, refused in servers.refusals().items():
        lessons = LESSONS.get(name, ())
        assert all(any(lesson in text for lesson in lessons) for text in refused), (name, refused)
