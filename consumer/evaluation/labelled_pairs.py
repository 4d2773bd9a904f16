"""Pairs of articles that somebody has labelled, one a line, and what is wrong with a line that is none.

``["a", "b", true]`` or ``{"a": "a", "b": "b", "label": true}``; ``docs/evaluation.md`` has all forms of a label.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from consumer.model.errors import ConfigError

_BOM: Final = b"\xef\xbb\xbf"
_WORDS: Final = {"duplicate": 1.0, "unique": 0.0}
_PARTS: Final = ("a", "b", "label")
_FORMS: Final = 'write ["id", "id", label] or {"a": "id", "b": "id", "label": label}'


class Line(NamedTuple):
    """A line of a pairs file, ``number`` counting from 1."""

    number: int
    data: bytes


class LabelCut(NamedTuple):
    """What a similarity says as a label: duplicate from ``duplicate_from`` on, unique below ``unique_below``."""

    duplicate_from: float = 0.8
    unique_below: float = 0.5


class LabelledPair(NamedTuple):
    """Two different ids, in no order, and whether whoever labelled them calls them duplicates; ``line`` says where."""

    a: str
    b: str
    duplicate: bool
    line: int


class LabelledPairs(NamedTuple):
    """A file's pairs; ``left_out`` counts similarities that say neither, ``repeated`` pairs that stood there before."""

    pairs: tuple[LabelledPair, ...]
    left_out: int
    repeated: int


class _Said(NamedTuple):
    a: str
    b: str
    duplicate: bool | None


def labelled_pairs(lines: Iterable[Line], cut: LabelCut) -> LabelledPairs:
    """Read pairs; a pair that comes again with the same label counts once, in whatever order it names its ids.

    Raises ``ConfigError`` with the line's number and the reason at the first line that is no pair, at a pair that was
    labelled otherwise before, and where no labelled pair is left.
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
    if not pairs:
        raise ConfigError("the pairs hold no label: not one line says duplicate or unique")
    return LabelledPairs(pairs, len(seen) - len(pairs), repeated)


def _pair(data: bytes, cut: LabelCut) -> _Said:
    a, b, label = _parts(data)
    one, other = _id(a, "a"), _id(b, "b")
    if one == other:
        raise ValueError(f"both ids are {one!r}; an article is no duplicate of itself")
    similarity = _similarity(label)
    if similarity >= cut.duplicate_from:
        return _Said(one, other, duplicate=True)
    return _Said(one, other, duplicate=False if similarity < cut.unique_below else None)


def _parts(data: bytes) -> tuple[Any, Any, Any]:
    """Both ids and the label. What stands beside them is passed over, so that other tools' lists can be read."""
    try:
        said = msgspec.json.decode(data.removeprefix(_BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if isinstance(said, dict):
        missing = [name for name in _PARTS if name not in said]
        if missing:
            raise ValueError(f"the object has no {' and no '.join(missing)}; {_FORMS}")
        return said["a"], said["b"], said["label"]
    if not isinstance(said, list) or len(said) < len(_PARTS):
        raise ValueError(f"it is not a labelled pair; {_FORMS}")
    return said[0], said[1], said[2]


def _id(value: object, name: str) -> str:
    """An id as the feed's decoder has it, which takes integers too."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is no id: it has to be a string that is not empty, or an integer")
    return value


def _similarity(label: object) -> float:
    """A label as a similarity: 1 is duplicate, 0 is unique."""
    if isinstance(label, str) and label in _WORDS:
        return _WORDS[label]
    if isinstance(label, (bool, int, float)) and 0 <= label <= 1:
        return float(label)
    raise ValueError('the label is none of true, false, "duplicate", "unique" and a similarity from 0 to 1')
