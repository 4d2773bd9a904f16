"""Compares the compiled engine with the one in Python, on texts that are hard for one of them."""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np

from consumer.fingerprint import Fingerprinter, Fingerprints, Scheme
from consumer.fingerprint.compiled import CompiledFingerprinter
from consumer.workers.word_files import load_lexicon

LANGUAGES = ("", "zh", "en", "ja-JP", "ZH_tw", "vi", "ru", "yue", "İ")
PIECES = (
    *(
        "新馆共有四层，",
        "藏书很多。",
        "入園料は無料です。",
        "臺灣的軟體與滑鼠，",
        "后来皇后说",
        "乾隆乾燥",
        "김치는 맛있다 ",
    ),
    *("the wing cost 4.2 million. ", "SHA-256 ", "non-exclusive 1997.8.12 50-60% ", "İstanbul’da ", "Ελλάς ΣΊΣΥΦΟΣ "),
    *("ﷺ", "ﷲ", "Å", "ẞß", "ǅ", "①②③", "Ⅷ", "½", "㎏", "ｶﾞ", "𠮷野家", "㐂", "豈", "\u0301" * 40, "\u0f73\u0f75"),
    *("\u200b", "\u00ad", "\ufeff", "\u2028", "\x1c", "\x85", "\u3000", "\r\n", "\t", "_", "__init__", "c++ at&t "),
    *("\ud83d\ude00", "\ud83d", "\ude00", "😀👍🏽", "🇨🇳", "A\u0300\u0345", "\u1100\u1161\u11a8", "각", "ไทย", "हिन्दी"),
    *(
        "2026年8月12日",
        "第三",
        "3月5日上午9时，",
        "法文版和西班牙语版",
        "一次，二〇二六年，三届",
        "习近平在北京、上海",
        "1 234 567, 1,5 to -3 ",
        "12,500.75",
        "MU5137",
        "March 12th, 2026",
        "v1.2.3",
        "，",
        "…",
        "（",
        "x" * 70,
        "好" * 70,
    ),
)


def known(text: str) -> str:
    """The text without code points that this Python has no character for: the engine may know some (test_text.py).

    A pair of surrogates is one of them, too, where it encodes such a code point.
    """
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if all(unicodedata.category(character) != "Cn" for character in joined):
        return text
    return "".join(character for character in joined if unicodedata.category(character) != "Cn")


@cache
def written() -> list[str]:
    """The bodies of the sample feeds."""
    folder = Path(__file__).parents[3] / "sample"
    feeds = [(folder / f"{name}.jsonl").read_text(encoding="utf-8") for name in ("feed", "pages_and_scripts", "posts")]
    return [json.loads(line).get("body") or "" for feed in feeds for line in feed.splitlines()]


@cache
def engines(scheme: Scheme, keywords_kept: int | None = 32) -> tuple[Fingerprinter, CompiledFingerprinter]:
    """Both engines of a scheme, with anchors and samples; to build them takes longer than most texts."""
    lexicon = load_lexicon()
    reference = Fingerprinter(scheme, lexicon, None, keywords_kept, parts=True)
    return reference, CompiledFingerprinter(scheme, lexicon, keywords_kept, parts=True)


def assert_equal(ours: Fingerprints, reference: Fingerprints) -> None:
    """Every field, to the last byte, and of the same type."""
    for field in fields(Fingerprints):
        found, expected = getattr(ours, field.name), getattr(reference, field.name)
        if isinstance(expected, np.ndarray):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), field.name
            np.testing.assert_array_equal(found, expected, err_msg=field.name)
        else:
            assert found == expected, field.name


def assert_same(scheme: Scheme, texts: Sequence[str], languages: Sequence[str] | None = None) -> None:
    """Both engines agree on these texts."""
    reference, compiled = engines(scheme)
    assert_equal(compiled.fingerprint(texts, languages), reference.fingerprint(texts, languages))
