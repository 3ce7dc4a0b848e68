"""Models of the memory as functions: one that is faithful, one that misbehaves by a seeded plan."""

from __future__ import annotations

import json
import random
import re

from agent.messages import Message
from agent.provider import ModelRequest

_NOTE = re.compile(r"s([0-9]+)\. \([0-9-]+\) (?:[^:]*: )?(.*?)(?: \[[0-9, ]+\])?")


def notes(request: ModelRequest) -> str:
    """A faithful model: what people said, line by line."""
    lines = request.messages[-1].text.splitlines()
    said = [line for line in lines if line.startswith("[") and " assistant: " not in line]
    rows = [f"- {line.split(']')[0]}] {line.split(': ', 1)[1]}" for line in said]
    return "\n".join(["## Talk", *rows]) if rows else "NOTHING"


def asked_about(request: ModelRequest) -> list[tuple[str, str]]:
    """The notes of a question, by number."""
    text = request.messages[-1].text.split("<notes>\n")[1].split("\n</notes>")[0]
    return [(m[1], m[2]) for line in text.split("\n") if (m := _NOTE.fullmatch(line))]


def known(request: ModelRequest) -> list[tuple[int, str]]:
    """The entries of a question."""
    text = request.messages[-1].text.split("<entries>\n")[1].split("\n</entries>")[0]
    found = re.findall(r"^([0-9]+)\. \([^)]*\) (.*)$", text, re.MULTILINE)
    return [(int(number), said) for number, said in found]


def propose(*changes: dict[str, object]) -> str:
    return json.dumps({"changes": list(changes)}, ensure_ascii=False)


def faithful(request: ModelRequest) -> str:
    """Adds each note that is no entry yet."""
    entries = {said for _, said in known(request)}
    new = [(n, said) for n, said in asked_about(request) if said not in entries]
    return propose(*({"do": "add", "text": said, "sources": [f"s{n}"]} for n, said in new))


class Misbehaving:
    """By a seeded plan: drops a tenth, cites nothing, doubles, revives, mixes numbers up, is cut off,
    writes prose; now and then it is faithful."""

    def __init__(self, seed: int, revoked: list[str]) -> None:
        self.random = random.Random(seed)
        self.revoked = revoked

    def __call__(self, request: ModelRequest) -> Message | str:
        ways = [
            *(self._drops, self._cites_nothing, self._doubles, self._revives),
            *(self._mixes_up, self._lumps, self._is_cut, self._prose, faithful),
        ]
        return self.random.choice(ways)(request)

    def _drops(self, request: ModelRequest) -> str:
        entries = known(request)
        gone = self.random.sample(entries, len(entries) // 10)
        return propose(*({"do": "drop", "number": n, "sources": ["s1"]} for n, _ in gone))

    def _cites_nothing(self, request: ModelRequest) -> str:
        return propose(*({"do": "add", "text": said} for _, said in asked_about(request)))

    def _doubles(self, request: ModelRequest) -> str:
        every = [said for _, said in known(request)] + [said for _, said in asked_about(request)]
        return propose(*({"do": "add", "text": said, "sources": ["s1"]} for said in every))

    def _revives(self, request: ModelRequest) -> str:
        return propose(
            *({"do": "add", "text": f"Note: {said}", "sources": ["s1"]} for said in self.revoked)
        )

    def _mixes_up(self, request: ModelRequest) -> str:
        entries, notes = known(request), asked_about(request)
        return propose(
            *(
                {"do": "correct", "number": n, "text": said, "sources": [f"s{s}"]}
                for (n, _), (s, said) in zip(entries, notes, strict=False)
            )
        )

    def _lumps(self, request: ModelRequest) -> str:
        numbers = [n for n, _ in known(request)]
        return propose({"do": "merge", "numbers": numbers[:4], "text": "Many things are known"})

    def _is_cut(self, request: ModelRequest) -> str:
        return faithful(request)[:-20]

    def _prose(self, request: ModelRequest) -> str:
        return "I have updated the memory. Likes tea."
