"""Sixty ways to make a copy look like another text, on eighteen articles: all but those that the docs name are flagged.

Readers do not see most of them, and see through the others.
"""

import itertools
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from benchmarks.quality.judging import judged

ROOT: Final = Path(__file__).resolve().parents[2]
FOUND_MIN: Final = 50
Disguise = Callable[[str], str]


def _each(separator: str) -> Disguise:
    """Put something behind each letter."""
    return lambda text: "".join(f"{character}{separator}" if character.isalnum() else character for character in text)


def _mapped(letters: str, others: Iterable[str]) -> Disguise:
    table = str.maketrans(dict(zip(letters, others, strict=True)))
    return lambda text: text.translate(table)


def _lines(width: int, end: str) -> Disguise:
    return lambda text: end.join(text[start : start + width] for start in range(0, len(text), width))


def _words(change: Disguise, every: int = 1) -> Disguise:
    """Change one word in so many."""
    return lambda text: " ".join(
        change(word) if place % every == 0 else word for place, word in enumerate(text.split(" "))
    )


def _run(first: str, count: int = 26) -> list[str]:
    return [chr(ord(first) + place) for place in range(count)]


LOWER: Final = "".join(_run("a"))
UPPER: Final = LOWER.upper()
CYRILLIC: Final = _mapped("aceopxyi", "асеорхуі")
GREEK: Final = _mapped("ov", "ον")
SMALL_CAPITALS: Final = _mapped("abcdefghijklmnopqrstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ")
EAST_LOOK_ALIKES: Final = _mapped("一ニカロエタハへー口力", "ー二力口工夕八ヘ一ロカ")
TRADITIONAL: Final = _mapped("国来时会开门车东马长见说学", "國來時會開門車東馬長見說學")
HALF_WIDTH_KANA: Final = _mapped("アイウエオカキクケコサシスセソタチツテトナニヌネノ", "ｱｲｳｴｵｶｷｸｹｺｻｼｽｾｿﾀﾁﾂﾃﾄﾅﾆﾇﾈﾉ")
RADICALS: Final = _mapped("一二人入八力口大女子小山工日月木水火", "⼀⼆⼈⼊⼋⼒⼝⼤⼥⼦⼩⼭⼯⽇⽉⽊⽔⽕")
FIGURES: Final = _mapped("0123456789", "٠١٢٣٤٥٦٧٨٩")


def _between_han_and_latin(text: str) -> str:
    """Put the customary space between ideographs and Latin letters or digits."""
    spaced = text[:1]
    for before, character in itertools.pairwise(text):
        if before.isalnum() and character.isalnum() and before.isascii() != character.isascii():
            spaced += " "
        spaced += character
    return spaced


def _quoted(text: str) -> str:
    return f"转自 @晨风_资讯: {text} https://morning-breeze.example/a/8271?from=feed [转] via @daily-notes"


