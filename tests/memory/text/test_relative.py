"""What rots overnight is known in the languages that most people speak."""

from __future__ import annotations

import pytest

from memory.text.relative import is_relative


@pytest.mark.parametrize(
    "text",
    [
        "Plays chess Today.",
        "Fährt übermorgen nach Rom",
        "Part demain à Lyon",
        "C'est aujourd’hui son anniversaire",
        "Viaja mañana a Lima",
        "Viaja amanhã",
        "Parte domani per Roma",
        "Gaat vandaag naar huis",
        "Jedzie jutro do Gdańska",
        "Едет завтра в Казань",
        "Їде сьогодні до Львова",
        "Yarın İzmir'e gidiyor",
        "Pergi ke Bandung hari ini",
        "Ngày mai đi Huế",
        "明天去东京",
        "明日は京都へ行きます",
        "내일 서울에 간다",
        "พรุ่งนี้ไปเชียงใหม่",
        "वह कल दिल्ली जाएगा",
        "আগামীকাল ঢাকা যাবে",
        "يسافر غدًا إلى القاهرة",
        "او فردا به تهران می‌رود",
        "وہ کل لاہور جائے گا",
        "נוסע מחר לחיפה",
    ],
)
def test_a_day_that_is_named_by_today_is_known(text: str) -> None:
    assert is_relative(text)


@pytest.mark.parametrize(
    "text",
    [
        "Plays chess on 2026-12-01",
        "Likes Tomorrowland",
        "उसे कला पसंद है",
        "Работает по утрам",
        "喜欢天空",
    ],
)
def test_other_words_are_left_alone(text: str) -> None:
    assert not is_relative(text)
