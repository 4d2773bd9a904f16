"""Questions to HBase that go on until they are answered or their time is over: chunks, threads, retries."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from typing import Final, TypeVar

from storage.errors import StoreError, StoreRefused, StoreUnavailable
from storage.hbase.connection import Change, Columns, GatewayConnection, Selection, Swap
from storage.hbase.deadline import Deadline
from storage.hbase.failures import Denied, Lost, permanent_error
from storage.hbase.options import HbaseOptions, Place
from storage.hbase.pool import Pool
from storage.hbase.tables import OutOfUse, out_of_use
from storage.hbase.waits import Tell, Waits
from storage.watched import StoreConnected, StoreRepeated, StoreReport
from storage.wrapped import Operation

_T = TypeVar("_T")
_Answer = TypeVar("_Answer")

CHANGES_AT_ONCE: Final = 2_000
CHANGE_BYTES_AT_ONCE: Final = 4 << 20
"""How much is changed with one question; a gateway reads 100 MB at most, and holds what it reads in memory."""
SWAPS_APART_MIN: Final = 16
"""Fewer compare-and-sets than this are not worth a connection of their own."""
ROWS_APART_MIN: Final = 16
"""Nor fewer rows than this."""
_PAUSE_S: Final = 0.025
_PAUSE_MAX_S: Final = 2.0
_PAUSE_DOUBLINGS_MAX: Final = 10
_EXAMINED_S: Final = 2.0
_EXAMINED_SHARE: Final = 0.25
"""How long is asked why a call came to nothing, and what share of the call's own time at most."""


class Gateways:
    """All ways to one HBase: the pool of connections, and the threads that use several at once."""

    def __init__(
        self, place: Place, options: HbaseOptions, report: StoreReport | None = None, tell_wait: Tell | None = None
    ) -> None:
        self.place = place
        self.options = options
        self.report = report
        self.waits = Waits(place, tell_wait)
        self.waits.watch()
        told = None if report is None else lambda change: report(StoreConnected(change))
        self.pool = Pool(place.addresses, options, told=told)
        self._threads = ThreadPoolExecutor(options.connections_max, thread_name_prefix="hbase")

    def calls(self, operation: Operation | None = None) -> "Calls":
        """What one call of the store asks, all of it within one deadline that begins now.

        Repeats of an ``operation`` are reported; without one they are not.
        """
        return Calls(self, Deadline.after(self.options.deadline_s), operation)

    def spread(self, works: Sequence[Callable[[], _Answer]]) -> list[_Answer]:
        """Do all of it, several pieces at a time; raises what the first piece that failed raised."""
        if len(works) == 1:
            return [works[0]()]
        futures: list[Future[_Answer]] = [self._threads.submit(work) for work in works]
        # None is left running behind a caller that has been told of an error.
        wait(futures)
        return [future.result() for future in futures]

    def close(self) -> None:
        """End the threads and close the connections."""
        self.waits.close()
        self._threads.shutdown(cancel_futures=True)
        self.pool.close()


