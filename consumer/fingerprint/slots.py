"""Finds the slots of a text, which tell apart texts that fill the same frame differently.

A *slot* is a place in a frame of letters that is filled with a *value*: a figure, a numeral, a date or time of day, a
language, or the name of a place, person or institution. Values with no letter or digit between them share one slot. A
slot is identified by its *surroundings*: the letters next to it, with the same mark in place of every other value. Two
texts conflict where the same surroundings hold different values.

A record keeps the slots whose surroundings occur once in the text. Of more than ``SLOTS_KEPT`` it keeps those with the
smallest hashes of surroundings, so that similar texts keep the same slots. A slot is two big-endian numbers:

    bytes 0-3  hash of the surroundings, by which slots are sorted
    bytes 4-7  hash of the value
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from struct import iter_unpack, pack
from typing import Final, NamedTuple

from consumer.fingerprint.characters.letter_tables import LetterTables
from consumer.fingerprint.facts import NUMERALS, fact_hashes
from consumer.fingerprint.figures import FIGURES_DESCRIBED, Figure, canonical_figures

SLOTS_KEPT: Final = 64
SURROUNDING_LETTERS: Final = 3
"""The number of letters before a value, and after it, that form its surroundings."""
NAME_TAGS: Final = ("ns", "nr", "nt")
"""The beginnings of the tags of places, persons and institutions in jieba's dictionary."""
_COUNTED: Final = "年月日号次届期集季章卷辑版"
_TIMES_OF_DAY: Final = "上午 下午 凌晨 清晨 早晨 早上 中午 傍晚 晚上 晚间"
_LANGUAGES: Final = (
    "中 英 法 德 日 俄 韩 意 葡 西 阿 藏 蒙 维 泰 蒙古 朝鲜 印地 马来 印尼 波斯 希腊 荷兰 瑞典 波兰 捷克 豪萨 "
    "缅甸 越南 老挝 西班牙 葡萄牙 阿拉伯 意大利 维吾尔 哈萨克 土耳其 匈牙利 乌克兰 希伯来 乌尔都 柬埔寨 罗马尼亚 "
    "斯瓦希里 印度尼西亚"
)
SLOTS_DESCRIBED: Final = (
    f"dates, {FIGURES_DESCRIBED}; codes of letters and digits; two and more Chinese numerals, or one behind 第 or "
    f"before one of {_COUNTED}; {_TIMES_OF_DAY}; 文 and 语 behind {_LANGUAGES}; words of jieba's dictionary of two and "
    f"more characters with a tag that begins with {', '.join(NAME_TAGS)}; of the text that is split into words, the "
    "longer one of two that begin together, else the first of two that overlap; those with no letter or digit between "
    f"them are one; {SURROUNDING_LETTERS} letters or digits on each side, other values as U+0000"
)
_NUMERAL: Final = re.compile(f"[{NUMERALS}](?:[{NUMERALS}]++|(?<=第.)|(?=[{_COUNTED}]))")
_TIME_OR_LANGUAGE: Final = re.compile(
    "|".join(
        sorted(
            [*_TIMES_OF_DAY.split(), *(f"{name}{kind}" for name in _LANGUAGES.split() for kind in "文语")],
            key=len,
            reverse=True,
        )
    )
)
_NAME_CHARS_MIN: Final = 2
_VALUE: Final = "\0"
_NO_LETTERS: Final = re.compile(r"[\W_]+")
_PACKED_SLOT: Final = ">II"


class Slot(NamedTuple):
    """A value, and the letters before and after it, in which each other value is U+0000."""

    before: str
    value: str
    after: str


def slots_of(form: str, words: Sequence[str], names: Container[str], letters: LetterTables) -> list[Slot]:
    """Return the slots of a text in order, given its equality form, all words of that form, and known names."""
    frame: list[str] = []
    places: list[int] = []
    filled: list[list[str]] = []
    end = length = 0
    for value in _without_overlaps(_values(form, words, names, letters)):
        between = _NO_LETTERS.sub("", form[end : value.start])
        end = value.end
        if places and not between:
            filled[-1].append(value.fact)
            continue
        length += len(between)
        frame += (between, _VALUE)
        places.append(length)
        filled.append([value.fact])
        length += len(_VALUE)
    frame.append(_NO_LETTERS.sub("", form[end:]))
    stream = "".join(frame)
    return [
        Slot(
            stream[max(0, place - SURROUNDING_LETTERS) : place],
            " ".join(values),
            stream[place + 1 : place + 1 + SURROUNDING_LETTERS],
        )
        for place, values in zip(places, filled, strict=True)
    ]


def values_by_slot(slots: Sequence[Slot]) -> dict[str, str]:
    """Return the value of each slot that occurs once, by a readable name of the slot: ``…议将于 [ ] 在*举…``."""
    counts = Counter((slot.before, slot.after) for slot in slots)
    return {
        f"…{slot.before.replace(_VALUE, '*')} [ ] {slot.after.replace(_VALUE, '*')}…": slot.value
        for slot in slots
        if counts[slot.before, slot.after] == 1
    }


def pack_slots(texts: Sequence[Sequence[Slot]]) -> tuple[bytes, ...]:
    """Return the slots of each text that its record keeps, packed."""
    slots = [slot for text in texts for slot in text]
    surroundings = fact_hashes([f"{slot.before}|{slot.after}" for slot in slots])
    values = fact_hashes([slot.value for slot in slots])
    packed, start = [], 0
    for text in texts:
        stop = start + len(text)
        counts = Counter(surroundings[start:stop])
        once = sorted(
            pair for pair in zip(surroundings[start:stop], values[start:stop], strict=True) if counts[pair[0]] == 1
        )
        packed.append(b"".join(pack(_PACKED_SLOT, *pair) for pair in once[:SLOTS_KEPT]))
        start = stop
    return tuple(packed)


def slot_conflicts(packed: bytes, other: bytes) -> int:
    """Return the number of common slots in which two texts have different values; symmetric."""
    values, others = dict(iter_unpack(_PACKED_SLOT, packed)), dict(iter_unpack(_PACKED_SLOT, other))
    return sum(values[surroundings] != others[surroundings] for surroundings in values.keys() & others.keys())


def _values(form: str, words: Sequence[str], names: Container[str], letters: LetterTables) -> Iterator[Figure]:
    yield from canonical_figures(form, letters)
    for pattern in (_NUMERAL, _TIME_OR_LANGUAGE):
        yield from (Figure(*match.span(), match[0]) for match in pattern.finditer(form))
    end = 0
    for word in words:
        start, end = end, end + len(word)
        if len(word) >= _NAME_CHARS_MIN and word in names:
            yield Figure(start, end, word)


def _without_overlaps(values: Iterator[Figure]) -> Iterator[Figure]:
    """Yield values in order: the longest of values that begin together, and the first of values that overlap."""
    end = 0
    for value in sorted(values, key=lambda value: (value.start, -value.end)):
        if value.start >= end:
            yield value
            end = value.end
