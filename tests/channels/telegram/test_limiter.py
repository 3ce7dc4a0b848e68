"""What may leave when, in virtual time: a loop whose clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from telegram.error import BadRequest, RetryAfter

from channels.parts import Halt, Halted, Passage
from channels.telegram.limiter import Dropped, Limiter, Urgency
from channels.telegram.moves import Moves
from tests.servers.telegram_faults import FloodControl
from tests.virtual_time import in_virtual_time

PRIVATE, OTHER, GROUP = 5, 6, -1005


class Telegram:
    """Notes when requests arrive, and refuses the next `refusals`."""

    def __init__(self) -> None:
        self.limiter = Limiter(Moves())
        self.arrived: list[tuple[float, int]] = []
        self.refusals: list[Exception] = []

    async def request(self, chat: int | None, urgency: Urgency | None) -> None:
        async def callback(chat: int) -> bool:
            self.arrived.append((now(), chat))
            if self.refusals:
                raise self.refusals.pop(0)
            return True

        data = {} if chat is None else {"chat_id": chat}
        await self.limiter.process_request(callback, (chat,), {}, "sendMessage", data, urgency)

    def times(self, chat: int) -> list[float]:
        return [round(at, 3) for at, to in self.arrived if to == chat]


def now() -> float:
    return asyncio.get_running_loop().time()


def flood(seconds: int, monkeypatch: pytest.MonkeyPatch) -> RetryAfter:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    return RetryAfter(timedelta(seconds=seconds))


def test_answers_leave_three_in_three_seconds_in_a_chat() -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        await asyncio.gather(*(telegram.request(PRIVATE, "answer") for _ in range(5)))
        return telegram.times(PRIVATE)

    assert in_virtual_time(main) == [0.0, 0.0, 0.0, 3.2, 3.2]


def test_a_group_never_gets_more_than_twenty_in_a_minute() -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        await asyncio.gather(*(telegram.request(GROUP, "answer") for _ in range(60)))
        return telegram.times(GROUP)

    times = in_virtual_time(main)
    assert all(later - earlier >= 60 for earlier, later in pairwise(times[::20]))
    assert times[20] < 65


def test_all_chats_together_get_thirty_a_second() -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        await asyncio.gather(*(telegram.request(chat, "answer") for chat in range(1, 62)))
        return sorted(at for at, _ in telegram.arrived)

    times = in_virtual_time(main)
    assert times[29] == 0.0
    assert times[30] > 0.0
    assert times[60] >= 1.0


def test_a_preview_leaves_room_for_the_answer_that_follows() -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        for _ in range(2):  # it begins, and shows its first words
            await telegram.request(PRIVATE, "preview")
        with pytest.raises(Dropped):
            await telegram.request(PRIVATE, "preview")
        await telegram.request(PRIVATE, "answer")
        await asyncio.sleep(4)
        await telegram.request(PRIVATE, "preview")
        return telegram.times(PRIVATE)

    assert in_virtual_time(main) == [0.0, 0.0, 0.0, 4.0]


@pytest.mark.parametrize(("chat", "at_s"), [(PRIVATE, 3.2), (GROUP, 16.0)])
def test_a_preview_begins_when_its_button_can_follow_at_once_and_both_leave_room_for_an_answer(
    chat: int, at_s: float
) -> None:
    async def main() -> tuple[float, float]:
        telegram = Telegram()
        for _ in range(3 if chat == PRIVATE else 5):
            await telegram.request(chat, "answer")
        while True:
            with suppress(Dropped):
                await telegram.request(chat, "beginning")
                break
            await asyncio.sleep(0.1)
        begun = now()
        await telegram.request(chat, "following")
        await telegram.request(chat, "answer")
        return begun, now()

    begun, answered = in_virtual_time(main)
    assert begun == pytest.approx(at_s, abs=0.2)
    assert answered == begun


def test_typing_and_reactions_take_no_message_from_a_chat() -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        for urgency in ("typing", "reaction", "beginning", "following", "answer"):
            await telegram.request(PRIVATE, urgency)  # type: ignore[arg-type]
        return telegram.times(PRIVATE)

    assert in_virtual_time(main) == [0.0] * 5


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_a_platform_that_counts_strictly_never_refuses_whatever_is_asked_for(chat: int) -> None:
    async def main() -> tuple[int, int]:
        limiter, floods = Limiter(Moves()), FloodControl(realistic=True, clock=now)
        chance, sent = random.Random(7), 0

        async def arrives() -> bool:
            nonlocal sent
            await asyncio.sleep(chance.uniform(0, 0.15))  # on its way
            floods.check(chat, "sendmessage", counted=True)
            sent += 1
            return True

        async def one(urgency: Urgency) -> None:
            with suppress(Dropped):
                await limiter.process_request(arrives, (), {}, "", {"chat_id": chat}, urgency)

        asked: list[asyncio.Task[None]] = []
        for _ in range(400):
            urgency: Urgency = chance.choice(("answer", "preview", "beginning", "following"))
            asked.append(asyncio.create_task(one(urgency)))
            await asyncio.sleep(chance.expovariate(1.0 if chat == PRIVATE else 0.2))
        await asyncio.gather(*asked)
        return floods.refused, sent

    refused, sent = in_virtual_time(main)
    assert refused == 0
    assert sent > 150


def test_in_a_busy_group_two_answers_find_room_beside_previews_and_reactions() -> None:
    """ "Stopped.", and what the stop has dropped."""

    async def main() -> list[float]:
        telegram = Telegram()
        for _ in range(30):
            for urgency in ("preview", "reaction"):
                with suppress(Dropped):
                    await telegram.request(GROUP, urgency)
            await asyncio.sleep(1.5)
        began = now()
        for _ in range(2):
            await telegram.request(GROUP, "answer")
        return [at - began for at in telegram.times(GROUP)[-2:]]

    assert in_virtual_time(main) == pytest.approx([0, 0], abs=0.5)


def test_previews_in_their_interval_go_through() -> None:
    async def main() -> int:
        telegram = Telegram()
        for _ in range(20):
            await telegram.request(PRIVATE, "preview")
            await asyncio.sleep(1.6)
        return len(telegram.arrived)

    assert in_virtual_time(main) == 20


def test_previews_and_typing_of_many_chats_leave_a_quarter_to_answers() -> None:
    async def main() -> tuple[int, list[float]]:
        telegram = Telegram()
        dropped = 0
        for chat in range(1, 41):
            try:
                await telegram.request(chat, "preview")
            except Dropped:
                dropped += 1
        with pytest.raises(Dropped):
            await telegram.request(99, "typing")
        for chat in range(101, 108):
            await telegram.request(chat, "answer")
        return dropped, [at for at, _ in telegram.arrived]

    dropped, times = in_virtual_time(main)
    assert dropped == 18
    assert times == [0.0] * 29


@pytest.mark.parametrize("urgency", ["preview", "following", "control"])
def test_every_message_to_a_chat_counts_against_its_one_budget(urgency: Urgency) -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        for _ in range(2):
            await telegram.request(PRIVATE, urgency)
        await asyncio.gather(*(telegram.request(PRIVATE, "answer") for _ in range(3)))
        return telegram.times(PRIVATE)

    assert in_virtual_time(main) == [0.0, 0.0, 0.0, 3.2, 3.2]


@pytest.mark.parametrize("urgency", ["preview", "typing"])
@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_what_does_not_wait_never_delays_the_next_answer(urgency: Urgency, chat: int) -> None:
    async def main() -> list[float]:
        telegram, waits = Telegram(), list[float]()
        for _ in range(12):
            for _ in range(10):
                with suppress(Dropped):
                    await telegram.request(chat, urgency)
            began = now()
            await telegram.request(chat, "answer")
            waits.append(now() - began)
            await asyncio.sleep(4)
        return waits

    assert in_virtual_time(main) == [0.0] * 12


def test_answers_leave_before_previews_that_come_while_they_wait() -> None:
    async def main() -> tuple[list[float], int]:
        telegram, shown = Telegram(), 0
        waiting = [asyncio.create_task(telegram.request(PRIVATE, "answer")) for _ in range(6)]
        while not all(task.done() for task in waiting):
            await asyncio.sleep(0.1)
            with suppress(Dropped):
                await telegram.request(PRIVATE, "preview")
                shown += not all(task.done() for task in waiting)
        return telegram.times(PRIVATE)[:6], shown

    assert in_virtual_time(main) == ([0.0, 0.0, 0.0, 3.2, 3.2, 3.2], 0)


def test_answers_previews_and_typing_together_stay_below_twenty_a_minute_in_a_group() -> None:
    async def main() -> list[float]:
        telegram = Telegram()

        async def others() -> None:
            for number in range(400):
                with suppress(Dropped):
                    await telegram.request(GROUP, "typing" if number % 2 else "preview")
                await asyncio.sleep(0.5)

        async def answers() -> None:
            for _ in range(30):
                await telegram.request(GROUP, "answer")
                await asyncio.sleep(1)

        await asyncio.gather(answers(), others())
        return telegram.times(GROUP)

    times = in_virtual_time(main)
    assert len(times) > 40
    assert all(later - earlier >= 60 for earlier, later in zip(times, times[20:], strict=False))


def test_a_flood_closes_that_chat_alone_and_answers_come_through_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> Telegram:
        telegram = Telegram()
        telegram.refusals.append(flood(30, monkeypatch))
        first = asyncio.create_task(telegram.request(PRIVATE, "answer"))
        await asyncio.sleep(0.1)
        for urgency in ("preview", "typing", "control"):
            with pytest.raises(Dropped):
                await telegram.request(PRIVATE, urgency)  # type: ignore[arg-type]
        await telegram.request(OTHER, "answer")
        await first
        await asyncio.sleep(1)
        await telegram.request(PRIVATE, "preview")
        return telegram

    telegram = in_virtual_time(main)
    assert telegram.times(PRIVATE) == [0.0, 30.0, 31.0]
    assert telegram.times(OTHER) == [0.1]


def test_a_flooded_preview_is_dropped_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        telegram.refusals.append(flood(5, monkeypatch))
        with pytest.raises(Dropped):
            await telegram.request(PRIVATE, "preview")
        await asyncio.sleep(60)
        return telegram.times(PRIVATE)

    assert in_virtual_time(main) == [0.0]


def test_the_answer_to_a_press_never_waits() -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        waiting = [asyncio.create_task(telegram.request(7, "answer")) for _ in range(10)]
        await asyncio.sleep(0.5)
        await telegram.request(None, "control")
        await telegram.request(7, "control")
        await asyncio.gather(*waiting)
        return [at for at, _ in telegram.arrived][3:5]

    assert in_virtual_time(main) == [0.5, 0.5]


@pytest.mark.parametrize(
    ("endpoint", "handed_on"),
    [
        ("sendMessage", {"message_id": 7, "text": "Low tide."}),
        ("editMessageText", True),
        ("editMessageReplyMarkup", True),
    ],
)
def test_of_the_message_that_comes_back_no_more_is_handed_on_than_somebody_reads(
    endpoint: str, handed_on: Any
) -> None:
    async def callback() -> dict[str, Any]:
        question = {"message_id": 6, "text": "How is the tide?"}
        return {"message_id": 7, "text": "Low tide.", "reply_to_message": question}

    async def main() -> Any:
        limiter = Limiter(Moves())
        return await limiter.process_request(
            callback, (), {}, endpoint, {"chat_id": PRIVATE}, "answer"
        )

    assert in_virtual_time(main) == handed_on


def test_other_refusals_are_raised_at_once() -> None:
    async def main() -> None:
        telegram = Telegram()
        telegram.refusals.append(BadRequest("Bad Request: chat not found"))
        with pytest.raises(BadRequest):
            await telegram.request(PRIVATE, "answer")
        await telegram.request(PRIVATE, "answer")

    in_virtual_time(main)


def test_idle_chats_are_forgotten() -> None:
    async def main() -> int:
        telegram = Telegram()
        for chat in range(1, 2001):
            await telegram.request(chat, "answer")
            await asyncio.sleep(1)
        return len(telegram.limiter._chats)

    assert in_virtual_time(main) <= 256


def test_a_cancelled_answer_does_not_hold_up_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        telegram.refusals.append(flood(30, monkeypatch))
        first = asyncio.create_task(telegram.request(PRIVATE, "answer"))
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await telegram.request(PRIVATE, "answer")
        return telegram.times(PRIVATE)

    assert in_virtual_time(main) == [0.0, 30.0]


@pytest.mark.parametrize("behind", ["bucket", "flood", "another answer"])
def test_a_halted_answer_leaves_at_once_and_holds_up_nobody(
    behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        if behind == "bucket":
            for _ in range(3):
                await telegram.request(PRIVATE, "answer")
        else:
            telegram.refusals.append(flood(30, monkeypatch))
        first = None
        if behind == "another answer":
            first = asyncio.create_task(telegram.request(PRIVATE, "answer"))
            await asyncio.sleep(0)
        halt = Halt()
        waiting = asyncio.create_task(telegram.request(PRIVATE, Passage(halt)))
        await asyncio.sleep(0.5)
        halt.set()
        with pytest.raises(Halted):
            await waiting
        assert now() == 0.5
        await asyncio.gather(telegram.request(PRIVATE, "answer"), *filter(None, [first]))
        return telegram.times(PRIVATE)

    assert (
        in_virtual_time(main)
        == {
            "bucket": [0.0, 0.0, 0.0, 3.2],
            "flood": [0.0, 30.0],
            "another answer": [0.0, 30.0, 30.0],
        }[behind]
    )


def test_an_answer_that_is_halted_already_is_not_sent() -> None:
    async def main() -> list[float]:
        telegram = Telegram()
        halt = Halt()
        halt.set()
        with pytest.raises(Halted):
            await telegram.request(PRIVATE, Passage(halt))
        return telegram.times(PRIVATE)

    assert in_virtual_time(main) == []


class Journal:
    """Notes when it hears what."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, str]] = []

    async def showing(self) -> None:
        raise AssertionError("the limiter knows no previews")

    async def previewed(self, message_id: str) -> bool:
        raise AssertionError("the limiter knows no previews")

    async def leaving(self, number: int) -> None:
        self.heard.append((now(), f"leaving {number}"))

    async def stayed(self, number: int) -> None:
        self.heard.append((now(), f"stayed {number}"))

    async def ended(self, number: int, how: str, message_id: str | None) -> None:
        raise AssertionError("the limiter ends nothing")


def test_a_message_is_not_said_to_leave_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> tuple[list[tuple[float, str]], list[float]]:
        telegram, journal = Telegram(), Journal()
        for _ in range(3):
            await telegram.request(PRIVATE, "answer")
        telegram.refusals.append(flood(30, monkeypatch))
        await telegram.request(PRIVATE, Passage(Halt(), journal, 2))
        await telegram.request(PRIVATE, Passage(Halt(), journal, 3).of_an_edit)
        return journal.heard, telegram.times(PRIVATE)

    heard, times = in_virtual_time(main)
    assert times == [0.0, 0.0, 0.0, 3.2, 33.2, 33.2]
    assert heard == [(3.2, "leaving 2"), (3.2, "stayed 2"), (33.2, "leaving 2")]
