"""The port of the judge, as the pipeline uses it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from consumer.judge.decision import Neighbour
from consumer.judge.tally import Cost
from consumer.judge.versions import ArrivalTime
from consumer.model.verdict import BankMention, EndedBefore, Part, SeenBefore, VerdictEvent
from storage.records import Tombstone, Version


class QueryResult(NamedTuple):
    """The kept versions that an article would be flagged for, best first.

    ``truncated`` says that the search hit a limit, ``pending`` that a near version has no verdict yet, ``seen_before``
    that the text was seen before the window. ``parts`` are the passages it shares with other articles, ``banks`` the
    known texts it repeats. ``ended_before`` is a version it would repeat had that not ended; a verdict names it only
    for an article without matches.
    """

    matches: list[Neighbour]
    truncated: bool
    pending: bool
    seen_before: SeenBefore | None = None
    parts: tuple[Part, ...] = ()
    ended_before: EndedBefore | None = None
    banks: tuple[BankMention, ...] = ()


class Judge(Protocol):
    """A judge of batches of versions and tombstones against a store. One per process, for one thread.

    Several threads may call ``judge`` of a ``Detector`` at the same time if the store allows it. ``judge`` and
    ``sweep`` raise the store's errors. After an error or a crash, the call may be repeated.
    """

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Return the stored verdict of each item of a batch; no two items have the same id.

        Called once the fingerprints of the batch are computed.
        """
        ...

    def retraction(self, article_id: str, arrived_at: ArrivalTime, origin: bytes) -> Tombstone:
        """Return the tombstone of an article that is retracted now; ``origin`` is as for ``versions.tombstone``.

        Called for an article without a body. ``judge`` stores the tombstone.
        """
        ...

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Remove at most ``versions_max`` versions that arrived before ``before_ms``; return the number removed.

        Called after each committed batch.
        """
        ...

    def forget(self, newest_ms: int, texts_max: int) -> int:
        """Check up to ``texts_max`` texts remembered beyond the window, and forget those whose time is up.

        ``newest_ms`` is the newest arrival of the batch. Returns the number forgotten. Called after ``sweep``.
        """
        ...

    def newest_ms(self, before_ms: int) -> int | None:
        """Return the time of the latest arrival before ``before_ms``, or None if there is none.

        Called when a run begins. A store that expires articles itself returns None.
        """
        ...

    def cost(self) -> Cost:
        """Return the cost of judging so far. Called before and after a batch; the difference is its cost."""
        ...

    @property
    def plan_name(self) -> str:
        """The name of the block plan in use, for advice on a larger one."""
        ...

    @property
    def larger_plan(self) -> str | None:
        """The plan to move to when the window outgrows this one, or None if no larger plan finds the same pairs."""
        ...
