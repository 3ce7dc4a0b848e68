"""The working copy of a run while the loop goes on: trimmed once, made smaller when a provider
refuses, repaired before each send. The stored history is never touched by it.

What leaves the copy is kept in memory before it is gone (`Keeper.flush`), and what the next run is
to load is written down after (`Keeper.bound`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent import overflow
from agent.context import (
    LEFT_OUT,
    NOTE_TOKENS,
    Budget,
    Sizes,
    Trimmed,
    Turn,
    Working,
    make_brief,
    note_room,
    note_tokens,
    size,
    trim,
    without_seals,
    without_thinking,
)
from agent.history import repair
from agent.images import with_images
from agent.messages import ImageBlock, Message, TextBlock, user_text
from agent.overflow import Rung
from agent.summary import as_note, digest, text_of_note

GENTLE = (Rung.COMPACT, Rung.AGGRESSIVE)  # those that a new note is made for
LEAST_NOTE = as_note(LEFT_OUT)
# Of what a note stands for, where the turns are too large without it: what a refusal seems to ask for
# is half a guess, and a conversation is not given up for it.
LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a run may see from now on: its `system` prompt, and of messages what `clean` leaves, as many
    of them as before."""

    system: str
    clean: Callable[[Turn], Turn]


@dataclass(frozen=True, slots=True)
class _Trial:
    """A smaller copy that no model has taken yet. `whole`: what it was before; `rung`: the last that
    made something leave (None: none of the ladder's); `lost`: something has left."""

    whole: Working
    rung: Rung | None = None
    lost: bool = False


class Keeper(Protocol):
    """Where what leaves a context goes. Each method takes a bounded time."""

    async def flush(
        self, dropped: Sequence[Message], note: str | None, *, room: int, summarise: bool
    ) -> str:
        """Keep the messages in memory; the note that stands for them from now on, and for what
        `note`, the one before, stood for, in `room` tokens if that is enough for any. `summarise`: by a
        model call, if that works in time."""
        ...

    async def snapshot(self) -> str | None:
        """Write a transcript and give its name; None when there were too many lately."""
        ...

    async def bound(self, rung: Rung | None, working: Working) -> None:
        """From now on this is where the context starts. `rung` None: it was trimmed."""
        ...


