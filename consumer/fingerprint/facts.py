"""Extracts the facts of a text, which distinguish two stories told in the same words.

Facts are numbers, dates, codes and names. A record keeps a sample of their hashes that is chosen by the hashes alone
(bottom-k: Cohen and Kaplan, "Summarizing Data Using Bottom-k Sketches", PODC 2007), so that the overlap of two texts'
facts can be estimated from the samples. Up to ``FACTS_KEPT`` facts, all are kept.

    bytes 0-3          the number of distinct facts of the text, big-endian
    then 4 bytes each  the smallest hashes, ascending, at most ``FACTS_KEPT``

The sample of a text without facts is empty.
"""

import re
from collections.abc import Collection, Container, Iterable, Sequence
from struct import pack
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from consumer.fingerprint.characters.letter_tables import LetterTables
from consumer.fingerprint.figures import FIGURES_DESCRIBED, MONTHS, canonical_figures, figures
from consumer.fingerprint.hashing import mix_64
from consumer.fingerprint.shingles import CJK_FROM

FACTS_KEPT: Final = 64
_NAMES_DESCRIBED: Final = (
    "capitalised words within a sentence or beside another, in mostly Latin text; words of two and more letters from "
    "U+2E80 on that have no inverse document frequency"
)
FACTS_DESCRIBED: Final = (
    "dates, numbers with their separators and without sign or unit, codes of letters and digits, Chinese numerals, "
    f"of the normalised text; {_NAMES_DESCRIBED}"
)
FACTS_OF_LETTERS_DESCRIBED: Final = (
    f"dates, {FIGURES_DESCRIBED}; codes of letters and digits, Chinese numerals, of the text that is split into words; "
    f"{_NAMES_DESCRIBED}"
)
_HASH_BYTES: Final = 4
_COUNT_BYTES: Final = 4
_GREATEST_HASH: Final = b"\xff" * _HASH_BYTES
NUMERALS: Final = "〇零一二两三四五六七八九十百千万亿"
_NUMBERS_IN_WORDS: Final = re.compile(f"[{NUMERALS}](?:[{NUMERALS}]++|(?<=第.))")
_CAPITALISED: Final = re.compile(r"[A-Z](?:(?<=[\w,;(] .)[\w-]++|(?<![\w-].)[\w-]++(?= [A-Z]))")
_FULL_WIDTH_LETTERS: Final = re.compile("[\uff21-\uff3a\uff41-\uff5a]+")
_PLAIN_LETTERS: Final = {code: code - 0xFEE0 for code in range(0xFF21, 0xFF5B)}
_EAST_ASIAN_FROM: Final = chr(CJK_FROM)
_NAME_CHARS_MIN: Final = 2
# Latin text has little more than 1 byte per character in UTF-8, Chinese and Japanese text nearly 3.
_LATIN_BYTES_A_CHARACTER_BELOW: Final = 1.25


class FactOverlap(NamedTuple):
    """The overlap of two texts' facts: their counts, ``fewer`` and ``more``, and the shared facts of each text.

    Exact up to ``FACTS_KEPT`` facts. Beyond that these are estimates, with a standard error of at most 0.07 of the
    count if both texts have about as many facts. ``shared_of_fewer`` and ``shared_of_more`` are estimated separately,
    because the texts may differ in their number of comparable hashes. ``shared_of_fewer`` is None if the text with
    fewer facts has none to compare.
    """

    fewer: int
    more: int
    shared_of_fewer: float | None
    shared_of_more: float

    @property
    def share_of_fewer(self) -> float | None:
        """The shared facts as a share of ``fewer``, from 0 to 1; None if there is nothing to compare."""
        return None if self.shared_of_fewer is None else self.shared_of_fewer / self.fewer

    @property
    def share_of_more(self) -> float | None:
        """The shared facts as a share of ``more``, from 0 to 1; None if neither text has facts."""
        return self.shared_of_more / self.more if self.more else None

    @property
    def differing(self) -> float:
        """How many of the ``fewer`` facts the other text lacks; 0 if there is nothing to compare."""
        return 0 if self.shared_of_fewer is None else self.fewer - self.shared_of_fewer

    @property
    def missing(self) -> float:
        """How many of the ``more`` facts the other text lacks."""
        return self.more - self.shared_of_more


