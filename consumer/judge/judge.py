"""The interface of the judge, as the pipeline uses it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from consumer.judge.decision import Neighbour
from consumer.judge.tally import Cost
from consumer.judge.versions import ArrivalTime
from consumer.model.verdict import BankMention, EndedBefore, Part, SeenBefore, VerdictEvent
from storage.records import Tombstone, Version


class QueryResult(NamedTuple):
    """The result of a query for an article. ``matches`` are the kept versions that it would repeat, best first.

    ``truncated`` says that the search hit a limit, ``pending`` that a near version has no verdict yet, ``seen_before``
    that the text was seen before the window. ``parts`` are the passages that the article shares with others, ``banks``
    the known texts that it repeats. ``ended_before`` is a version that it would repeat if that version had not ended; a
    verdict names it only if there are no matches.
    """

    matches: list[Neighbour]
    truncated: bool
    pending: bool
    seen_before: SeenBefore | None = None
    parts: tuple[Part, ...] = ()
    ended_before: EndedBefore | None = None
    banks: tuple[BankMention, ...] = ()


class Judge(Protocol):
    """A judge, which compares batches of versions and tombstones with a store.

    It is for one thread, except that several threads may call ``Detector.judge`` at the same time if the store allows
    it. Methods that use the store raise its errors. After an error or a crash, the call may be repeated.
    """

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Judge a batch, and return the stored verdict of each item. No two items may have the same id.

        Called once the fingerprints of the batch are computed.
        """
        ...

    def retraction(self, article_id: str, arrived_at: ArrivalTime, origin: bytes) -> Tombstone:
        """Return the tombstone of an article that is being retracted; for ``origin`` see ``versions.tombstone``.

        Called for an article without a body. ``judge`` stores the tombstone.
        """
        ...

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Remove at most ``versions_max`` versions and tombstones; return the number removed.

        Only those that arrived and were written before ``before_ms`` are removed. Called after each committed batch.
        """
        ...

    def forget_texts(self, newest_ms: int, texts_max: int) -> int:
        """Check up to ``texts_max`` texts remembered beyond the window, and forget those that expired by ``newest_ms``.

        Returns the number of forgotten texts. Called after ``sweep``.
        """
        ...

    def newest_ms(self, before_ms: int) -> int | None:
        """Return the latest time, before ``before_ms``, at which an article arrived or was written.

        Called when a run begins. Returns None without such an article, or if the store expires articles itself.
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
