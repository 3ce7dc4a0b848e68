"""Fit the weights of the token estimate and write `agent/estimate_weights.py`.

`python -m bench.data.fit_weights WORK`, see `bench.data.tokenizers`. Least squares of the relative
error, each kind of text weighed by its share in chats, drawn towards plain guesses where the texts
say little.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent.estimate_features import (
    ASCII_NAMES,
    NAMES,
    OTHER_NAMES,
    SCRIPTS,
    ascii_features,
    other_features,
)
from bench.data import tokenizers
from bench.data.sources import fetch
from bench.data.training import CHAT, CODE, OTHER, RARE, SHARES, Sample, Training

TARGET = Path(__file__).parents[2] / "agent" / "estimate_weights.py"
Numbers = NDArray[np.float64]
TOGETHER = {"code": CODE, "chat": CHAT}
LOWEST, STEP = -301, 7  # thousandths; a character's weight fits a byte in these steps
DIGITS = slice(ord("0"), ord("9") + 1)
DRAW = 2e-5  # towards the guesses
# Too low is worse than too high: an estimate above the truth costs a little context, one below it a
# refusal.
TOO_LOW_COSTS, ROUNDS = 4.0, 6
MARGIN = 1.02
# `unknown` is the costliest of those that an OpenAI-compatible server may have.
UNKNOWN = ("o200k", "cl100k", "qwen", "deepseek", "gemini")


def counted(work: Path, samples: Sequence[Sample]) -> list[dict[str, int]]:
    """Tokens of each sample by family; kept in the work folder, as counting takes a minute."""
    kept = work / "training.json"
    texts = [sample.text for sample in samples]
    if kept.exists():
        old_texts, old_counts = json.loads(kept.read_text(encoding="utf-8"))
        if old_texts == texts:
            return old_counts
    with Pool(initializer=_open, initargs=(work,)) as pool:
        counts = pool.map(_count, texts, chunksize=50)
    kept.write_text(json.dumps([texts, counts]), encoding="utf-8")
    return counts


_counters: dict[str, tokenizers.Counter] = {}


def _open(work: Path) -> None:
    _counters.update(tokenizers.load(work))


def _count(text: str) -> dict[str, int]:
    return {family: count(text) for family, count in _counters.items()}


def shares(samples: Sequence[Sample]) -> Numbers:
    """The weight of each sample; together 1."""
    kinds = Counter(sample.kind.partition(":")[0] for sample in samples)
    each: list[float] = []
    for sample in samples:
        kind = sample.kind.partition(":")[0]
        share = TOGETHER.get(kind) or SHARES.get(kind, OTHER if len(kind) == 2 else RARE)
        each.append(share / kinds[kind])
    return np.array(each) / sum(each)


def matrix(texts: Sequence[str]) -> Numbers:
    """A row for each text: its ASCII characters, then its counts by `NAMES`."""
    rows = []
    for text in texts:
        data = text.encode()
        characters = np.bincount(np.frombuffer(data, np.uint8), minlength=256)[:128]
        others = [0] * len(OTHER_NAMES)
        for position, count in other_features(data):
            others[position] += count
        rows.append([*characters, *ascii_features(data), *others])
    return np.array(rows, dtype=np.float64)


def guesses() -> Numbers:
    """What a weight is where no text says otherwise."""
    special = {
        "latin 1": 0.7, "latin extended": 0.9, "indic": 1.5, "three bytes": 2.0, "symbols": 1.5,
        "cjk marks": 1.0, "han rare": 1.5, "han": 1.0, "hangul and others": 1.5,
        "hangul": 1.0, "private": 3.0, "forms": 2.0, "four bytes": 3.5,
    }  # fmt: skip
    characters = [
        0.25
        if c.isalpha()
        else 0.5
        if c.isdigit()
        else 0.1
        if c == " "
        else 0.7
        if c.isprintable()
        else 1.0
        for c in map(chr, range(128))
    ]
    return np.array([*characters, *(special.get(n, 1.2 if n in SCRIPTS else 0.0) for n in NAMES)])


def fit(rows: Numbers, truth: Numbers, share: Numbers) -> list[int]:
    """The weights in thousandths. Those of characters are found first, all digits as one, and
    rounded so that they fit a byte; the others are then fitted to what is left."""
    together = np.eye(rows.shape[1])
    together[DIGITS, DIGITS.start] = 1
    cost, weights = share, guesses()
    for _ in range(ROUNDS):
        weights = together @ _solve(rows @ together, truth, truth, cost, guesses())
        cost = share * np.where(rows @ weights < truth, TOO_LOW_COSTS, 1)
    characters = np.clip(np.round(weights[:128] * 1000 / STEP) * STEP, LOWEST, LOWEST + 255 * STEP)
    left = truth - rows[:, :128] @ characters / 1000
    others = _solve(rows[:, 128:], left, truth, cost, guesses()[128:])
    return [int(value) for value in (*characters, *np.round(others * 1000))]


def _solve(
    rows: Numbers, wanted: Numbers, truth: Numbers, share: Numbers, guess: Numbers
) -> Numbers:
    """Weights with which `rows` give `wanted`: least squares of the difference over `truth`."""
    scale = np.sqrt(share) / truth
    scaled, aim = rows * scale[:, None], wanted * scale
    left = scaled.T @ scaled + DRAW * np.eye(len(guess))
    return guess + np.linalg.solve(left, scaled.T @ (aim - scaled @ guess))


def rendered(families: dict[str, list[int]]) -> str:
    """The module's text."""
    cut = 128 + len(ASCII_NAMES)
    lines = [
        '"""What characters and counts are worth, in thousandths of a token, by model family.',
        "",
        "Written by `bench/data/fit_weights.py`; see there for the method and the texts. Counted with:",
        "",
        *(f"- {family}: {version}" for family, version in tokenizers.VERSIONS.items()),
        f"- unknown: the most of {', '.join(UNKNOWN)}",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        f"LOWEST, STEP = {LOWEST}, {STEP}  # CHARACTERS are LOWEST plus 0 to 255 steps",
    ]
    parts = (
        ("CHARACTERS", "ASCII characters by their code", 0, 128),
        ("RUNS_AND_SIGNS", "by `agent.estimate_features.ASCII_NAMES`", 128, cut),
        ("SCRIPTS_AND_LETTERS", "by `agent.estimate_features.OTHER_NAMES`", cut, cut + 999),
    )
    for name, what, start, end in parts:
        lines += ["", f"# {what}", f"{name}: dict[str, tuple[int, ...]] = {{"]
        for family, weights in families.items():
            values = [f"{value}," for value in weights[start:end]]
            lines.append(f'    "{family}": (')
            lines += [
                "        " + " ".join(values[at : at + 12]) for at in range(0, len(values), 12)
            ]
            lines.append("    ),")
        lines.append("}  # fmt: skip")
    return "\n".join(lines) + "\n"


def main(work: Path) -> None:
    """Fetch, count, fit, write."""
    fetch(work)
    samples = Training(work).samples()
    counts = counted(work, samples)
    rows, share = matrix([sample.text for sample in samples]), shares(samples)
    families: dict[str, list[int]] = {}
    for family in (*tokenizers.VERSIONS, "unknown"):
        parts = UNKNOWN if family == "unknown" else (family,)
        truth = np.array([max(count[part] for part in parts) for count in counts], dtype=np.float64)
        families[family] = fit(rows, MARGIN * np.maximum(truth, 1), share)
        error = rows @ np.array(families[family]) / 1000 / truth - 1
        print(f"{family}: mean error {share @ abs(error):.3f}, mean {share @ error:+.3f}")
    TARGET.write_text(rendered(families), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
