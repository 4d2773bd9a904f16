"""The compiled engine has the same letters and equal forms of texts as the Python engine."""

from collections.abc import Iterator, Sequence
from itertools import product

import dupwatch_core as core
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import drawn, examples
from tests.processor_time import within_processor_s
from tests.unit.core.comparing import PIECES, known, written
from tests.unit.fingerprint.forms import all_letters, equal_forms, lexicon
from tests.unit.fingerprint.scripts import INSERTED, TEXTS, spaced

TABLES, LISTS = lexicon().letters(), lexicon().decorations()
SURROGATES = range(0xD800, 0xE000)
FOLDED = {ord(character) for entries in TABLES.forms.values() for entry in entries for character in entry}


def assert_alike(texts: Sequence[str]) -> None:
    """Assert that both engines have the same forms and letters of these texts."""
    equal = equal_forms(*texts)
    assert [core.equality_forms(text) for text in texts] == list(zip(equal.read, equal.compared, strict=True))
    for without in (True, False):
        letters = all_letters(*texts, without_decorations=without)
        assert [core.letters_of(text, without) for text in texts] == letters


def test_the_tables_are_the_same() -> None:
    """By the digests that are part of the scheme's."""
    assert TABLES.digest == core.LETTERS_DIGEST
    assert LISTS.digest == core.DECORATIONS_DIGEST


def characters() -> Iterator[str]:
    """All that this Python has, except most ideographs and Hangul syllables, which are alike, and surrogates."""
    for code in range(0x30000):
        is_one_of_many = (
            0x3400 <= code < 0xA000 or 0xAC00 <= code < 0xD7A4 or 0x17000 <= code < 0x18D00 or code >= 0x20000
        )
        if code not in SURROGATES and (not is_one_of_many or code % 64 == 0 or code in FOLDED) and known(chr(code)):
            yield chr(code)


def test_every_character_beside_others() -> None:
    """As a letter, a separator, a mark, in a word of two scripts; many in a text."""
    around = "\n;a{0}b;5{0}²;中 {0} 中;कि{0}ि;а{0}α"
    alone = [around.format(character) for character in characters()]
    assert len(alone) > 35_000
    assert_alike(["".join(alone[start : start + 1000]) for start in drawn(range(0, len(alone), 1000), 6)])


def test_every_word_beside_others() -> None:
    """Alone, in a row, and where another begins within it."""
    words = list(TABLES.forms["word"])
    assert_alike(
        [*words, "".join(words), *("".join(map("".join, zip(words, words[n:], strict=False))) for n in (1, 7))]
    )


def test_written_texts_disguised() -> None:
    """In eleven languages, in each way, and those of the sample feeds."""
    assert_alike([spaced(text, inserted) for text, inserted in product(TEXTS.values(), INSERTED.values())])
    assert_alike(written())


@pytest.mark.parametrize("part", EVERY_PART)
def test_the_development_feed_is_read_alike(part: int) -> None:
    """As it is, and with a mark of each kind."""
    bodies = [article["body"] for article in dev_part(part)[::4]]
    assert_alike(bodies)
    assert_alike([f"RT @a: {body[:300]} http://t.cn/a [哈哈]".replace("a", "а") for body in bodies])


def joined(*alphabets: str) -> some.SearchStrategy[str]:
    """A character of one of these."""
    return some.one_of(*map(some.sampled_from, alphabets))


look_alikes = joined(
    "aeopcxyABEKMHOPCTX", "аеорсхуіАВЕКМНОРСТ", "αονρικΑΒΕΖΗ", "bdgпижσω", "\u0301\u0336\u200b\u0e31", " -'5"
)
equality = joined(
    "abé",
    "中のカ々ー〇",
    "가",
    " \n\u2800\u3000",
    "._-·・−",
    "5२²½①㏠",
    "\u0301\u064e\u05b0\u0338",
    "аеёѐйѝ",
    ",.。()+",
)
marks = joined("aא中か", "किंกเ가", "\u0301\u093f\u0e34\u3099\u0f71\u302a\ufe0f\u20e3", " .\n")
words = some.sampled_from(sorted(word for of_name in LISTS.words.values() for word in of_name))
decorations = some.one_of(words, some.sampled_from(("@", "//@", "[", "]", "(", ")", "【", "】", "http", "www")))
fillers = some.sampled_from(
    ("港务委员会周一启用了新的渡轮码头", "the harbour council opened", "a", "1", " ", ":", "_", "-", "é", "中", "．")
)
hostile = some.one_of(
    some.lists(look_alikes, max_size=20),
    some.lists(equality, max_size=20),
    some.lists(marks, max_size=20),
    some.lists(some.one_of(decorations, fillers), max_size=20),
    some.lists(some.one_of(some.sampled_from(PIECES), decorations, fillers, some.text(max_size=3)), max_size=12),
).map("".join)


@examples(400)
@given(hostile.map(known))
@example("")
@example("@")
@example("@" + "a" * 30)
@example("@" + "a" * 31)
@example("[哈哈" + "]" * 9)
@example("t.cn/" * 3 + "xt.cn/a" + "w" * 5 + ".www.")
@example("http://" + "a" * 1030)
@example("5\u0336\u200b\u2800²³ 5a²")
@example("\u0301 \u2800 а\u0301\u0301\u0336\u0301")
@example("а\u0301b\0аb")
def test_hostile_texts_are_read_alike(text: str) -> None:
    """Words of several scripts, separators in a row, marks without letters, halves of decorations."""
    assert_alike([text])


@pytest.mark.parametrize(
    "piece",
    [
        "@a ",
        "转@a",
        "[a]",
        "(转)",
        "http://",
        "t.cn/",
        "www.",
        "aб",
        "α\u0301",
        "5²",
        "а\u0301",
        "a . ",
        "中 ",
        "\u3099",
        "乾 淨",
    ],
)
def test_a_million_of_a_piece_takes_no_long_time(piece: str) -> None:
    """Each character is looked at a few times."""
    text = piece * (1_000_000 // len(piece))
    with within_processor_s(2):
        core.equality_forms(text)
        core.letters_of(text, without_decorations=True)
    assert_alike([text[:3000]])
