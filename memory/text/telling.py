"""The words that tell what a text is about: without those that stand in every text, by their stems, so
that two texts can be compared that say the same in another order or form. Pure.

The lists are those of the languages that most people write in; in others each word tells something,
which makes comparing stricter and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

from memory.text.words import words

SHORTEST_STEM: Final = 3  # letters that stay of a word without its ending
_LONG: Final = 5  # letters of a word that may have an ending
STEM: Final = 6  # letters of a longer word that tell it from others, whatever its ending is
GAP: Final = 2  # words that may stand beside each one of a saying, where it is said again

# Articles, pronouns, prepositions, auxiliaries, what names something, and who a memory is about.
_FUNCTION_WORDS = """
    a an the this that these those it its he him his she her hers they them their theirs i me my mine
    we us our ours you your yours who whom whose which what when where there here how as so than then
    and or but if because while of in on at by to from for with about into over under up out off
    between after before during through per via is are am was were be been being has have had having
    do does did doing done will would shall should can could may might must also too very just s t re
    ve ll m d don doesn didn isn aren wasn weren wouldn couldn shouldn hasn haven hadn
    called named name known user person human
    der die das den dem des ein eine einen einem einer eines und oder aber im am auf aus bei mit
    von vom zu zum zur für um über unter nach vor ist sind waren sein haben hatte wird werden
    ich du er sie es wir ihr mein dein seine ihre unser euer mich mir dich dir sich heißt
    genannt nutzer nutzerin benutzer dass wenn als wie auch
    le la les un une du de et ou est sont était à au aux en dans sur pour par avec il elle nous
    vous ils elles je tu mon ma mes tes sa ses leur leurs ce cet cette ces que qui appelle
    el los las uno una y o son era del al por para con su sus mi mis se llama lo gli di da che è sono
    的 了 是 在 我 你 他 她 它 们 这 那 和 与 也 就 都 很 有 个 叫 吗 呢 吧 啊 被 把 对 给
    用 户 人 为 于 之 以
    の は が を に へ と で も や か ね よ だ し て た す ま さ る い な れ
"""
# Words of little weight, which somebody who tells what another one said may put in.
_LIGHT_WORDS = """
    want wants wanted use uses used using go goes going gone went get gets got getting make makes made
    take takes took taken taking plan plans planned planning need needs needed say says said tell tells
    told mention mentions mentioned ask asks asked keep keeps kept know knows knew note noted now since
    until currently usually again more anymore one some any other own both date day month year time
    möchte will macht machen geht gehen veut va fait quiere hace
"""
_DENYING_WORDS = """
    not no never nobody none nothing neither nor without cannot cant dont doesnt didnt isnt arent wasnt
    wont stopped longer refuses refuse
    nicht kein keine keinen keinem keiner nie niemals niemand nichts ohne
    pas jamais aucun aucune rien sans ne nunca nadie nada ningun ninguna non nessuno niente senza
    不 没 沒 未 无 無 勿