class WorkingCopy:
    """The messages of a run as they go to a model.

    What leaves is replaced by a note that is smaller than all that it stands for, the note before
    among it, and has what the turns leave of the tokens that are allowed; where even the shortest has
    no room, that one stands.
    """

    def __init__(self, working: Working, keeper: Keeper) -> None:
        self._working = replace(working, turns=tuple(map(without_seals, working.turns)))
        self._keeper = keeper
        self._whole_turn = working.newest  # the current one, whatever leaves the copy
        self._untried = list(overflow.LADDER)
        self._trial: _Trial | None = None
        self.was_reset = False

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages as they stand."""
        return self._working.messages()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns as they stand."""
        return self._working.turns

    def append(self, message: Message) -> None:
        """One more message of this run."""
        self._whole_turn = (*self._whole_turn, message)
        self._working = self._working.plus(message)

    def clean(self, clean: Callable[[Turn], Turn]) -> None:
        """Let `clean` take out what is not to be sent any more, but for the question that is being
        answered."""
        self._working = _cleaned(self._working, clean)
        self._whole_turn = _cleaned_newest(self._whole_turn, clean)
        if self._trial is not None:
            self._trial = replace(self._trial, whole=_cleaned(self._trial.whole, clean))

    def request(self, advice: str | None) -> tuple[Message, ...]:
        """A legal list to send. `advice`: a sentence of ours for this one call, stored nowhere."""
        messages = self._working.messages()
        if advice is not None:
            messages = (*messages, Message("user", (TextBlock(advice),)))
        return tuple(repair(messages))

    def size(self, sizes: Sizes) -> int:
        """Estimated tokens of the messages."""
        return size(self._working, sizes)

    def least(self, sizes: Sizes) -> int:
        """Estimated tokens of the messages that even the last rung leaves."""
        return size(overflow.reset(self._working, self._whole_turn).working, sizes)

    async def trim(self, budget: Budget, sizes: Sizes) -> None:
        """Line 1; once, before the loop."""
        trimmed = trim(self._working, budget, sizes)
        if trimmed.dropped:
            trimmed = await self._noted(trimmed, budget.tokens, sizes)
        elif size(trimmed.working, sizes) > budget.tokens:
            trimmed = self._with_less_note(trimmed, budget.tokens, sizes)
        self._take(trimmed)
        if trimmed.dropped:
            await self._keeper.bound(None, trimmed.working)

    async def climb(self, target: int, sizes: Sizes, *, highest: Rung = Rung.RESET) -> bool:
        """Line 4: the next rung, up to `highest`, that makes the copy smaller; false when none does.

        `target`: tokens that the messages may take, for the first rung. It is a trial: the next run
        begins with less only if a model has taken this, for the fault may lie elsewhere.
        """
        while self._untried and overflow.LADDER.index(self._untried[0]) <= overflow.LADDER.index(
            highest
        ):
            rung = self._untried.pop(0)
            trimmed = await self._try(rung, target, sizes)
            if trimmed is None or _least(trimmed, rung, sizes) >= self.size(sizes):
                continue
            if trimmed.dropped and rung in GENTLE:
                trimmed = await self._noted(trimmed, target, sizes, least=LEAST_SHARE)
            else:
                await self._flush(trimmed)
            self._try_out(trimmed, rung)
            return True
        return False

    async def answered(self) -> None:
        """A model has taken the copy as it is: for what comes later every rung can help again, and what
        was tried has proved itself."""
        self._untried = list(overflow.LADDER)
        trial, self._trial = self._trial, None
        if trial is not None and trial.lost:
            self.was_reset = self.was_reset or trial.rung is Rung.RESET
            await self._keeper.bound(trial.rung, self._working)

    def end_trial(self) -> None:
        """What was tried was no help: the copy is what it was before."""
        if self._trial is not None:
            self._working, self._trial = self._trial.whole, None
            self._untried = list(overflow.LADDER)

    async def reset(self) -> bool:
        """The last rung at once, for a form that is refused: it may be any earlier message's, however
        short. False when it was tried, or nothing is earlier."""
        tried, self._untried = Rung.RESET not in self._untried, []
        trimmed = overflow.reset(self._working, self._whole_turn)
        if tried or not trimmed.dropped:
            return False
        await self._flush(trimmed)
        self._try_out(trimmed, Rung.RESET)
        return True

    async def _try(self, rung: Rung, target: int, sizes: Sizes) -> Trimmed | None:
        working = self._working
        match rung:
            case Rung.COMPACT:
                return overflow.compact(working, target, sizes)
            case Rung.AGGRESSIVE:
                return overflow.aggressive(working)
            case Rung.EMERGENCY:
                return await self._emergency(sizes)
            case Rung.RESET:
                return overflow.reset(working, self._whole_turn)

    async def _emergency(self, sizes: Sizes) -> Trimmed | None:
        # A snapshot is written only where the rung helps; its name is about that long.
        for earlier in (overflow.NEWEST_MESSAGES, 0):
            probe = overflow.emergency(self._working, "x" * 80, self._whole_turn, earlier).working
            if size(probe, sizes) < self.size(sizes):
                snapshot = await self._keeper.snapshot()
                if snapshot is None:
                    return None
                return overflow.emergency(self._working, snapshot, self._whole_turn, earlier)
        return None

    def _try_out(self, trimmed: Trimmed, rung: Rung | None) -> None:
        """`rung` None: the form was to be plainer."""
        trial = self._trial or _Trial(self._working)
        # The last rungs put their own note into the place of the one before, if nothing else.
        if trimmed.dropped or rung in (Rung.EMERGENCY, Rung.RESET):
            trial = replace(trial, rung=rung, lost=True)
        self._take(trimmed)
        self._trial = trial

    def _take(self, trimmed: Trimmed) -> None:
        working = trimmed.working
        if working != self._working:
            # Seals belong to a prefix that is not sent like that any more.
            working = replace(working, turns=tuple(map(without_seals, working.turns)))
        self._working = working

    async def _noted(
        self, trimmed: Trimmed, tokens: int, sizes: Sizes, *, least: float = 0
    ) -> Trimmed:
        """With a note for what has left, where the messages may take `tokens`. Where the turns alone
        take more it may still have the part `least` of what it stands for."""
        room = self._room_of_note(trimmed, tokens, sizes, least)
        note = await self._keeper.flush(
            trimmed.dropped, self._working.note, room=room, summarise=True
        )
        if note_tokens(note, sizes) > room:
            note = LEAST_NOTE
        return replace(trimmed, working=replace(trimmed.working, note=note))

    def _with_less_note(self, trimmed: Trimmed, tokens: int, sizes: Sizes) -> Trimmed:
        """With a shorter note: it was made for a larger window, or stands beside a long question. No
        turn leaves, so that the next run may have the whole of it again."""
        room = self._room_of_note(trimmed, tokens, sizes, 0)
        note = as_note(digest((), text_of_note(trimmed.working.note), sizes, room))
        if note_tokens(note, sizes) >= note_tokens(trimmed.working.note, sizes):
            return trimmed
        return replace(trimmed, working=replace(trimmed.working, note=note))

    def _room_of_note(self, trimmed: Trimmed, tokens: int, sizes: Sizes, least: float) -> int:
        left = tokens - size(replace(trimmed.working, note=None), sizes)
        replaced = sum(map(sizes.message, trimmed.dropped))
        replaced += note_tokens(self._working.note, sizes)
        if left < 0 and least:
            return min(NOTE_TOKENS, round(replaced * least))
        return min(note_room(tokens), left, replaced - 1)

    async def _flush(self, trimmed: Trimmed) -> None:
        """Keep in memory what leaves; a note stands for it already."""
        if trimmed.dropped:
            await self._keeper.flush(trimmed.dropped, self._working.note, room=0, summarise=False)

    async def plainer(self, sizes: Sizes) -> bool:
        """For a provider that refuses the form: no reasoning, and old turns as question and answer
        only. Whether that changed anything."""
        changed = self._set(tuple(map(without_thinking, self._working.turns)))
        trimmed = make_brief(Trimmed(self._working), len(self._working.turns) - 1)
        if trimmed.working.turns == self._working.turns:
            return changed
        if trimmed.dropped:
            trimmed = await self._noted(trimmed, self.size(sizes), sizes)
        self._try_out(trimmed, None)
        return True

    def replace_images(self, images: Mapping[ImageBlock, ImageBlock | TextBlock]) -> bool:
        """Put something else in the place of these; whether that changed anything."""
        return self._set(
            tuple(
                tuple(with_images(message, images) for message in turn)
                for turn in self._working.turns
            )
        )

    def _set(self, turns: tuple[Turn, ...]) -> bool:
        """Whether that is a change; seals are bound to what is not sent like that any more."""
        if turns == self._working.turns:
            return False
        self._working = replace(self._working, turns=tuple(map(without_seals, turns)))
        return True


def _cleaned(working: Working, clean: Callable[[Turn], Turn]) -> Working:
    """Without seals: they are bound to what is not sent like that any more."""
    note = working.note
    if note is not None:
        (cleaned,) = clean((user_text(note),))
        note = cleaned.text
    turns = (*map(clean, working.turns[:-1]), _cleaned_newest(working.newest, clean))
    return replace(working, turns=tuple(map(without_seals, turns)), note=note)


def _cleaned_newest(turn: Turn, clean: Callable[[Turn], Turn]) -> Turn:
    return (*turn[:1], *clean(turn[1:]))


def _least(trimmed: Trimmed, rung: Rung, sizes: Sizes) -> int:
    """Estimated tokens that the rung leaves at least, its note among them."""
    working = trimmed.working
    if trimmed.dropped and rung in GENTLE:
        working = replace(working, note=LEAST_NOTE)
    return size(working, sizes)
