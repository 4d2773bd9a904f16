"""How texts in every script can be matched, and what stands in for the keywords that jieba does not find."""

import hashlib

import numpy as np
import pytest

from consumer.fingerprint import Fingerprinter, Lexicon, Scheme, TextKind, sketch_similarity
from consumer.fingerprint.text_kinds import SHINGLED_BINS_MIN, kinds_by_keywords, kinds_in_every_script, runs

RUSSIAN = (
    "Паром причалил на рассвете, когда над гаванью ещё стоял туман. Пассажиры сошли на берег молча, а грузчики сразу "
    "принялись за ящики с яблоками, которые везли с острова на осеннюю ярмарку. К полудню разошлись облака, и город "
    "проснулся: открылись лавки, загудел рынок, на площади настраивали скрипки."
)


@pytest.fixture(scope="module")
def every_script(lexicon: Lexicon) -> Fingerprinter:
    """The scheme for every script."""
    return Fingerprinter(Scheme(name="jieba-tfidf/2"), lexicon)


@pytest.mark.parametrize(
    ("distinct", "bins", "text", "before", "now"),
    [
        (0, 0, "", TextKind.EMPTY, TextKind.EMPTY),
        (0, 0, "😀", TextKind.EMPTY, TextKind.SHORT),
        (0, SHINGLED_BINS_MIN - 1, "a", TextKind.EMPTY, TextKind.SHORT),
        (0, SHINGLED_BINS_MIN, "a", TextKind.EMPTY, TextKind.SHINGLED),
        (7, SHINGLED_BINS_MIN - 1, "a", TextKind.SHORT, TextKind.SHORT),
        (7, SHINGLED_BINS_MIN, "a", TextKind.SHORT, TextKind.SHINGLED),
        (8, 5, "a", TextKind.LONG, TextKind.LONG),
    ],
)
def test_the_kind_of_a_text(distinct: int, bins: int, text: str, before: TextKind, now: TextKind) -> None:
    """By its keywords alone, and in every script."""
    keywords = np.array([distinct])
    assert kinds_by_keywords(keywords, 7).tolist() == [before]
    assert kinds_in_every_script(keywords, 7, np.array([bins]), [text]).tolist() == [now]


def test_a_text_without_keywords_has_its_digest_for_a_fingerprint(every_script: Fingerprinter) -> None:
    """So that equal ones are found, and no others."""
    texts = ["😀😀🎉", "😀😀🎉", "😀😀", "   "]
    found = every_script.fingerprint(texts)
    assert found.kinds.tolist() == [TextKind.SHORT] * 3 + [TextKind.EMPTY]
    digests = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts[:3]]
    assert [int(code) for code in found.codes[:3, 0]] == [int.from_bytes(digest[:8]) for digest in digests]
    assert found.keywords == ((), (), (), ())


def test_a_text_in_a_script_without_words_is_matched_by_its_shingles(every_script: Fingerprinter) -> None:
    """An edited copy stays similar, and what it consists of is evidence for people."""
    found = every_script.fingerprint([RUSSIAN, RUSSIAN.replace("яблоками", "грушами")])
    assert found.kinds.tolist() == [TextKind.SHINGLED] * 2
    assert sketch_similarity(found.sketches[0], found.sketches[1]) > 0.85
    words = dict(found.keywords[0])
    assert words["на"] == 4
    assert {"паром", "причалил", "гаванью"} <= words.keys()


def test_runs_are_letters_with_their_marks() -> None:
    """The most frequent first, then by code points; figures and long runs are left out."""
    found = runs("हिन्दी भाषा, हिन्दी 2026 и ё_x", None)
    assert found == (("हिन्दी", 2.0), ("x", 1.0), ("и", 1.0), ("ё", 1.0), ("भाषा", 1.0))
    assert runs("b a a", 1) == (("a", 2.0),)
    assert runs("x" * 65, None) == ()
    assert runs("1, 2", None) == ()


@pytest.mark.parametrize("text", ["", "😀", RUSSIAN, "渡轮黎明时分进港"])
def test_the_steps_for_a_person_come_to_the_same(every_script: Fingerprinter, text: str) -> None:
    """Kind and fingerprint, also without words."""
    steps, found = every_script.breakdown(text), every_script.fingerprint([text])
    assert (steps.kind, steps.fingerprint) == (found.kinds[0], int(found.codes[0, 0]))


@pytest.fixture(scope="module")
def of_letters(lexicon: Lexicon) -> Fingerprinter:
    """The scheme that compares letters."""
    return Fingerprinter(Scheme("jieba-tfidf/3"), lexicon)


def test_a_short_text_has_its_digest_for_a_fingerprint(of_letters: Fingerprinter) -> None:
    """Also with some keywords, since equality alone makes it near; others keep the fingerprint of their words."""
    long = "渡轮黎明时分进港，乘客静静上岸，码头工人立刻搬运苹果，赶往秋季集市，中午云开雾散，城市苏醒，商店开门。"
    found = of_letters.fingerprint(["渡轮进港", "Good morning, everybody!", "3.5", long])
    assert found.kinds.tolist() == [TextKind.SHORT] * 3 + [TextKind.LONG]
    starts = [int.from_bytes(digest[:8].tobytes()) for digest in found.text_digests]
    assert [int(code) == start for code, start in zip(found.codes[:, 0], starts, strict=True)] == [True] * 3 + [False]
    assert found.keyword_counts[0] > 0


def test_words_of_symbols_are_compared_by_equality_alone(
    of_letters: Fingerprinter, every_script: Fingerprinter
) -> None:
    """A text without a letter is short, however many words jieba makes of it; only one without anything is empty."""
    symbols = "++ -- ## && %% +- #% &% -+ %#"
    found = of_letters.fingerprint([symbols, f"{symbols} a", "\u200b \u2800"])
    assert found.kinds.tolist() == [TextKind.SHORT, TextKind.LONG, TextKind.EMPTY]
    assert not found.sketches[0].any()
    assert every_script.fingerprint([symbols]).kinds.tolist() == [TextKind.LONG]


def test_fewer_shingles_are_enough_where_letters_are_compared(
    of_letters: Fingerprinter, every_script: Fingerprinter
) -> None:
    """Those of about 80 letters."""
    text = RUSSIAN[:100]
    assert of_letters.fingerprint([text, text[:60]]).kinds.tolist() == [TextKind.SHINGLED, TextKind.SHORT]
    assert every_script.fingerprint([text]).kinds.tolist() == [TextKind.SHORT]


def test_a_declared_language_is_not_used_where_letters_are_compared(of_letters: Fingerprinter) -> None:
    """Equal texts have equal fingerprints, sketches and keys whatever they declare."""
    texts = ["渡轮黎明时分进港，the ferry came in at dawn。" * 3] * 5
    found = of_letters.fingerprint(texts, ["", "zh", "zho", "en", "ja-JP"])
    for rows in (found.codes, found.sketches, found.one_bits, found.bands):
        assert (rows == rows[0]).all()


@pytest.mark.parametrize("text", ["", "😀", "渡轮进港", RUSSIAN, RUSSIAN[:60], "渡轮黎明时分进港" * 20])
def test_the_steps_for_a_person_are_those_of_letters(of_letters: Fingerprinter, text: str) -> None:
    """Kind and fingerprint of a breakdown are the engine's."""
    steps, found = of_letters.breakdown(text), of_letters.fingerprint([text])
    assert (steps.kind, steps.fingerprint) == (found.kinds[0], int(found.codes[0, 0]))
