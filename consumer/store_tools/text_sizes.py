"""Computes the size of an article in UTF-8, in a store and in a topic. Pure functions.

Sizes depend on the language: a Chinese character takes three bytes of UTF-8, an English one takes one. Snappy halves
long texts but hardly compresses short ones. A record holds the 32 heaviest keywords, and short texts have fewer. It
also has the fields of the article and the keys of its postings.

The figures were measured on feeds of real and generated texts (``python -m benchmarks.store_sizes``). A sample of the
user's own feed replaces all of them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from consumer.fingerprint import KEYWORDS_KEPT
from storage.bodies import pack_body
from storage.records import Record, encode_record

Language = Literal["zh", "en", "mixed"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
PART_RECORD_BYTES: Final = 800
"""The additional size of a record with ``judge.parts``: anchors and a sample, for texts from 1,000 characters on."""
_ENGLISH_MAX: Final = 1.4
_MIXED_MAX: Final = 2.5
"""Bytes of a character below which articles count as English, or as mixed."""
_FIXED_BYTES: Final = 392
"""Bytes of a record without keywords, keys and the article's own fields: sketch, digests, reference, numbers."""
_VERDICT_BYTES: Final = 430
_FLAG_BYTES: Final = 700
_FIELD_BYTES: Final = 110
"""Bytes of the id, title, URL and source of an article: 80 to 140 in feeds of news, 10 to 20 in feeds of posts."""
_ENVELOPE_BYTES: Final = 210
"""The size of a message's JSON without the text: names, quotes and other fields."""
_SPREAD: Final = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)
"""Lengths of a feed's articles as multiples of the mean. Whether a text takes one page or two depends on its length."""
PAGE_BYTES: Final = 4_096
"""Bytes of a page of LMDB."""
_PAGE_HEADER_BYTES: Final = 16
_ENTRY_BYTES: Final = 10
"""The overhead of LMDB for a key and its value in a page."""
_PAGE_NUMBER_BYTES: Final = 8
_IN_PAGE_MAX: Final = 2_030
"""Larger entries have pages of their own."""
_FILLED: Final = 0.66
"""The share of a page that is filled after insertions in random order."""
_BRANCHES: Final = 1.015
"""The factor for branch pages, which lead to pages with entries."""
_REFERENCE_BYTES: Final = 32


class _Script(NamedTuple):
    """The sizes of a language: bytes and keywords per character, bytes per keyword in a record.

    ``packed`` has the compression ratio of Snappy by the length of a text in characters.
    """

    char_bytes: float
    keywords_a_char: float
    keyword_bytes: float
    packed: tuple[tuple[int, float], ...]


_SCRIPTS: Final = {
    "zh": _Script(
        2.9, 0.235, 18.5, ((100, 0.95), (300, 0.88), (500, 0.72), (1_000, 0.62), (2_000, 0.52), (4_000, 0.46))
    ),
    "en": _Script(1.01, 0.13, 16.5, ((100, 1.0), (300, 0.93), (1_000, 0.78), (3_000, 0.66), (10_000, 0.58))),
}


@dataclass(frozen=True, slots=True)
class TextSizes:
    """The mean sizes of an article.

    ``text_bytes`` is its body in UTF-8, ``packed_bytes`` the body in a store, ``page_bytes`` its size in pages of LMDB.
    ``record_bytes`` is the record without the keys of its postings. ``verdict_bytes`` is the verdict of a kept article,
    ``flag_bytes`` that of a flagged one. ``sample`` is the number of measured articles, 0 if
    the figures are assumed for a language.
    """

    chars: float
    text_bytes: float
    packed_bytes: float
    page_bytes: float
    record_bytes: float
    verdict_bytes: float
    flag_bytes: float
    message_bytes: float
    keywords: float
    sample: int = 0

    @property
    def char_bytes(self) -> float:
        """Bytes of a character in UTF-8."""
        return self.text_bytes / max(self.chars, 1)

    @property
    def language(self) -> Language:
        """The language with characters of this size."""
        return "en" if self.char_bytes < _ENGLISH_MAX else "mixed" if self.char_bytes < _MIXED_MAX else "zh"


