"""Reads labelled pairs of articles, one per line, and reports why a line cannot be read.

A line is ``["a", "b", true]`` or ``{"a": "a", "b": "b", "label": true}``. ``docs/use/evaluation.md`` has all forms of a
label.
"""

from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from consumer.model.errors import ConfigError
from consumer.text.json_faults import json_fault

_WORDS: Final = {"duplicate": 1.0, "unique": 0.0}
_PARTS: Final = ("a", "b", "label")
_FORMS: Final = 'write ["id", "id", label] or {"a": "id", "b": "id", "label": label}'


class PairsLine(NamedTuple):
    """A line of a pairs file. ``number`` counts from 1."""

    number: int
    data: bytes


class LabelCut(NamedTuple):
    """Thresholds for labels that are similarities: duplicate from ``duplicate_from``, unique below ``unique_below``."""

    duplicate_from: float = 0.8
    unique_below: float = 0.5


class LabelledPair(NamedTuple):
    """Two different ids, whether they are labelled duplicates, and the number of the first line with this pair."""

    a: str
    b: str
    duplicate: bool
    line: int


class LabelledPairs(NamedTuple):
    """The labelled pairs of a file.

    ``left_out`` counts different pairs whose labels are between the two thresholds. ``repeated`` counts lines that
    repeat a pair.
    """

    pairs: tuple[LabelledPair, ...]
    left_out: int
    repeated: int


class _LabelledLine(NamedTuple):
    a: str
    b: str
    duplicate: bool | None


def labelled_pairs(lines: Iterable[PairsLine], cut: LabelCut) -> LabelledPairs:
    """Read pairs. A pair that is repeated with the same label, in either order, counts once.

    Raises ``ConfigError`` with the line number and the reason for the first line that is not a pair, or that gives a
    pair a different label from an earlier line. Also raises it if there are no lines, or all labels are between the
    thresholds.
    """
    seen: dict[tuple[str, str], tuple[bool | None, int]] = {}
    repeated = 0
    for number, data in lines:
        try:
            a, b, duplicate = _pair(data, cut)
        except ValueError as error:
            raise ConfigError(f"line {number} of the pairs: {error}") from error
        before = seen.setdefault((min(a, b), max(a, b)), (duplicate, number))
        if before[0] != duplicate:
            raise ConfigError(f"line {number} of the pairs: {a!r} and {b!r} have another label on line {before[1]}")
        repeated += before[1] != number
    pairs = tuple(LabelledPair(a, b, label, line) for (a, b), (label, line) in seen.items() if label is not None)
    if not seen:
        raise ConfigError("the file of pairs is empty")
    if not pairs:
        raise ConfigError("no pair has a label: all similarities are between the thresholds")
    return LabelledPairs(pairs, len(seen) - len(pairs), repeated)


def _pair(data: bytes, cut: LabelCut) -> _LabelledLine:
    a, b, label = _parts(data)
    first, second = _id(a, "a"), _id(b, "b")
    if first == second:
        raise ValueError(f"both ids are {first!r}, but an article cannot be a duplicate of itself")
    similarity = _similarity(label)
    if similarity >= cut.duplicate_from:
        return _LabelledLine(first, second, duplicate=True)
    return _LabelledLine(first, second, duplicate=False if similarity < cut.unique_below else None)


def _parts(data: bytes) -> tuple[Any, Any, Any]:
    """Return both ids and the label. Ignores further members and items, so that files of other tools can be read."""
    try:
        line = msgspec.json.decode(data.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {json_fault(error)}") from error
    if isinstance(line, dict):
        missing = [name for name in _PARTS if name not in line]
        if missing:
            raise ValueError(f"the object lacks {', '.join(map(repr, missing))}; {_FORMS}")
        return line["a"], line["b"], line["label"]
    if not isinstance(line, list) or len(line) < len(_PARTS):
        raise ValueError(f"this is not a labelled pair; {_FORMS}")
    return line[0], line[1], line[2]


def _id(value: object, name: str) -> str:
    """Return an id. Accept integers too, as the decoder of feeds does. Raises ``ValueError`` for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is not an id: an id is a string that is not empty, or an integer")
    return value


def _similarity(label: object) -> float:
    """Return a label as a similarity: 1 is duplicate, 0 is unique. Raises ``ValueError`` for anything else."""
    if isinstance(label, str) and label in _WORDS:
        return _WORDS[label]
    if isinstance(label, (bool, int, float)) and 0 <= label <= 1:
        return float(label)
    raise ValueError('the label must be true, false, "duplicate", "unique" or a similarity from 0 to 1')