@dataclass(frozen=True, slots=True)
class Calls:
    """The questions of one call of the store.

    Every method raises the store's error where HBase says what no waiting would change. Where the deadline passes first
    it raises ``StoreUnavailable``, or ``StoreRefused`` if HBase then says that a table of the store is not there.
    """

    gateways: Gateways
    deadline: Deadline
    operation: Operation | None = None
    _pauses: "count[int]" = field(default_factory=count)
    _reasons: list[Exception] = field(default_factory=list)

    def rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], at_once: int, bytes_max: int | None = None
    ) -> dict[bytes, Columns]:
        """What these rows hold of these columns or families, ``at_once`` of them at most asked for with one question.

        Few are spread over the connections too: gateways and servers work on one part while another is read here.
        Raises ``AnswerTooBig`` where one answer has more than ``bytes_max`` bytes.
        """
        each = max(-(-len(rows) // self.gateways.options.connections_max), ROWS_APART_MIN)
        works = [partial(self._rows, table, some, columns, bytes_max) for some in pieces(rows, min(each, at_once))]
        return {row: found for part in self.gateways.spread(works) for row, found in part.items()}

    def change(self, table: bytes, changes: Iterable[Change], until_ms: int | None = None) -> None:
        """Put and delete cells, in any order; done again after an error, which changes nothing.

        With ``until_ms`` all are deletes, and take only what the server had written by that time of its clock.
        """
        self.gateways.spread([partial(self._change, table, some, until_ms) for some in _affordable(changes)])

    def swap(self, table: bytes, swaps: Sequence[Swap]) -> list[bool | None]:
        """Compare and set each once; None where it is not known whether HBase did it."""
        options = self.gateways.options
        each = -(-len(swaps) // options.connections_max)
        at_once = min(max(each, SWAPS_APART_MIN), options.swaps_under_way_max)
        works = [partial(self._swap, table, some) for some in pieces(swaps, at_once)]
        return [outcome for part in self.gateways.spread(works) for outcome in part]

    def scan(self, selection: Selection, work: Callable[[Iterator[tuple[bytes, Columns]]], _Answer]) -> _Answer:
        """Let ``work`` walk over the rows of a selection; it is run again from the start after an error."""

        def walk(connection: GatewayConnection) -> _Answer:
            with closing(connection.scan(selection)) as found:
                return work(self.gateways.waits.pieces(found))

        return self.ask(walk)

    def ask(self, work: Callable[[GatewayConnection], _Answer]) -> _Answer:
        """Do this on a connection, and again on another one until it is done; doing it twice must be harmless."""
        with self.gateways.waits.question():
            while True:
                try:
                    with self.gateways.pool.connection(self.deadline) as connection:
                        return work(connection)
                except Lost as lost:
                    self.pause(lost)
                except Denied as denied:
                    self._raise_permanent(denied)
                    self.pause(denied)

    def pause(self, why: Exception) -> None:
        """Wait a little, each time longer, by chance more or less; raises as all do where the deadline comes first."""
        doublings = min(next(self._pauses), _PAUSE_DOUBLINGS_MAX)
        wait_s = min(_PAUSE_S * 2**doublings, _PAUSE_MAX_S) * random.uniform(0.5, 1.0)  # noqa: S311  # no secret
        # An attempt that the deadline cut short only says that time was up: the failure before it names the cause.
        if self.deadline.left_s > 0 or not self._reasons:
            self._reasons[:] = [why]
        if wait_s >= self.deadline.left_s:
            raise self._given_up(self._reasons[0]) from why
        if self.operation is not None and self.gateways.report is not None:
            self.gateways.report(StoreRepeated(self.operation))
        self.gateways.waits.failed(why)
        time.sleep(wait_s)

    def _rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], bytes_max: int | None
    ) -> dict[bytes, Columns]:
        return self.ask(lambda connection: connection.rows(table, rows, columns, bytes_max))

    def _change(self, table: bytes, changes: Sequence[Change], until_ms: int | None) -> None:
        self.ask(lambda connection: connection.change(table, changes, until_ms))

    def _swap(self, table: bytes, swaps: Sequence[Swap]) -> list[bool | None]:
        try:
            with self.gateways.waits.question(), self.gateways.pool.connection(self.deadline) as connection:
                outcomes = connection.swap(table, swaps)
        except Lost:
            return [None] * len(swaps)
        for outcome in outcomes:
            if isinstance(outcome, Denied):
                self._raise_permanent(outcome)
        return [None if isinstance(outcome, Denied) else outcome for outcome in outcomes]

    def _given_up(self, why: Exception) -> StoreError:
        """What a call ends with that was repeated until its deadline.

        What HBase says of a batch does not tell a table that is gone from one whose regions move ("Failed 2 actions:
        feed:postings"). So the master is asked for its tables, and only now: what passes by itself had time to pass.
        """
        found = self._out_of_use()
        if found.missing:
            return StoreRefused(found.missing)
        reason = " ".join(found.disabled) or f"{str(why).rstrip('.')}."
        within = f"within {self.gateways.options.deadline_s:g} seconds"
        return StoreUnavailable(f"The store {self.gateways.place} did not answer {within}: {reason}")

    def _out_of_use(self) -> OutOfUse:
        place, options = self.gateways.place, self.gateways.options
        moment = Deadline.after(min(_EXAMINED_S, _EXAMINED_SHARE * options.deadline_s))
        try:
            with self.gateways.pool.connection(moment) as connection:
                return out_of_use(connection, place)
        except (Lost, Denied):
            return OutOfUse()

    def _raise_permanent(self, denied: Denied) -> None:
        error = permanent_error(denied, self.gateways.place)
        if error is not None:
            raise error from denied


def pieces(whole: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """A sequence cut into pieces of a size; the last may be shorter."""
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _affordable(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Changes in pieces that one question can hold, those of a row beside each other."""
    ordered = iter(sorted(changes, key=lambda change: change.row))
    piece: list[Change] = []
    size_bytes = 0
    for change in ordered:
        change_bytes = len(change.row) + len(change.column) + len(change.value or b"")
        if piece and (len(piece) == CHANGES_AT_ONCE or size_bytes + change_bytes > CHANGE_BYTES_AT_ONCE):
            yield piece
            piece, size_bytes = [], 0
        piece.append(change)
        size_bytes += change_bytes
    if piece:
        yield piece


def taken(found: Iterator[_T], count_max: int) -> list[_T]:
    """The first of an iterator, so many at most."""
    return list(islice(found, count_max))
