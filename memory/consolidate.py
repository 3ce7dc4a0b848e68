"""The night: a model proposes, and this decides what of it is done to `MEMORY.md`. Pure.

Each change passes the gate (`memory.night.gate`) or is not made; of entries a night may lose no more
than its share, by whatever changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.markdown.facts import FactsRefused, Lines
from memory.night.gate import carried_out
from memory.night.judged import Done, Fault, Faulty, Night
from memory.night.proposal import Change, ProposalRefused
from memory.notes.flush import Note

__all__ = ["Applied", "Night", "NotDone", "apply", "report"]

_FAULTS: dict[str, Fault] = {
    "empty": "empty",
    "too_long": "too_long",
    "full": "full",
    "known": "known",
    "no_entry": "changed",
}
_NO_BLAME = frozenset({"known", "full", "changed"})


@dataclass(frozen=True, slots=True)
class NotDone:
    """A change that was not made, and why."""

    change: Change
    fault: Fault


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a proposal."""

    done: tuple[Done, ...] = ()
    not_done: tuple[NotDone, ...] = ()

    def count(self, kind: str) -> int:
        """How many changes of that kind were made."""
        return sum(done.change.kind == kind for done in self.done)

    @property
    def lost(self) -> int:
        """Entries that are gone, or say less."""
        return sum(done.lost for done in self.done)


def apply(lines: Lines, proposal: Sequence[Change], night: Night) -> tuple[Lines, Applied]:
    """The lines after what of the proposal passes the gate, in its order; the same for the same input.
    Raises `ProposalRefused`: then nothing is done."""
    left = night.most_lost - sum(map(_loses, proposal))
    if left < 0:
        raise ProposalRefused("loses_too_much")
    done: list[Done] = []
    not_done: list[NotDone] = []
    for change in proposal:
        if change.kind == "keep":
            continue
        if night.forgotten.covers(change.reason):
            change = replace(change, reason="")  # it is told among the night's changes
        try:
            # What the proposal drops and merges is taken off already.
            lines, made = carried_out(lines, change, replace(night, most_lost=left))
            done.append(made)
            left -= made.lost if made.change.kind == "correct" else 0
        except Faulty as error:
            not_done.append(NotDone(change, error.fault))
        except FactsRefused as error:
            not_done.append(NotDone(change, _FAULTS[error.why]))
    faulty = [each for each in not_done if each.fault not in _NO_BLAME]
    if len(faulty) > len(done) + len(not_done) - len(faulty):
        raise ProposalRefused("unfounded")
    return lines, Applied(tuple(done), tuple(not_done))


def _loses(change: Change) -> int:
    """Entries that would go."""
    if change.kind == "drop":
        return len(change.numbers)
    return max(0, len(change.numbers) - 1) if change.kind == "merge" else 0


# What the night tells -------------------------------------------------------------------------------


def report(applied: Applied, notes: Sequence[Note]) -> list[str]:
    """What was changed and why, a line each: for `changes/YYYY-MM-DD.md`."""
    rows = [_row(done, notes) for done in applied.done]
    rows += [
        f"- not done ({each.fault.replace('_', ' ')}): {each.change.kind}"
        f" {_numbers(each.change.numbers)}{each.change.text}"
        for each in applied.not_done
        if each.fault != "forgotten"  # it is not to be written down again
    ]
    return rows


def _row(done: Done, notes: Sequence[Note]) -> str:
    change = done.change
    parts: list[str] = []
    if done.after is not None:
        parts.append(f"**{done.after.number}** {done.after.text}")
    if done.before:
        parts.append("; ".join(f"was **{old.number}** {old.text}" for old in done.before))
    if change.reason:
        parts.append(f"because: {change.reason}")
    if change.sources:
        days = dict.fromkeys(notes[index].day.isoformat() for index in change.sources)
        parts.append(f"from: {', '.join(days)}")
    return f"- {change.kind}: {' · '.join(parts)}"


def _numbers(numbers: Sequence[int]) -> str:
    return "".join(f"**{number}** " for number in numbers)