def assumed_sizes(chars: int, language: Language) -> TextSizes:
    """Return the assumed sizes of articles of about this length; "mixed" is half Chinese and half English."""
    if language == "mixed":
        halves = [assumed_sizes(chars, each) for each in ("zh", "en")]
        return _mean(halves)
    script = _SCRIPTS[language]
    lengths = [chars * factor for factor in _SPREAD]
    packed = [length * script.char_bytes * _packed_share(script, length) for length in lengths]
    keywords = min(KEYWORDS_KEPT, chars * script.keywords_a_char)
    return TextSizes(
        chars=chars,
        text_bytes=chars * script.char_bytes,
        packed_bytes=fmean(packed),
        page_bytes=fmean(map(entry_page_bytes, packed)),
        record_bytes=_FIXED_BYTES + keywords * script.keyword_bytes + _FIELD_BYTES,
        verdict_bytes=_VERDICT_BYTES,
        flag_bytes=_FLAG_BYTES,
        message_bytes=chars * script.char_bytes + _ENVELOPE_BYTES,
        keywords=keywords,
    )


class SampledArticle(NamedTuple):
    """A stored version to measure: its record, verdict and body."""

    record: Record
    verdict: bytes
    body: str
    is_flagged: bool


def measured_sizes(articles: Iterable[SampledArticle], message_bytes: float) -> TextSizes:
    """Return the sizes of judged articles. ``message_bytes`` is the mean size of their records in the feed.

    Raises ``ValueError`` if there are no articles.
    """
    sizes = [_sizes_of(article, message_bytes) for article in articles]
    if not sizes:
        raise ValueError("no article was judged")
    flags = [size.flag_bytes for size in sizes if size.flag_bytes]
    kept = [size.verdict_bytes for size in sizes if size.verdict_bytes]
    mean = _mean(sizes)
    return replace(
        mean,
        flag_bytes=fmean(flags) if flags else _FLAG_BYTES,
        verdict_bytes=fmean(kept) if kept else _VERDICT_BYTES,
        sample=len(sizes),
    )


def entry_page_bytes(value_bytes: float, key_bytes: int = _REFERENCE_BYTES) -> float:
    """Return the size of an entry in the pages of an LMDB database whose keys arrive in random order."""
    entry = _ENTRY_BYTES + key_bytes + value_bytes
    if entry <= _IN_PAGE_MAX:
        return _shared_page_bytes(entry)
    own_pages = math.ceil((value_bytes + _PAGE_HEADER_BYTES) / PAGE_BYTES) * PAGE_BYTES
    return own_pages + _shared_page_bytes(_ENTRY_BYTES + key_bytes + _PAGE_NUMBER_BYTES)


def _shared_page_bytes(entry_bytes: float) -> float:
    fit = (PAGE_BYTES - _PAGE_HEADER_BYTES) // entry_bytes
    return PAGE_BYTES * _BRANCHES / (fit * _FILLED)


def _sizes_of(article: SampledArticle, message_bytes: float) -> TextSizes:
    record, packed = article.record, float(len(pack_body(article.body)))
    without_keys = encode_record(msgspec.structs.replace(record, keys=()))
    return TextSizes(
        chars=len(article.body),
        text_bytes=len(article.body.encode()),
        packed_bytes=packed,
        page_bytes=entry_page_bytes(packed),
        record_bytes=len(without_keys),
        verdict_bytes=0 if article.is_flagged else len(article.verdict),
        flag_bytes=len(article.verdict) if article.is_flagged else 0,
        message_bytes=message_bytes,
        keywords=len(record.keywords),
    )


def _mean(sizes: Sequence[TextSizes]) -> TextSizes:
    means: dict[str, Any] = {
        name: fmean(getattr(size, name) for size in sizes) for name in TextSizes.__slots__ if name != "sample"
    }
    return replace(sizes[0], **means)


def _packed_share(script: _Script, chars: float) -> float:
    """Return the compression ratio of Snappy, interpolated by the logarithm of the length."""
    lengths = [length for length, _ in script.packed]
    if chars <= lengths[0]:
        return script.packed[0][1]
    for (shorter, high), (longer, low) in pairwise(script.packed):
        if chars <= longer:
            return high + (low - high) * math.log(chars / shorter) / math.log(longer / shorter)
    return script.packed[-1][1]
