"""Words are found in any script, however they are written; what a word is is ours to say."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.words import Phrase, contains, looser, normalised, phrases, searched, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My cat is called Pablo.", "my cat is called pablo"),
        ("snake_case e-mail 3.14", "snake case e mail 3 14"),
        ("Café CAFÉ Straße ﬁne ＦＵＬＬ", "cafe cafe strasse fine full"),
        ("ΆΛΦΑ Ёлка", "αλφα елка"),
        ("DİYARBAKIR ısparta", "diyarbakir isparta"),
        ("我的猫叫Pablo。", "我 的 猫 叫 pablo"),
        ("がいこく ｶﾀｶﾅ", "が い こ く カ タ カ ナ"),
        ("서울에서", "서 울 에 서"),
        ("กินข้าว", "ก ิ น ข ้ า ว"),
        ("हिन्दी में", "हिन्दी में"),
        ("مُحَمَّد كتــاب", "محمد كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("👍 – …", ""),
    ],
)
def test_a_text_becomes_words(text: str, expected: str) -> None:
    assert words(text) == expected.split()


@given(st.text())
def test_words_hold_no_space_and_stay_what_they_are(text: str) -> None:
    made = words(text)
    assert all(word and not any(c.isspace() or c in '"*_' for c in word) for word in made)
    assert words(" ".join(made)) == made


@given(st.text(), st.text())
def test_words_of_a_text_are_those_of_its_parts(one: str, other: str) -> None:
    assert words(f"{one} {other}") == words(one) + words(other)


@given(st.text(), st.text())
def test_any_query_is_one_that_fts5_takes_and_finds_its_own_text(text: str, around: str) -> None:
    asked = phrases(text)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(words, tokenize = 'ascii')")
        stored = searched(f"{around} {text} {around}")
        connection.execute("INSERT INTO t VALUES (?)", (stored,))
        for each in (*asked, *looser(asked)):
            found = connection.execute("SELECT 1 FROM t WHERE t MATCH ?", (each.fts(),)).fetchall()
            assert found, each
    connection.close()


def test_two_characters_are_found_within_a_sentence() -> None:
    assert contains(normalised("今天東京下雨"), normalised("東京"))
    assert contains(normalised("กินข้าวแล้ว"), normalised("ข้าว"))
    assert not contains(normalised("今天東京下雨"), normalised("京東"))
    assert not contains(normalised("concatenate"), normalised("cat"))


def test_a_query_is_words_that_may_go_on_and_quotes_that_do_not() -> None:
    assert phrases('Katze "rote Katze" 猫 ab') == [
        Phrase(("rote", "katze"), whole=True),
        Phrase(("katze",), beginning=True),
        Phrase(("猫",)),
        Phrase(("ab",)),
    ]


def test_a_whole_chinese_sentence_is_looked_for_in_pairs_as_well() -> None:
    assert looser(phrases('我的猫 e-mail "我的猫"')) == [
        Phrase(("我", "的", "猫"), whole=True),
        Phrase(("我", "的")),
        Phrase(("的", "猫")),
        Phrase(("e",)),
        Phrase(("mail",), beginning=True),
    ]
