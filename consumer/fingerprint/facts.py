"""Extracts the facts of a text, which tell two stories in the same words apart.

Facts are numbers, dates, codes and names. A record keeps a sample of their hashes that is chosen by the hashes alone
(bottom-k: Cohen and Kaplan, "Summarizing Data Using Bottom-k Sketches", PODC 2007), so that any two texts choose alike
and the overlap of their facts can be estimated from the samples. Up to ``FACTS_KEPT`` facts all are kept.

    bytes 0-3          how many distinct facts the text has, big-endian
    then 4 bytes each  the smallest hashes, ascending, at most ``FACTS_KEPT``

A text without facts has no bytes at all.
"""

import re
from collections.abc import Collection, Container, Iterable, Sequence
from string import ascii_lowercase
from struct import pack
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from consumer.fingerprint.hashing import mix_64
from consumer.fingerprint.shingles import CJK_FROM

FACTS_KEPT: Final = 64
FACTS_DESCRIBED: Final = (
    "dates, numbers with their separators and without sign or unit, codes of letters and digits, Chinese numerals, "
    "of the normalised text; capitalised words within a sentence or beside another, in mostly Latin text; words of two "
    "and more letters from U+2E80 on that have no inverse document frequency"
)
_HASH_BYTES: Final = 4
_COUNT_BYTES: Final = 4
_GREATEST_HASH: Final = b"\xff" * _HASH_BYTES
_FULL_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS: Final = frozenset({*_FULL_MONTHS, *(month[:3] for month in _FULL_MONTHS), "sept"})
_NUMERALS: Final = "〇零一二两三四五六七八九十百千万亿"
# All patterns begin with a set of characters, which `re` finds fastest, and none can backtrack over the same characters
# again and again: what must precede a match is checked after its first character.
_FIGURES: Final = re.compile(
    r"[0-9](?:(?<![0-9].)[0-9]{0,3} ?年(?: ?[0-9]{1,2} ?月(?: ?[0-9]{1,2} ?[日号])?)?"
    r"|(?<![0-9].)[0-9]? ?月 ?[0-9]{1,2} ?[日号]"
    r"|[0-9]*+(?:[.,:/-][0-9]++)*+)"
)
_NUMBERS_IN_WORDS: Final = re.compile(f"[{_NUMERALS}](?:[{_NUMERALS}]++|(?<=第.))")
_THOUSANDS: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_LETTERS_AND_DIGITS: Final = re.compile(r"[a-z0-9]*+")
_MONTH_BEHIND: Final = re.compile(r"(?:st|nd|rd|th)? ([a-z]{3,9})(?![a-z])")
_YEAR_BEHIND: Final = re.compile(r"(?:st|nd|rd|th)?,? ([0-9]{4})(?![0-9])")
_CAPITALISED: Final = re.compile(r"[A-Z](?:(?<=[\w,;(] .)[\w-]++|(?<![\w-].)[\w-]++(?= [A-Z]))")
_FULL_WIDTH_LETTERS: Final = re.compile("[\uff21-\uff3a\uff41-\uff5a]+")
_PLAIN_LETTERS: Final = {code: code - 0xFEE0 for code in range(0xFF21, 0xFF5B)}
_EAST_ASIAN_FROM: Final = chr(CJK_FROM)
_NAME_CHARS_MIN: Final = 2
_MONTH_CHARS_MAX: Final = 9
_DAY_DIGITS_MAX: Final = 2
# How many letters before a digit belong to a code, the last ones.
_CODE_LETTERS_MAX: Final = 8
# Latin text has little more than 1 byte per character in UTF-8, Chinese and Japanese text nearly 3.
_LATIN_BYTES_A_CHARACTER_BELOW: Final = 1.25


class FactOverlap(NamedTuple):
    """The overlap of two texts' facts: ``fewer`` and ``more`` are their counts, the others how many of these both have.

    Exact up to ``FACTS_KEPT`` facts, beyond that estimates whose standard error is at most 0.07 of their count if both
    texts have about as many. They are made apart, since the two texts need not have as many hashes to compare.
    ``shared_of_fewer`` is None if the text with fewer facts has none to compare.
    """

    fewer: int
    more: int
    shared_of_fewer: float | None
    shared_of_more: float

    @property
    def share_of_fewer(self) -> float | None:
        """The shared facts as a share of ``fewer``, from 0 to 1; None where there is nothing to compare."""
        return None if self.shared_of_fewer is None else self.shared_of_fewer / self.fewer

    @property
    def share_of_more(self) -> float | None:
        """The shared facts as a share of ``more``, from 0 to 1; None where neither text has facts."""
        return self.shared_of_more / self.more if self.more else None

    @property
    def differing(self) -> float:
        """How many of the ``fewer`` facts the other text does not have, as far as they can be compared."""
        return 0 if self.shared_of_fewer is None else self.fewer - self.shared_of_fewer

    @property
    def missing(self) -> float:
        """How many of the ``more`` facts the other text does not have."""
        return self.more - self.shared_of_more


