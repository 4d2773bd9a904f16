"""The table of letters: made from Unicode's, complete, and settled."""

import unicodedata

import pytest

from consumer.fingerprint import normalise
from consumer.fingerprint.characters.letter_tables import BARE, DROPPED, LETTER, MARK, LetterTables
from consumer.workers.word_files import load_lexicon
from tests.fixtures.fingerprint.letters import TABLE, table

TABLES: LetterTables = load_lexicon().letters()


def unicode_version() -> str:
    """That of the file."""
    return TABLE.read_text("utf-8").splitlines()[0].split("\t")[1]


@pytest.mark.skipif(unicodedata.unidata_version != unicode_version(), reason="made with another version of Unicode")
def test_the_table_is_made_from_unicode() -> None:
    """By tests.fixtures.fingerprint.letters."""
    assert TABLE.read_text("utf-8") == table()


def test_forms_are_letters_and_stay() -> None:
    """What a letter becomes becomes nothing else, and is normalised."""
    for written, form in TABLES.forms["fold"].items():
        if normalise(written) != written:
            continue
        assert TABLES.kinds[ord(form)] == TABLES.kinds[ord(written)] or TABLES.kinds[ord(form)] == BARE, written
        assert TABLES.forms["fold"].get(form, form) == form, written
        assert normalise(form) == form


def test_words_are_letters() -> None:
    """And so are their forms."""
    words = TABLES.forms["word"]
    assert len(words) > 700
    for text in (*words, *words.values()):
        assert all(TABLES.kinds[ord(character)] in {BARE, LETTER} for character in text), text
        assert not TABLES.forms["fold"].keys() & set(text), text
        assert max(text) >= "\u2e80"


@pytest.mark.parametrize(
    ("characters", "kind"),
    [
        ("aéжجא中〇々5٣٥", BARE),
        ("ひヒ가กक", LETTER),
        ("ิ้ि्\u3099", MARK),
        (" .,-_😀\u0301\u064e\u05b0\u0336ـʼ^+=", DROPPED),
    ],
)
def test_kinds_of_characters(characters: str, kind: int) -> None:
    """Letters whose marks do not count, letters whose marks do, these marks, and the rest."""
    assert [TABLES.kinds[ord(character)] for character in characters] == [kind] * len(characters)


def test_every_letter_and_number_counts() -> None:
    """Apart from modifiers that only tell how a letter is read, and what is drawn out or abbreviated."""
    letters = [chr(code) for code in range(0x110000) if chr(code).isalpha() and TABLES.kinds[code] == DROPPED]
    blocks = (range(0x2B0, 0x300), (0x640, 0x6E5, 0x6E6, 0x7FA, 0xA788))
    known = {chr(code) for block in blocks for code in block}
    assert {letter for letter in letters if unicodedata.unidata_version == unicode_version()} <= known


def test_another_file_has_another_digest() -> None:
    """Which is part of the scheme's."""
    assert LetterTables(b"bare\t0061-0062\n").digest != TABLES.digest
