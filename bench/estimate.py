"""How far off the token estimate is: on texts that its weights were not fitted to, and no tokenizer.

`bench/data/tokens.json` holds the texts and their true counts. `chats` mixes them as in chats: a
person writes in one language, the model answers, tools bring JSON, logs, code, tables and keys.
Each chat is six requests; what the provider would report corrects the next one.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from agent.estimate import Correction, Estimator, Family
from bench.report import Measure, Measures

TOKENS = Path(__file__).parent / "data" / "tokens.json"
REQUESTS = 6  # in a chat
CHATS = 8  # for each language
TOO_LOW = -0.10
AFTER = 3  # answers until the correction must have settled
RESULTS = ("json", "json", "json", "log", "numbers", "code", "code", "ids", "base64")


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text of a kind (`chat:de`, `json` …) and its true counts."""

    kind: str
    text: str
    tokens: dict[Family, int]


class Corpus:
    """All held-out texts, by kind."""

    def __init__(self, path: Path = TOKENS) -> None:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        families = [Family(name) for name in document["families"]]
        self.families = tuple(families)
        self.texts = [
            Text(row["kind"], row["text"], dict(zip(families, row["tokens"], strict=True)))
            for row in document["texts"]
        ]
        self._by_kind: defaultdict[str, list[Text]] = defaultdict(list)
        for text in self.texts:
            self._by_kind[text.kind].append(text)

    def of(self, kind: str) -> list[Text]:
        """The texts of that kind; for `code`, in any language."""
        if kind == "code":
            return [text for text in self.texts if text.kind.startswith("code:")]
        return self._by_kind[kind]

    @property
    def chat_kinds(self) -> list[str]:
        """The kinds of chat: a language each, `emoji` and `codehelp`."""
        return [kind for kind in self._by_kind if kind.startswith("chat:")]


class Chat:
    """Grows text by text; `requests` are its states when the model is asked. What frames the texts
    (roles, marks of calls) is left out: no tokenizer here knows it."""

    def __init__(self, corpus: Corpus, kind: str, chance: random.Random) -> None:
        self._corpus = corpus
        self._kind = kind
        self._chance = chance
        self._texts = [*corpus.of("system"), *corpus.of("tool")]

    def requests(self) -> Iterator[tuple[Text, ...]]:
        """`REQUESTS` of them."""
        said = self._corpus.of(self._kind)
        prose = self._corpus.of(self._kind.replace("chat:", "text:")) or said
        for number in range(REQUESTS):
            self._texts.append(said[2 * number % len(said)])
            if self._chance.random() < 0.35:
                kind = self._chance.choice((*RESULTS, self._kind))
                self._texts.append(self._chance.choice(self._corpus.of("arguments")))
                self._texts.append(self._chance.choice(self._corpus.of(kind)))
            yield tuple(self._texts)
            answer = said[(2 * number + 1) % len(said)]
            self._texts.append(
                answer if self._chance.random() < 0.7 else self._chance.choice(prose)
            )


def chats(corpus: Corpus) -> list[list[tuple[Text, ...]]]:
    """The same chats each time; each is a list of requests, each of these all its texts."""
    chance = random.Random(3)
    return [
        list(Chat(corpus, kind, chance).requests())
        for kind in corpus.chat_kinds
        for _ in range(CHATS)
    ]


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of requests: all of them without any correction, those after `AFTER` answers
    with it, and all as they come in a chat."""

    before: list[float]
    after: list[float]
    in_life: list[float]


def errors(
    family: Family, conversations: Sequence[Sequence[Sequence[Text]]], *, shared: bool = False
) -> Errors:
    """Of one family. Each chat starts without a correction; `shared`: with what the chat before has
    left, whatever its language."""
    found = Errors([], [], [])
    estimator = Estimator(family)
    guessed = {text: estimator.text(text.text) for chat in conversations for text in chat[-1]}
    correction = Correction()
    for conversation in conversations:
        correction = correction if shared else Correction()
        for texts in conversation:
            estimated = sum(guessed[text] for text in texts)
            reported = sum(text.tokens[family] for text in texts)
            error = estimated * correction.ratio / reported - 1
            found.before.append(estimated / reported - 1)
            found.in_life.append(error)
            if correction.samples >= AFTER:
                found.after.append(error)
            correction = correction.observed(estimated, reported)
    return found


def too_low(found: Sequence[float]) -> float:
    """The share of requests that are more than a tenth too low."""
    return sum(error < TOO_LOW for error in found) / len(found)


def size(found: Sequence[float]) -> float:
    """The mean error, whatever its direction."""
    return fmean(abs(error) for error in found)


def common_rule(text: str) -> float:
    """The rule to beat: 1.5 tokens for a CJK character, a quarter for any other."""
    cjk = sum(
        "\u2e80" <= character <= "\u9fff"
        or "\uac00" <= character <= "\ud7a3"
        or "\uff00" <= character <= "\uffef"
        for character in text
    )
    return 1.5 * cjk + 0.25 * (len(text) - cjk)


def by_kind(corpus: Corpus) -> dict[str, tuple[float, float]]:
    """For each kind of text the mean error of single texts in all families: ours, the common rule's."""
    ours: defaultdict[str, list[float]] = defaultdict(list)
    rule: defaultdict[str, list[float]] = defaultdict(list)
    for family in corpus.families:
        estimator = Estimator(family)
        for text in corpus.texts:
            name = text.kind.removeprefix("chat:").removeprefix("text:").partition(":")[0]
            ours[name].append(estimator.text(text.text) / text.tokens[family] - 1)
            rule[name].append(common_rule(text.text) / text.tokens[family] - 1)
    return {name: (size(ours[name]), size(rule[name])) for name in ours}


def estimate() -> Measures:
    """The error by kind of text beside that of the common rule, and of requests by family."""
    corpus = Corpus()
    conversations = chats(corpus)
    measures: Measures = {}
    for name, (ours, rule) in sorted(by_kind(corpus).items()):
        measures[f"estimate_{name}_pct"] = Measure(100 * ours, "%")
        measures[f"estimate_{name}_common_rule_pct"] = Measure(100 * rule, "%")
    for family in corpus.families:
        found = errors(family, conversations)
        measures[f"estimate_{family}_before_pct"] = Measure(100 * size(found.before), "%", 15)
        measures[f"estimate_{family}_after_pct"] = Measure(100 * size(found.after), "%", 5)
        measures[f"estimate_{family}_too_low_pct"] = Measure(100 * too_low(found.in_life), "%", 1)
    return measures
