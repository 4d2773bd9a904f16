"""Reads reviewed pairs, open pairs and reported copies, one per line.

The first invalid line is an error. Repairs of stories do not concern thresholds and are skipped.

The format is ``dupwatch.review/1``, which ``dupwatch reviews`` writes; ``docs/use/events.md`` describes it.
"""

from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from consumer.evaluation.labelled_pairs import PairsLine
from consumer.model.errors import ConfigError
from consumer.model.verdict import Distance, Similarity
from consumer.text.json_faults import json_fault
from consumer.text.timestamps import parse_moment, since_1970_ms

Kind = Literal["flag", "near_miss"]
KINDS: Final[tuple[Kind, ...]] = ("flag", "near_miss")
SCHEMA: Final = "dupwatch.review/1"
ROUNDING_TOLERANCE: Final = 1e-9
"""The tolerance for comparing similarities with thresholds."""


class ReviewedPair(NamedTuple):
    """A flag or a near miss.

    ``right`` says whether the two articles are copies of each other; None if nobody has decided. The pair represents
    ``sampled_in`` pairs like it. ``source`` is the source of the later article, ``original_source`` the source of the
    earlier article, and ``at_ms`` the time of the decision.

    One object may stand for ``pairs`` equal pairs: the first arrived at ``arrived_ms``, and the last at ``last_ms``.
    """

    kind: Kind
    similarity: float
    right: bool | None
    source: str = ""
    original_source: str = ""
    sampled_in: float = 1.0
    arrived_ms: int | None = None
    at_ms: int | None = None
    pairs: int = 1
    last_ms: int | None = None


class ReportedCopies(msgspec.Struct, frozen=True):
    """Copies that people reported as missed: the similarity of each copy, or None if it was not estimated.

    They are not a random sample, because people report the copies that they come across. So they are only counted.
    """

    similarities: tuple[float | None, ...] = ()

    @property
    def measured(self) -> int:
        """The number of copies with a similarity."""
        return sum(similarity is not None for similarity in self.similarities)

    def reached(self, threshold: float) -> int:
        """Return the number of copies with at least this similarity."""
        return sum(
            similarity is not None and similarity >= threshold - ROUNDING_TOLERANCE for similarity in self.similarities
        )


class Reviews(NamedTuple):
    """The pairs of a file, and the copies that people reported as missed, which are not among the pairs.

    ``without_similarity`` counts left-out pairs without a similarity, which plain SimHash flagged.
    """

    pairs: tuple[ReviewedPair, ...]
    without_similarity: int
    reported: ReportedCopies = ReportedCopies()


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["dupwatch.review/1"]
    kind: Kind | Literal["report", "split", "merge"]
    similarity: Similarity | None
    decision: Literal["right", "wrong"] | None
    distance: Distance | None = None
    source: str | None = None
    original_source: str | None = None
    sampled_in: Annotated[float, msgspec.Meta(ge=1.0)] = 1.0
    arrived_at: str | None = None
    at: str | None = None


_DECODER: Final = msgspec.json.Decoder(_Line)


def reviewed_pairs(lines: Iterable[PairsLine]) -> Reviews:
    """Read reviewed pairs. Unknown members are ignored.

    Raises ``ConfigError`` with the line number and the reason for the first invalid line. Also raises it if no pair
    with a similarity has a decision.
    """
    pairs: list[ReviewedPair] = []
    reported: list[float | None] = []
    without = 0
    for number, data in lines:
        try:
            line = _line(data)
            pair = _pair(line)
        except ValueError as error:
            raise ConfigError(f"line {number} of the reviews: {error}") from error
        if line.kind in {"split", "merge"}:
            continue
        if line.kind == "report":
            reported += [line.similarity] if line.decision == "right" else []
        elif pair is None:
            without += 1
        else:
            pairs.append(pair)
    if not any(pair.right is not None for pair in pairs):
        raise ConfigError("the reviews decide nothing: no flag or near miss has a decision and a similarity")
    return Reviews(tuple(pairs), without, ReportedCopies(tuple(reported)))


def _line(data: bytes) -> _Line:
    try:
        return _DECODER.decode(data.removeprefix(BOM_UTF8))
    except msgspec.ValidationError as error:
        raise ValueError(f"it is not a valid {SCHEMA}: {str(error)[:1].lower()}{str(error)[1:]}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {json_fault(error)}") from error


def _pair(line: _Line) -> ReviewedPair | None:
    """Return a flag or a near miss; None without a similarity, and for a report or a repair."""
    arrived_ms, at_ms = _time(line.arrived_at, "arrived_at"), _time(line.at, "at")
    kind = next((each for each in KINDS if each == line.kind), None)
    if line.similarity is None or kind is None:
        return None
    return ReviewedPair(
        kind=kind,
        similarity=line.similarity,
        right=None if line.decision is None else line.decision == "right",
        source=line.source or "",
        original_source=line.original_source or "",
        sampled_in=line.sampled_in,
        arrived_ms=arrived_ms,
        at_ms=at_ms,
    )


def _time(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    try:
        return since_1970_ms(parse_moment(text))
    except ValueError:
        raise ValueError(f"{name} is not a time such as 2026-01-31T08:15:30.000Z") from None
