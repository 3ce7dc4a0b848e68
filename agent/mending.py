"""What is changed in a run's requests so that its model takes them.

Each kind of refusal wants something else: less input, a smaller answer, smaller images or none, a
plainer form. An overflow that our own estimate foresees is treated like one that the provider has
stated, since some servers never refuse and cut the input silently (field cases 36 and 37).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agent.errors import Refusal, RefusalKind
from agent.images import ImageMending, Shrink, Spared
from agent.model import ChatModel
from agent.overflow import Rung, estimated_limit, target_tokens
from agent.working import WorkingCopy

K = RefusalKind

# Tokens, input and answer together, that every model's window holds: an unknown refusal of no more is
# not about its size.
SMALLEST_WINDOW = 2_000
CLEARLY_OVER = 1.1  # of the window, input and answer together: by less our estimate may err
SMALLEST_ANSWER = 256  # tokens; an output cap below that is not worth asking for


class Mending:
    """What was learnt from refusals for the model that is asked, and how its requests are changed."""

    def __init__(
        self,
        model: ChatModel,
        working: WorkingCopy,
        fixed_tokens: Callable[[], int],
        shrink: Shrink,
    ) -> None:
        """`fixed_tokens`: estimated tokens of the system prompt and the tools. `shrink` makes an
        image smaller."""
        self._model = model
        self._working = working
        self._fixed = fixed_tokens
        self._images = ImageMending(working, shrink)
        self._mended: set[RefusalKind] = set()
        self._most_output: int | None = None
        self._halving_may_help = True
        self._stated_window: int | None = None  # by the provider, in tokens as we estimate them

    def ask_instead(self, model: ChatModel) -> None:
        """Another model is asked from now on: all that the last one may not have been able to take."""
        self._working.end_trial()
        self._images.forget()
        self._mended.discard(K.UNKNOWN)
        self._model = model
        self._most_output = self._stated_window = None
        self._halving_may_help = True

    @property
    def output_tokens(self) -> int:
        """Tokens that an answer may have."""
        most = self._model.max_output_tokens
        return most if self._most_output is None else min(most, self._most_output)

    async def mend(self, refusal: Refusal, *, gentle: bool) -> bool:
        """Change what the refusal is about; false when nothing (more) can be changed. `gentle`: another
        model may take it as it is, so the conversation is not given up."""
        match refusal.kind:
            case K.OVERFLOW:
                self._note_window(refusal)
                return await self._make_room(refusal, Rung.AGGRESSIVE if gentle else Rung.RESET)
            case K.REQUEST_TOO_LARGE:
                return await self._fit_the_minute(refusal)
            case K.OUTPUT_CAP:
                return await self._ask_for_less(refusal)
            case K.FORMAT:
                if self._once(K.FORMAT):  # as it is where nothing can be plainer: it may be chance
                    await self._working.plainer(self._model.sizes)
                    return True
                return not gentle and await self._working.reset()
            case K.MEDIA:
                return await self._images.mend(refusal.image, refusal.most_images)
            case K.UNKNOWN:
                return await self._try_with_less(refusal)
            case _:
                return False

    def spared(self) -> list[Spared]:
        """Images that the model has not got as they are, now that it has taken the rest; each once."""
        return self._images.taken()

    def is_too_long(self, estimated: int) -> bool:
        """Whether a request of `estimated` tokens and its answer are clearly larger than a window that
        is known."""
        window = self._window()
        return window is not None and self._is_over(estimated, window)

    async def shrink_before_sending(self, estimated: int, *, gentle: bool) -> bool:
        """Take a rung of the ladder when a request of `estimated` tokens and its answer are clearly
        larger than a window that is known; false when they are not, or no rung makes them smaller:
        then the request is sent, for the estimate may be wrong.

        What even a reset would leave may be too large by our estimate. Nothing as drastic as an
        emergency is done then, for it would lose the turn's results and help nothing; nor where another
        model may take it (`gentle`).
        """
        window = self._window()
        if window is None or not self._is_over(estimated, window):
            return False
        least = self._fixed() + self._working.least(self._model.sizes)
        helpless = gentle or self._is_over(least, window)
        highest = Rung.AGGRESSIVE if helpless else Rung.RESET
        return await self._make_room(Refusal(K.OVERFLOW, limit_tokens=window), highest)

    def _is_over(self, estimated: int, window: int) -> bool:
        return estimated + self.output_tokens > CLEARLY_OVER * window

    def _window(self) -> int | None:
        known = (self._model.known_window, self._stated_window)
        return min((window for window in known if window is not None), default=None)

    def _note_window(self, refusal: Refusal) -> None:
        limit = estimated_limit(refusal, self._estimate())
        if limit is not None:
            self._stated_window = min(limit, self._stated_window or limit)

    def _once(self, kind: RefusalKind) -> bool:
        first = kind not in self._mended
        self._mended.add(kind)
        return first

    async def _make_room(self, refusal: Refusal, highest: Rung) -> bool:
        reserved = self.output_tokens
        target = target_tokens(
            refusal,
            estimated=self._estimate(),
            fixed=self._fixed(),
            reserved=reserved,
            budget=self._model.context_tokens - reserved - self._fixed(),
        )
        sizes = self._model.sizes
        return await self._working.climb(target, sizes, highest=highest)

    async def _try_with_less(self, refusal: Refusal) -> bool:
        """Once, for words that say nothing to us: they may mean the size, whatever window is configured
        (field case 32). What a smaller request loses is lost for later only if it is taken."""
        if refusal.status is None:  # a mistake of ours
            return False
        small = self._estimate() + self.output_tokens <= SMALLEST_WINDOW
        if small or not self._once(K.UNKNOWN):
            return False
        return await self._make_room(refusal, Rung.AGGRESSIVE)

    async def _fit_the_minute(self, refusal: Refusal) -> bool:
        """It fits the model, not the quota of a minute: nothing as drastic as an emergency is done, and
        what a smaller request loses is lost for later only if it is taken. The answer counts too; a
        quota of output counts nothing else."""
        only_output = (refusal.requested_tokens or 0) <= self.output_tokens
        if only_output and self._reserve_less(refusal):
            return True
        room = await self._make_room(refusal, Rung.AGGRESSIVE)
        return room or self._reserve_less(refusal)

    def _reserve_less(self, refusal: Refusal) -> bool:
        """Once, a smaller answer, by as much as the request is too large; false where that is none."""
        limit, requested = refusal.limit_tokens, refusal.requested_tokens
        if limit is None or requested is None or requested <= limit:
            return False
        less = self.output_tokens - (requested - limit)
        if less < SMALLEST_ANSWER or not self._once(refusal.kind):
            return False
        self._most_output = less
        return True

    async def _ask_for_less(self, refusal: Refusal) -> bool:
        """A smaller answer, as long as the provider allows or half as long. Where no useful one is
        left to ask for, less input: room is what is missing then, whatever the words are (vLLM's "at
        least" hides by how much, and what Groq allows may be negative)."""
        wanted, allowed = self.output_tokens, refusal.limit_tokens
        less = wanted // 2 if self._halving_may_help else 0
        if allowed is not None and 0 < allowed < wanted:
            less = allowed
        if less >= SMALLEST_ANSWER:
            self._most_output = less
            return True
        if allowed is None:  # that answers were shorter was no help
            self._halving_may_help = False
            self._most_output = None
        return await self._make_room(replace(refusal, limit_tokens=None), Rung.RESET)

    def _estimate(self) -> int:
        return self._fixed() + self._working.size(self._model.sizes)
