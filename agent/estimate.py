"""How many tokens a text, a message or a request costs, without a tokenizer.

Characters are counted by kind (`agent.estimate_features`) and weighed for the model's family
(`agent.estimate_weights`, fitted on the families' own tokenizers). What a provider reports then
corrects the estimate: a bounded running ratio per model. `bench/estimate.py` measures the error.

Pure and linear in the length of the text. An `Estimator` remembers the size of each text it has
seen, by a hash, so that asking again costs a look-up, also for a conversation that is loaded anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import mul

from agent.estimate_features import ascii_features, other_features
from agent.estimate_images import HIGH, STANDARD, ImageRule, image_tokens
from agent.estimate_weights import (
    CHARACTERS,
    LOWEST,
    RUNS_AND_SIGNS,
    SCRIPTS_AND_LETTERS,
    STEP,
)
from agent.messages import (
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent.provider import ModelRequest
from agent.tools import ToolSpec

REMEMBERED = 50_000  # texts, about 100 bytes each; then it starts anew


class Family(StrEnum):
    """Models that cut text into the same tokens. `UNKNOWN` counts as the costliest of the others
    but Claude."""

    CLAUDE_OLD = "claude_old"
    CLAUDE_NEW = "claude_new"
    O200K = "o200k"
    CL100K = "cl100k"
    QWEN = "qwen"
    DEEPSEEK = "deepseek"
    GEMINI = "gemini"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Frame:
    """Tokens around what is said: once for a request, for each message, call and result, once where
    tools are offered, and for each tool. `images`: what one costs."""

    request: int
    message: int
    tool_use: int
    tool_result: int
    tools: int
    tool: int
    images: ImageRule = STANDARD


# Claude: one message is framed by 7 tokens (ctok), a call is rendered as marked-up lines, and tools
# bring a system prompt of 290 to 675 tokens by model (Anthropic's page on tool use). ChatML costs
# 5 tokens for each message (Qwen's template), OpenAI's 3 (its cookbook), and tools a few lines.
_CLAUDE = Frame(request=4, message=4, tool_use=40, tool_result=20, tools=500, tool=20)
_CLAUDE_NEW = Frame(4, 4, tool_use=40, tool_result=20, tools=400, tool=20, images=HIGH)
_CHAT = Frame(request=4, message=4, tool_use=16, tool_result=8, tools=40, tool=8)
_CHAT_WITH_PROMPT = Frame(request=4, message=5, tool_use=24, tool_result=12, tools=160, tool=12)
FRAMES = {
    Family.CLAUDE_OLD: _CLAUDE,
    Family.CLAUDE_NEW: _CLAUDE_NEW,
    Family.O200K: _CHAT,
    Family.CL100K: _CHAT,
    Family.QWEN: _CHAT_WITH_PROMPT,
    Family.DEEPSEEK: _CHAT_WITH_PROMPT,
    Family.GEMINI: _CHAT,
    Family.UNKNOWN: _CHAT_WITH_PROMPT,
}


# One byte of weight for each byte of text, so that weighing is a translation and a sum; bytes beyond
# ASCII are worth nothing here.
_TABLES = {
    family: bytes((weight - LOWEST) // STEP for weight in (*weights, *[0] * 128))
    for family, weights in CHARACTERS.items()
}
_NOTHING = -LOWEST // STEP * STEP  # what a byte worth nothing adds, to be taken off again


@dataclass(frozen=True)
class Estimator:
    """Estimates for one family of models, times `ratio` (`Correction.ratio`). One serves all
    conversations with a model; `replace(estimator, ratio=…)` shares what is known of texts."""

    family: Family
    ratio: float = 1.0
    # Tokens by a text's hash, so that no text is kept alive.
    known: dict[int, float] = field(
        default_factory=dict[int, float], repr=False, compare=False, kw_only=True
    )

    def text(self, text: str) -> int:
        """Tokens of a text alone."""
        return round(self._text(text) * self.ratio)

    def message(self, message: Message) -> int:
        """Tokens of a message, with all its blocks and its frame."""
        return round(self._message(message) * self.ratio)

    def messages(self, messages: Sequence[Message]) -> int:
        """Tokens of messages together."""
        return round(sum(map(self._message, messages)) * self.ratio)

    def fixed(self, system: str, tools: Sequence[ToolSpec]) -> int:
        """Tokens of what each request carries: the system prompt, the tools and the frame."""
        return round(self._fixed(system, tools) * self.ratio)

    def request(self, request: ModelRequest) -> int:
        """Tokens of a request's input."""
        tools = request.tools if request.traits.tools else ()
        tokens = self._fixed(request.system, tools) + sum(map(self._message, request.messages))
        return round(tokens * self.ratio)

    def _text(self, text: str) -> float:
        key = hash(text)
        found = self.known.get(key)
        if found is None:
            found = self._weighed(text)
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            self.known[key] = found
        return found

    def _weighed(self, text: str) -> float:
        data = text.encode("utf-8", "surrogatepass")
        counts = ascii_features(data)
        weighed: int = sum(data.translate(_TABLES[self.family])) * STEP - _NOTHING * len(data)
        weighed += sum(map(mul, RUNS_AND_SIGNS[self.family], counts))
        if not text.isascii():
            weights = SCRIPTS_AND_LETTERS[self.family]
            weighed += sum([weights[name] * count for name, count in other_features(data)])
        # Every tokenizer begins a token with each word and number: the least, for texts unlike any
        # that the weights were fitted to.
        least: float = counts[0] + counts[1]
        return max(weighed / 1000, least)

    def _message(self, message: Message) -> float:
        return FRAMES[self.family].message + sum(map(self._block, message.blocks))

    def _block(self, block: Block) -> float:
        if isinstance(block, TextBlock):  # first, as most are
            return self._text(block.text)
        match block:
            case ToolUseBlock():
                return FRAMES[self.family].tool_use + self._text(block.name) + self._call(block)
            case ToolResultBlock():
                return FRAMES[self.family].tool_result + sum(map(self._block, block.content))
            case ThinkingBlock():
                return self._thinking(block)
            case ImageBlock():
                return image_tokens(block.data, FRAMES[self.family].images)

    def _call(self, call: ToolUseBlock) -> float:
        """What a call was given, as JSON."""
        if call.raw is not None:
            return self._text(call.raw)
        try:
            key = hash(tuple(call.arguments.items()))
        except TypeError:  # there are lists or objects in it
            return self._text(json.dumps(call.arguments, ensure_ascii=False))
        if key not in self.known:
            self.known[key] = self._text(json.dumps(call.arguments, ensure_ascii=False))
        return self.known[key]

    def _thinking(self, block: ThinkingBlock) -> float:
        # The seal holds all of the reasoning where the text is a summary or withheld: base64, four
        # characters to three bytes, and about four bytes to a token.
        sealed = len(block.signature or "") + len(block.redacted or "")
        return max(self._text(block.text), sealed * 3 / 16)

    def _fixed(self, system: str, tools: Sequence[ToolSpec]) -> float:
        frame = FRAMES[self.family]
        tokens: float = frame.request
        if system:
            tokens += frame.message + self._text(system)
        if tools:
            tokens += frame.tools + sum(map(self._tool, tools))
        return tokens

    def _tool(self, tool: ToolSpec) -> float:
        said = (tool.name, tool.description, json.dumps(tool.parameters, ensure_ascii=False))
        return FRAMES[self.family].tool + sum(map(self._text, said))