def facts_of(text: str, normalised: str, words: Iterable[str], known: Container[str]) -> set[str]:
    """Return the facts of a text, given the text, its normalised form, and its words.

    ``known`` are the words of the dictionary. Other words from U+2E80 on, of two or more letters, count as names.
    """
    facts = _figures(normalised)
    facts.update(_NUMBERS_IN_WORDS.findall(normalised))
    if len(normalised.encode()) < _LATIN_BYTES_A_CHARACTER_BELOW * len(normalised):
        facts |= _capitalised(text)
    facts.update(
        word
        for word in words
        # The cheapest conditions that exclude most words come first.
        if word >= _EAST_ASIAN_FROM and len(word) >= _NAME_CHARS_MIN and word not in known and word.isalpha()
    )
    return facts


def pack_facts(texts: Sequence[Collection[str]]) -> tuple[bytes, ...]:
    """Pack the facts of each text into the form that a record keeps."""
    codes = [crc32(fact.encode()) for facts in texts for fact in facts]
    # CRC-32 leaves structure in short strings; the smallest hashes must be random.
    mixed = (mix_64(np.array(codes, dtype=np.uint64)) >> np.uint64(32)).tolist()
    packed, start = [], 0
    for facts in texts:
        hashes = sorted(set(mixed[start : start + len(facts)]))
        start += len(facts)
        kept = hashes[:FACTS_KEPT]
        packed.append(pack(f">{1 + len(kept)}I", len(hashes), *kept) if hashes else b"")
    return tuple(packed)


def facts_count(packed: bytes) -> int:
    """Return how many facts a text has, including those not kept."""
    return int.from_bytes(packed[:_COUNT_BYTES])


def fact_overlap(sample: bytes, other: bytes) -> FactOverlap:
    """Return the overlap of two packed samples, which is symmetric."""
    # Hashes beyond the end of a truncated sample are unknown, so both are compared up to the end of the shorter one.
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


def _figures(text: str) -> set[str]:
    """Return dates, numbers and codes. One pass finds digits; what belongs to them is read from there."""
    found: set[str] = set()
    end = 0
    for match in _FIGURES.finditer(text):
        start, stop = match.span()
        if start < end:
            continue
        figure, before = match[0], text[start - 1 : start]
        if "a" <= before <= "z":
            letters = text[max(0, start - _CODE_LETTERS_MAX) : start]
            letters = letters[len(letters.rstrip(ascii_lowercase)) :]
            tail = _LETTERS_AND_DIGITS.match(text, stop)
            figure, end = (f"{letters}{figure}{tail[0]}", tail.end()) if tail else (figure, stop)
        elif stop - start <= _DAY_DIGITS_MAX:
            figure, end = _date(text, start, stop)
        elif "," in figure and _THOUSANDS.fullmatch(figure):
            # A list of numbers keeps its commas.
            figure = figure.replace(",", "")
        found.add(figure.replace(" ", ""))
    return found


def _date(text: str, start: int, stop: int) -> tuple[str, int]:
    """Return a number of one or two digits with the month and year next to it, and where the date ends."""
    number, month, end = text[start:stop], "", stop
    behind = _MONTH_BEHIND.match(text, stop)
    if behind and behind[1] in _MONTHS:
        month, end = behind[1], behind.end()
    elif text[start - 1 : start] == " ":
        word = text[max(0, start - 1 - _MONTH_CHARS_MAX) : start - 1].rpartition(" ")[2]
        month = word if word in _MONTHS else ""
    if not month:
        return number, stop
    year = _YEAR_BEHIND.match(text, end)
    return (f"{number}{month}{year[1]}", year.end()) if year else (f"{number}{month}", end)


def _capitalised(text: str) -> set[str]:
    """Return the capitalised words, from the text as written, since case folding removes capitals."""
    visible = text
    if not text.isascii():
        plain = _FULL_WIDTH_LETTERS.sub(lambda row: row[0].translate(_PLAIN_LETTERS), text).replace("\u2019", "'")
        # Invisible characters are dropped with the rest: a spammer can insert them into any name.
        visible = plain.encode("ascii", "ignore").decode()
    return {word.lower() for word in _CAPITALISED.findall(visible)} - _MONTHS
