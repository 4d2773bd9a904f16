"""How texts in every script can be matched, and what stands in for the keywords that jieba does not find."""

import hashlib

import numpy as np
import pytest

from consumer.fingerprint import Fingerprinter, Lexicon, Scheme, TextKind, sketch_similarity
from consumer.fingerprint.kinds import SHINGLED_BINS_MIN, kinds_by_keywords, kinds_in_every_script, runs

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
