"""What the chat reads at the end of a run: the text that was shown, and sentences where needed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from agent.errors import LimitReached
from agent.loop import EMPTY_MARK, AgentRun
from agent.tool_log import Effects
from bridge.errors import ErrorReporter, sentence
from bridge.lanes import Outcome
from bridge.runs.display import without_our_sign
from bridge.runs.question import GivenUp, NothingToRetry
from bridge.texts import Say
from channels.errors import FileRefused

log = logging.getLogger(__name__)

# Of an answer in which there is no word, and of one that was begun; what is told.
_EMPTY = {"filter": "empty_filtered", "length": "empty_cut", "window": "empty_cut"}
_CUTS = {"filter": "answer_filtered", "pause": "answer_broken_off"}  # what is told; else the length


class LastWord:
    """For one run. `longest`: characters that an answer may have."""

    def __init__(
        self, say: Say, errors: ErrorReporter, run_id: str, longest: int | None = None
    ) -> None:
        self._say = say
        self._longest = longest
        self._errors = errors
        self._run_id = run_id

    async def of(
        self,
        outcome: Outcome,
        agent: AgentRun | None,
        *,
        shown: str,
        receipts: Sequence[str] = (),
    ) -> str:
        """The whole reply in Markdown; `shown` is what the run has said, `receipts` what was written
        down for good."""
        text = await self._text(outcome, agent, self._short(shown))
        return _joined(text, "\n".join(receipts))

    def so_far(self, shown: str, why: str) -> str:
        """What there was of an answer that has to wait, and why it does."""
        return _joined(self._short(shown), why)

    async def _text(self, outcome: Outcome, agent: AgentRun | None, shown: str) -> str:
        if outcome.ending == "cancelled":
            return _joined(shown, self._say("stopped"), self._effects(agent))
        if outcome.error is not None:
            reset = agent is not None and agent.context_was_reset
            told = self._say("context_reset") if reset else ""
            return _joined(shown, await self._sentence(outcome.error), self._unknown(agent), told)
        if agent is None:
            return shown
        return _joined(shown or self._short(self._stored_answer(agent)), *self._afterwords(agent))

    def _short(self, text: str) -> str:
        """As much of it as the chat allows."""
        if self._longest is None or len(text) <= self._longest:
            return text
        kept = text[: self._longest].rstrip()
        if kept.count("```") % 2:
            kept += "\n```"
        return _joined(f"{kept} …", self._say("answer_shortened", limit=self._longest))

    def _stored_answer(self, agent: AgentRun) -> str:
        """The answer of a run whose process died before it was delivered."""
        text = agent.last_run_new_messages[-1].text
        if text == EMPTY_MARK:
            return "" if agent.gave_no_answer else self._say("empty_answer")
        return without_our_sign(text)

    def _effects(self, agent: AgentRun | None) -> str:
        """Which actions of a stopped run had taken effect, and of which it is unknown."""
        if agent is None:
            return ""
        return effects_told(agent.effects(), self._say)

    def _unknown(self, agent: AgentRun | None) -> str:
        if agent is None:
            return ""
        return effects_told(replace(agent.effects(), done=()), self._say)

    def _afterwords(self, agent: AgentRun) -> Sequence[str]:
        sentences: list[str] = []
        if agent.gave_no_answer:
            sentences.append(self._say(_EMPTY.get(agent.cut_by or "", "empty_answer")))
        if unknown := self._unknown(agent):  # the process died while they ran, or they timed out
            sentences.append(unknown)
        sentences += [self._say(f"limit_{n.limit}", **n.values) for n in agent.notices]
        if agent.cut_by is not None and not agent.gave_no_answer:
            sentences.append(self._say(_CUTS.get(agent.cut_by, "answer_cut")))
        if agent.context_was_reset:
            sentences.append(self._say("context_reset"))
        return sentences

    async def _sentence(self, error: BaseException) -> str:
        match error:
            case LimitReached():
                return self._say(f"limit_{error.limit}", **error.values)
            case NothingToRetry():
                return self._say("nothing_to_retry")
            case GivenUp():
                return self._say("given_up")
            case FileRefused():
                log.info("run %s: a file cannot be had: %s", self._run_id, error)
                return self._say(f"file_{error.reason}", limit=error.limit)
            case _:
                error_id = await self._errors.report(error, f"run {self._run_id}")
                return sentence(error, self._say, error_id)


def effects_told(effects: Effects, say: Say) -> str:
    """Which actions of a stopped run had taken effect, and of which it is unknown."""
    done = say("effects_done", tools=_names(effects.done)) if effects.done else ""
    unknown = say("effects_unknown", tools=_names(effects.unknown)) if effects.unknown else ""
    return _joined(done, unknown)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _names(tools: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in tools)
