"""Whether what somebody says now takes the place of what they said before, or stands beside it. Pure.

Who likes pears likes apples still; who lives in Rome has left Berlin. A text is against another one
where it denies it, where a note denies what it leaves out or says that something has changed, or where
both tell of what one has one of: where one lives, or `the phone number is …`. In doubt both stand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memory.text.telling import clauses, denies, sequence, telling
from memory.text.words import words

_CHANGED: Final = frozenset(
    words("""
    now instead moved move moves moving changed change changes switched switch replaced replaces
    became becomes actually rather new newly postponed rescheduled wrong correction corrected
    jetzt nun inzwischen statt stattdessen umgezogen geändert ändert gewechselt wechselt neu neue neuen
    neuer verschoben verlegt falsch
    maintenant désormais plutôt changé déménagé nouveau nouvelle reporté
    ahora cambiado cambió mudado mudó nuevo nueva aplazado ora adesso cambiato traslocato nuovo nuova
""")
)
_CHANGED_UNSPACED = re.compile("现在|現在|改|搬|换|換|不再|新|今は|変")
_BESIDE = frozenset(words("also too both another auch noch aussi encore también anche"))
_BESIDE_UNSPACED = re.compile("也|还|還|又")
# What somebody has one of, in the words of what is said of it.
_ONE: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:lives?|living|resides?|wohn\w*|lebt|lebe|habite|vit|vive|vivo|abita|abito)\b|住",
        r"\b(?:works? (?:at|for|as)|employed|arbeitet? (?:bei|als)|travaille (?:chez|comme))\b|工作",
        r"\b(?:is called|name is|heißt?|s'appelle|se llama|si chiama)\b|名字",
        r"\b(?:was born|geboren|est née?|nació)\b|出生",
        r"\b(?:is married|verheiratet|mariée?|casad[oa])\b|结婚",
    )
)
_IS = re.compile(r"\b(?:is|are|was|were|ist|sind|lautet|est|es|è)\b|[是:=]", re.IGNORECASE)


def stands_against(text: str, old: str, who: str, said: Sequence[str]) -> bool:
    """Whether `text` takes the place of `old`, that `who` has said, by the notes `said`."""
    before, now = telling(old) - telling(who), telling(text) - telling(who)
    if _first(text, who) not in before:
        return False  # it is about something else that they have: `Ana's brother lives in Rome`
    gone = before - now
    if not gone and denies(text) != denies(old):
        return True
    parts = [part for each in said for part in clauses(each)]
    if any(_denied(part, old, before, gone) or _changed(part, now) for part in parts):
        return True
    return tells_of_one(text, old, who) or _is_told_of(text, old, who)


def tells_of_one(text: str, old: str, who: str) -> bool:
    """Whether both tell the same of what somebody has one of, as where they live."""
    return any(_told_of(kind, text, old, who) for kind in _ONE)


def _first(text: str, who: str) -> str:
    """The stem of the first word that tells something, beside who says it and that it has changed."""
    told = [word for word in words(_CHANGED_UNSPACED.sub(" ", text)) if word not in _CHANGED]
    return next((each for each in sequence(" ".join(told)) if each not in telling(who)), "")


def _denied(part: str, old: str, before: frozenset[str], gone: frozenset[str]) -> bool:
    """Whether a clause denies what the old text says: a word that is left out, or no more than it."""
    told = telling(part)
    return denies(part) != denies(old) and bool(told & gone or (told and told <= before))


def _changed(part: str, now: frozenset[str]) -> bool:
    """Whether a clause says of something in the text that it has changed."""
    found = set(words(part))
    changed = not found.isdisjoint(_CHANGED) or _CHANGED_UNSPACED.search(part)
    beside = not found.isdisjoint(_BESIDE) or _BESIDE_UNSPACED.search(part)
    return bool(changed and not beside and telling(part) & now)


def _told_of(kind: re.Pattern[str], text: str, old: str, who: str) -> bool:
    """Whether both tell it of the same one."""
    here, there = kind.search(text), kind.search(old)
    if here is None or there is None:
        return False
    return telling(text[: here.start()] + " " + who) == telling(old[: there.start()] + " " + who)


def _is_told_of(text: str, old: str, who: str) -> bool:
    """Whether both say what the same is; what people are themselves (tired, a nurse) is many things."""
    here, there = _IS.search(text), _IS.search(old)
    if here is None or there is None:
        return False
    subject = telling(text[: here.start()]) - telling(who)
    return bool(subject) and subject == telling(old[: there.start()]) - telling(who)
