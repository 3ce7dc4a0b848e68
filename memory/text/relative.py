"""Days that are named by today: a fact that holds one is wrong the day after, since it is read on other
days. Pure."""

from __future__ import annotations

from typing import Final

from memory.text.words import contains, normalised

_NAMES: Final = {
    "ar": "اليوم, الليلة, غدا, أمس, البارحة, بعد غد",
    "bn": "আজ, আজকে, আগামীকাল, গতকাল, পরশু",
    "de": "heute, morgen, gestern, übermorgen, vorgestern",
    "en": "today, tonight, tomorrow, yesterday",
    "es": "hoy, mañana, ayer, anteayer, anoche",
    "fa": "امروز, امشب, فردا, دیروز",
    "fr": "aujourd'hui, demain, hier, ce soir",
    "he": "היום, הלילה, מחר, מחרתיים, אתמול",
    "hi": "आज, कल, परसों",
    "id": "hari ini, malam ini, besok, kemarin, lusa",
    "it": "oggi, stasera, domani, dopodomani, ieri",
    "ja": "今日, 今夜, 明日, 明後日, 昨日, きょう, あした, きのう",
    "ko": "오늘, 내일, 모레, 어제",
    "nl": "vandaag, vanavond, overmorgen, gisteren",
    "pl": "dziś, dzisiaj, jutro, pojutrze, wczoraj",
    "pt": "hoje, amanhã, ontem, anteontem",
    "ru": "сегодня, завтра, послезавтра, вчера, позавчера",
    "th": "วันนี้, คืนนี้, พรุ่งนี้, เมื่อวาน",
    "tr": "bugün, yarın, dün, bu akşam",
    "uk": "сьогодні, вчора, післязавтра",
    "ur": "آج, کل, پرسوں",
    "vi": "hôm nay, tối nay, ngày mai, hôm qua",
    "zh": "今天, 今晚, 明天, 后天, 後天, 昨天, 前天",
}
_PHRASES: Final = tuple(
    dict.fromkeys(normalised(name) for names in _NAMES.values() for name in names.split(","))
)


def is_relative(text: str) -> bool:
    """Whether it names such a day."""
    said = normalised(text)
    return any(contains(said, phrase) for phrase in _PHRASES)