"""
_FUNCTION: Final = frozenset(words(_FUNCTION_WORDS))
_NEGATIONS: Final = frozenset(words(_DENYING_WORDS))
_ENDINGS: Final = ("ing", "ed", "en", "ie", "e", "n", "y")
_MONTHS = (
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|june|july|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_DAY = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b")
_WHEN = re.compile(  # what people say where a fact names the date
    r"\b(?:to(?:day|night|morrow)|yesterday|week|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|heute|morgen|gestern|woche|monat|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag"
    r"|aujourd|demain|hier|semaine|hoy|mañana|ayer|semana|oggi|domani|ieri|settimana)"
    r"|今天|今晚|明天|昨天|后天|周|星期",
    re.IGNORECASE,
)
_DATED = re.compile(rf"(?:{_WHEN.pattern})|{_MONTHS}", re.IGNORECASE)
_NOT = re.compile(r"[a-z]n['’]t\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[.!?;:,。！？；，、\n]+|\b(?:but|and|aber|und|mais|pero|ma|et|y)\b", re.IGNORECASE
)


def _cut(word: str) -> str:
    """The word without a plural, one ending, and a doubled last letter: preferred, planning."""
    if len(word) > SHORTEST_STEM and word.endswith("s"):
        word = word[:-1]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    if len(word) > SHORTEST_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word[:STEM]


_SAME: Final = {
    _cut(word): _cut(words_of_one[0])
    for words_of_one in (
        ("like", "love", "enjoy", "prefer", "favourite", "favorite", "fond"),
        ("live", "reside", "dwell"),
        ("work", "employ", "employed"),
        ("begin", "start"),
        ("buy", "bought", "purchase"),
    )
    for word in words_of_one
}


_SHORT: Final = 300
"""Characters. Facts, notes and sayings are compared many times, whole answers once: kept too, four
thousand of those were 50 MB after twenty minutes of talk."""


@lru_cache(maxsize=5_000)
def stem(word: str) -> str:
    """What a word has in common with its other forms, and some with those that mean the same; numbers
    stay whole."""
    if any(map(str.isdigit, word)) or len(word) <= SHORTEST_STEM:
        return word
    cut = _cut(word)
    return _SAME.get(cut, cut)


_LIGHT: Final = frozenset(map(stem, words(_LIGHT_WORDS)))


def tells(word: str) -> bool:
    """Whether a word tells something; a single character of a script without spaces always does."""
    return len(word) == 1 or (word not in _FUNCTION and word not in _NEGATIONS)


def beginning(word: str) -> str:
    """What the forms of a longer word begin with, where it is not told which ending it has."""
    if len(word) < _LONG or not word.isalpha():
        return word
    cut = _cut(word)
    return cut if len(cut) < min(len(word), STEM) else word[:-1]


def sequence(text: str) -> list[str]:
    """The stems of the words that tell something, in their order; a negation tells nothing here."""
    return [stem(word) for word in words(text) if word not in _FUNCTION and word not in _NEGATIONS]


def telling(text: str) -> frozenset[str]:
    """The stems of the words that tell something."""
    return _telling_shortly(text) if len(text) <= _SHORT else frozenset(sequence(text))


@lru_cache(maxsize=2_000)
def _telling_shortly(text: str) -> frozenset[str]:
    return frozenset(sequence(text))


def untold(text: str, sources: Sequence[str]) -> frozenset[str]:
    """The stems of the words that tell something and stand in none of the sources. A date in full is
    founded where they name its day of the month, or one in relation to their own."""
    known = frozenset[str]().union(*map(telling, sources))
    related = any(_WHEN.search(source) for source in sources)

    def founded(found: re.Match[str]) -> str:
        day = found[0][-2:]
        return " " if related or {day, day.lstrip("0")} & _numbers(sources) else found[0]

    return telling(_DAY.sub(founded, text)) - known - _LIGHT


def _numbers(sources: Iterable[str]) -> set[str]:
    return {number for source in sources for number in re.findall("[0-9]+", source)}


def is_ordinary(name: str) -> bool:
    """Whether what somebody calls themselves is a word of every text, a day, or no word at all."""
    told = [word for word in sequence(name) if word not in _LIGHT and not word.isdigit()]
    return not told or bool(_DATED.search(name))


def denies(text: str) -> bool:
    """Whether a word of the text denies something."""
    return not _NEGATIONS.isdisjoint(words(text)) or _NOT.search(text) is not None


def turned(text: str, sources: Iterable[str]) -> bool:
    """Whether the text denies what none of the sources denies, or states all that a clause of them
    denies and no other states."""
    stated = [(_telling(part), denies(part)) for each in sources for part in clauses(each)]
    if denies(text) and not any(denied for _, denied in stated):
        return True
    return any(_turned(_telling(part), denies(part), stated) for part in clauses(text))


def _turned(
    about: frozenset[str], denied: bool, stated: Sequence[tuple[frozenset[str], bool]]
) -> bool:
    near = [(about & other, how) for other, how in stated if denied or other <= about]
    most = max((len(shared) for shared, _ in near), default=0)
    return most > 0 and denied not in {how for shared, how in near if len(shared) == most}


def _telling(text: str) -> frozenset[str]:
    return telling(text) - _LIGHT


def clauses(text: str) -> Sequence[str]:
    """Its parts, each of which states or denies something by itself."""
    return [part for part in _CLAUSE.split(text) if part.strip()]


def stand_together(text: Sequence[str], saying: Collection[str]) -> bool:
    """Whether all stems of `saying` stand near one another in `text`, a `sequence`, in any order."""
    wanted = frozenset(saying)
    room = len(wanted) * (1 + GAP)
    newest: dict[str, int] = {}
    for index, word in enumerate(text):
        if word not in wanted:
            continue
        newest[word] = index
        if len(newest) == len(wanted) and index - min(newest.values()) < room:
            return True
    return False
