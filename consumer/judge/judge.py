"""The port of the judge: what a pipeline needs of it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from consumer.judge.decision import Neighbour
from consumer.judge.tally import Cost
from consumer.judge.versions import ArrivalTime
from consumer.model.verdict import BankMention, EndedBefore, Part, SeenBefore, VerdictEvent
from storage.records import Tombstone, Version


class QueryResult(NamedTuple):
    """The kept versions that an article would be flagged for, best first.

    ``truncated`` says that the search was cut short, ``pending`` that a near version is not decided yet,
    ``seen_before`` that its text came earlier than the window. ``parts`` are what it shares with others,
    ``ended_before`` is what it repeats that has ended; verdicts say that only of articles without matches. ``banks``
    are the known texts that it repeats.
    """

    matches: list[Neighbour]
    truncated: bool
    pending: bool
    seen_before: SeenBefore | None = None
    parts: tuple[Part, ...] = ()
    ended_before: EndedBefore | None = None
    banks: tuple[BankMention, ...] = ()


class Judge(Protocol):
    """Judges batches of versions and tombstones against a store. One per process, for one thread.

    Only ``judge`` of a ``Detector`` may be called by several threads at a time, where the store allows that. ``judge``
    and ``sweep`` raise the store's errors. After one, or after a crash anywhere, the call may be repeated.
    """

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Return the verdict of each in the batch, as it is stored; the ids of a batch differ.

        Called for each batch, once its fingerprints are computed.
        """
        ...

    def retraction(self, article_id: str, arrived_at: ArrivalTime, origin: bytes) -> Tombstone:
        """Return the tombstone of an article that is retracted now; ``origin`` is as for ``versions.tombstone``.

        Called for an article without a body; ``judge`` stores the tombstone.
        """
        ...

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Remove at most ``versions_max`` versions that arrived before ``before_ms``; return how many were removed.

        Called after each batch that was committed.
        """
        ...

    def forget(self, newest_ms: int, texts_max: int) -> int:
        """Look at up to ``texts_max`` texts remembered beyond the window, and forget those not seen for long enough.

        ``newest_ms`` is the newest arrival of the batch. Called after ``sweep``; returns how many were forgotten.
        """
        ...

    def newest_ms(self, before_ms: int) -> int | None:
        """Return when the latest article that came before ``before_ms`` came; None if there is none.

        Called when a run begins. A store that expires articles by itself returns None.
        """
        ...

    def cost(self) -> Cost:
        """Return what judging has cost so far. Called before and after a batch: the difference is the batch's cost."""
        ...

    @property
    def plan_name(self) -> str:
        """The block plan that articles are looked up by, for advice on a larger one."""
        ...

    @property
    def larger_plan(self) -> str | None:
        """The plan to move to when the window outgrows this one, None if there is none that finds the same pairs."""
        ...