def facts_of(
    text: str, form: str, words: Iterable[str], known: Container[str], letters: LetterTables | None = None
) -> set[str]:
    """Return the facts of a text, given the text as written, its form for facts, and the words of that form.

    ``known`` are the words with an inverse document frequency; other words of two or more letters from U+2E80 on count
    as names. Schemes that compare letters pass ``letters``, which brings figures into canonical form.
    """
    facts = figures(form) if letters is None else {figure.fact for figure in canonical_figures(form, letters)}
    facts.update(_NUMBERS_IN_WORDS.findall(form))
    if len(form.encode()) < _LATIN_BYTES_A_CHARACTER_BELOW * len(form):
        facts |= _capitalised(text)
    facts.update(
        word
        for word in words
        # Cheap conditions that exclude most words come first.
        if word >= _EAST_ASIAN_FROM and len(word) >= _NAME_CHARS_MIN and word not in known and word.isalpha()
    )
    return facts


def fact_hashes(facts: Iterable[str]) -> list[int]:
    """Return the 32-bit hash of each fact."""
    codes = [crc32(fact.encode()) for fact in facts]
    # CRC-32 leaves structure in short strings; the smallest hashes must be random.
    mixed: list[int] = (mix_64(np.array(codes, dtype=np.uint64)) >> np.uint64(32)).tolist()
    return mixed


def pack_facts(texts: Sequence[Collection[str]]) -> tuple[bytes, ...]:
    """Return the facts of each text in the form that records store."""
    mixed = fact_hashes(fact for facts in texts for fact in facts)
    packed, start = [], 0
    for facts in texts:
        hashes = sorted(set(mixed[start : start + len(facts)]))
        start += len(facts)
        kept = hashes[:FACTS_KEPT]
        packed.append(pack(f">{1 + len(kept)}I", len(hashes), *kept) if hashes else b"")
    return tuple(packed)


def facts_count(packed: bytes) -> int:
    """Return the number of facts of a text, including facts that were not kept."""
    return int.from_bytes(packed[:_COUNT_BYTES])


def fact_overlap(sample: bytes, other: bytes) -> FactOverlap:
    """Return the overlap of two packed samples; their order does not matter."""
    # Hashes beyond the end of a cut sample are unknown, so samples are compared up to the lower end.
    end = min((packed[-_HASH_BYTES:] for packed in (sample, other) if _is_cut(packed)), default=_GREATEST_HASH)
    (fewer, hashes), (more, others) = sorted((facts_count(packed), _hashes(packed, end)) for packed in (sample, other))
    common = len(set(hashes).intersection(others))
    return FactOverlap(
        fewer,
        more,
        shared_of_fewer=fewer * common / len(hashes) if hashes else None,
        shared_of_more=more * common / len(others) if others else 0.0,
    )


def _is_cut(packed: bytes) -> bool:
    return facts_count(packed) > FACTS_KEPT


def _hashes(packed: bytes, end: bytes) -> list[bytes]:
    """Return the hashes of a sample up to and including ``end``."""
    hashes = (packed[place : place + _HASH_BYTES] for place in range(_COUNT_BYTES, len(packed), _HASH_BYTES))
    return [value for value in hashes if value <= end]


def _capitalised(text: str) -> set[str]:
    """Return the capitalised words of a text, except months, in lower case.

    It needs the text as written, because case folding removes capitals.
    """
    ascii_text = text
    if not text.isascii():
        plain = _FULL_WIDTH_LETTERS.sub(lambda row: row[0].translate(_PLAIN_LETTERS), text).replace("\u2019", "'")
        # This also drops invisible characters, which a spammer can insert into any name.
        ascii_text = plain.encode("ascii", "ignore").decode()
    return {word.lower() for word in _CAPITALISED.findall(ascii_text)} - MONTHS