FOUND: Final[Mapping[str, Disguise]] = MappingProxyType(
    {
        **{
            f"{name} after each letter": _each(separator)
            for name, separator in {
                "space": " ",
                "full stop": ".",
                "hyphen": "-",
                "line end": "\n",
                "low line": "_",
                "emoji": "😀",
                "middle dot": "·",
                "katakana dot": "・",
                "slash": "/",
                "vertical line": "|",
                "asterisk": "*",
                "tilde": "~",
                "comma": ",",
                "zero-width space": "\u200b",
                "no-break space": "\u00a0",
                "ideographic space": "\u3000",
                "braille blank": "\u2800",
                "soft hyphen": "\u00ad",
                "word joiner": "\u2060",
                "three dots": "...",
                "star": "★",
                "variation selector": "\ufe0f",
                "Hangul filler": "\u3164",
                "right-to-left mark": "\u200f",
                "line through": "\u0336",
                "slash through": "\u0338",
                "line below": "\u0332",
                "dot below": "\u0323",
                "acute": "\u0301",
                "two marks": "\u0308\u0330",
                "enclosing circle": "\u20dd",
                "grapheme joiner": "\u034f",
            }.items()
        },
        "no spaces": lambda text: text.replace(" ", ""),
        "no punctuation": lambda text: "".join(c for c in text if c.isalnum() or c == " "),
        "twice the spaces": lambda text: text.replace(" ", "  "),
        "lines of 20 characters": _lines(20, "\n"),
        "lines of 13 characters": _lines(13, "\r\n"),
        "spaces between Han and Latin": _between_han_and_latin,
        "capitals": lambda text: "".join(c.upper() if len(c.upper()) == 1 else c for c in text),
        "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
        "bold": _mapped(UPPER + LOWER, _run("𝐀") + _run("𝐚")),
        "monospace": _mapped(UPPER + LOWER, _run("𝙰") + _run("𝚊")),
        "circled": _mapped(UPPER + LOWER, _run("Ⓐ") + _run("ⓐ")),
        "in brackets": _mapped(LOWER, _run("⒜")),
        "squared": lambda text: _mapped(UPPER, _run("🄰"))(text.upper()),
        "negative squared": lambda text: _mapped(UPPER, _run("🅰"))(text.upper()),
        "small capitals": lambda text: SMALL_CAPITALS(text.lower()),
        "Cyrillic look-alikes in one word in ten": _words(CYRILLIC, 10),
        "a Greek look-alike in every word": _words(GREEK),
        "kanji and kana look-alikes": EAST_LOOK_ALIKES,
        "traditional characters": TRADITIONAL,
        "half-width kana": HALF_WIDTH_KANA,
        "radicals": RADICALS,
        "decomposed": lambda text: unicodedata.normalize("NFD", text),
        "umlauts": _mapped("aouAOU", "äöüÄÖÜ"),
        "other digits": FIGURES,
        "link, names and repost marks": _quoted,
    }
)
"""Flagged for every article."""
MISSED: Final[Mapping[str, tuple[Disguise, str]]] = MappingProxyType(
    {
        "Cherokee look-alikes": (
            lambda text: _mapped("ABCDEGHJKLMPRSTVWZ", "ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ")(text.upper()),
            "Cherokee",
        ),
        "digits in place of letters": (_mapped("aeiost", "431057"), "digits in place of letters"),
        "look-alikes with spaces between": (lambda text: _each(" ")(CYRILLIC(text)), "with separators between all"),
    }
)
"""Others, and the words with which docs/use/fingerprint.md names them."""


@pytest.fixture(scope="module")
def articles() -> dict[str, str]:
    """Six articles in English, Chinese and Japanese each, of the sample feed."""
    lines = [json.loads(line) for name in ("originals", "hard_negatives") for line in _lines_of(name)]
    long = [line for line in lines if "short" not in line["id"]]
    return {line["id"]: line["body"] for lang in ("en", "zh", "ja") for line in _of(lang, long)[:6]}


def _lines_of(name: str) -> list[str]:
    return (ROOT / "sample" / f"{name}.jsonl").read_text().splitlines()


def _of(lang: str, lines: list[dict[str, str]]) -> list[dict[str, str]]:
    return [line for line in lines if line["lang"] == lang]


def missed_by(articles: dict[str, str], disguises: Mapping[str, Disguise]) -> dict[str, list[str]]:
    """Return the articles whose disguised copy is not flagged as a copy of the original, by disguise."""
    texts = list(articles.values())
    copies = [
        (name, number, disguise(text)) for name, disguise in disguises.items() for number, text in enumerate(texts)
    ]
    verdicts = judged(texts + [copy for _, _, copy in copies])
    assert {verdict.outcome for verdict in verdicts[: len(texts)]} == {"unique"}
    ids = list(articles)
    missed: dict[str, list[str]] = {name: [] for name in disguises}
    for (name, number, _), verdict in zip(copies, verdicts[len(texts) :], strict=True):
        if verdict.duplicate_of != str(number):
            missed[name].append(ids[number])
    return missed


def test_disguised_copies_are_flagged(articles: dict[str, str]) -> None:
    """Each of these disguises changes some article, and none of the eighteen hides behind one."""
    assert len(articles) == 18
    assert len(FOUND) + len(MISSED) == 60
    assert len(FOUND) >= FOUND_MIN
    for name, disguise in FOUND.items():
        assert any(disguise(text) != text for text in articles.values()), name
    assert {name: missed for name, missed in missed_by(articles, FOUND).items() if missed} == {}


def test_other_disguises_are_named_in_the_documentation(articles: dict[str, str]) -> None:
    """What hides at least one article is a limit that the page on fingerprints names."""
    described = (ROOT / "docs" / "use" / "fingerprint.md").read_text()
    missed = missed_by(articles, {name: disguise for name, (disguise, _) in MISSED.items()})
    for name, (_, words) in MISSED.items():
        assert missed[name], name
        assert words in described
