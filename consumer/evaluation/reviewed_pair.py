"""A pair that a person has looked at, or might have."""

from typing import Final, Literal, NamedTuple

Kind = Literal["flag", "near_miss"]
KINDS: Final[tuple[Kind, ...]] = ("flag", "near_miss")


class ReviewedPair(NamedTuple):
    """A flag or a near miss.

    ``right`` says whether the two are copies of each other, None where nobody has decided that. The pair stands for
    ``sampled_in`` pairs like it. ``source`` is that of the later article, ``original_source`` that of the other.

    Where many pairs are alike in all of that, one of these may stand for ``pairs`` of them, of which the first came at
    ``arrived_ms`` and the last at ``last_ms``.
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