# Bounds of a correction: no family's tokenizer is further from the fitted ones, and one absurd
# report (a proxy that counts requests, or a server that reports 0) cannot blind the budget.
LEAST_RATIO, MOST_RATIO = 0.5, 2.5
SMALLEST_SEEN = 50  # tokens; below that the frame's error outweighs the text's
NEWEST_SHARE = 0.3  # of the newest report once some are in: follows a change within a few answers
FRAME = 1_000  # tokens that frame a request, tools with their prompt; estimated by rule of thumb


@dataclass(frozen=True, slots=True)
class Correction:
    """What to multiply an estimate by, learnt from `samples` reports."""

    ratio: float = 1.0
    samples: int = 0

    def observed(self, estimated: int, reported: int) -> Correction:
        """With one more report. `estimated`: by an `Estimator` of ratio 1, for the same request;
        `reported`: all input tokens, those of the cache included. Reports that are tiny or more
        than twice outside the bounds teach nothing; a small request lowers the ratio little, as it
        may be its frame that was estimated too high, which says nothing of a long conversation."""
        if min(estimated, reported) < SMALLEST_SEEN:
            return self
        seen = reported / estimated
        if not LEAST_RATIO / 2 <= seen <= MOST_RATIO * 2:
            return self
        share = max(NEWEST_SHARE, 1 / (self.samples + 1))
        if seen < self.ratio:
            share *= estimated / (estimated + FRAME)
        ratio = self.ratio + share * (seen - self.ratio)
        return Correction(min(max(ratio, LEAST_RATIO), MOST_RATIO), self.samples + 1)


_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2})(?!\d))?")
_PATTERNS = (
    (re.compile(r"gpt-4(?!o|\.\d)|gpt-3"), Family.CL100K),
    (re.compile(r"gpt-|chatgpt|\bo[1-9]\b"), Family.O200K),
    (re.compile(r"qwen|qwq|qvq"), Family.QWEN),
    (re.compile(r"deepseek(?!.*llama)"), Family.DEEPSEEK),
    (re.compile(r"gemini|gemma"), Family.GEMINI),
)


def family_of(model_id: str, provider_kind: str) -> Family:
    """The family of a model by its id, with or without a vendor's prefix and a date. An id that
    says nothing counts as a new Claude for the kind `anthropic`, else as `UNKNOWN`."""
    name = model_id.lower()
    if "claude" in name or provider_kind == "anthropic":
        return _claude(name)
    return next((family for pattern, family in _PATTERNS if pattern.search(name)), Family.UNKNOWN)


def _claude(name: str) -> Family:
    """Old: Claude 2 and 3, and 4 up to 4.6. Newer ones cut text more finely."""
    found = _VERSION.search(name)
    if found is None:
        return Family.CLAUDE_OLD if "instant" in name else Family.CLAUDE_NEW
    version = int(found[1]), int(found[2] or 0)
    return Family.CLAUDE_OLD if version < (4, 7) else Family.CLAUDE_NEW
