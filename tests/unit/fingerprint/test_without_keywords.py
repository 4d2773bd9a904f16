"""Which texts have no keywords, and so no verdict but unique: what README says of them."""

from pathlib import Path

import pytest

from consumer.fingerprint import Fingerprinter, Scheme, TextKind
from consumer.workers.word_files import load_lexicon

EXTENSION_B = "".join(map(chr, range(0x20000, 0x20100)))
TEXTS = {
    "kana": "ひらがなとカタカナのながいぶんしょうです" * 5,
    "Hangul": "안녕하세요여러분오늘의뉴스입니다" * 5,
    "Cyrillic": "Сегодня в городе открыли новый мост " * 5,
    "Greek": "Σήμερα άνοιξε η νέα γέφυρα της πόλης " * 5,
    "Arabic": "افتتح اليوم الجسر الجديد في المدينة " * 5,
    "Thai": "วันนี้เปิดสะพานใหม่ในเมือง" * 5,
    "Extension A": "".join(map(chr, range(0x3400, 0x3500))),
    "Extension B": EXTENSION_B,
    "U+FFFF": "".join(map(chr, range(0x30000, 0x30100))),
    "emoji": "😀🎉🚀🌍🍎🐶👍🔥" * 30,
}


@pytest.fixture(scope="module")
def fingerprinter() -> Fingerprinter:
    """With the default scheme."""
    return Fingerprinter(Scheme(), load_lexicon())


@pytest.mark.parametrize("name", TEXTS)
def test_such_a_text_has_no_keywords_and_readme_says_so(name: str, fingerprinter: Fingerprinter) -> None:
    """Its kind is empty, however long it is, so a verbatim copy is kept; README lists it under what is not seen."""
    fingerprints = fingerprinter.fingerprint([TEXTS[name]], [""])
    assert list(fingerprints.kinds) == [TextKind.EMPTY]
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    assert name in readme.partition("**Text without keywords.**")[2].partition("\n- ")[0]


def test_in_a_mixed_text_they_add_nothing_to_the_fingerprint(fingerprinter: Fingerprinter) -> None:
    """The code is that of the other words, the sketch is not."""
    plain = "苍浦地铁5号线下月试运行，坐到机场只要三十四分钟。票价三元起，全程十八站，早晚高峰四分钟一班。" * 2
    fingerprints = fingerprinter.fingerprint([plain, f"{plain} {EXTENSION_B}"], ["zh", "zh"])
    assert (fingerprints.codes[0] == fingerprints.codes[1]).all()
    assert (fingerprints.sketches[0] != fingerprints.sketches[1]).any()
