"""Requests to HBase: split into pieces, spread over connections, and repeated until they succeed or time out."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from threading import Thread
from typing import Final, TypeVar

from storage.errors import StoreError, StoreRefused, StoreUnavailable
from storage.hbase.connection import CellAddress, CellChange, Columns, GatewayConnection, ScanSelection, Swap
from storage.hbase.failures import ConnectionLost, RequestDenied, permanent_error
from storage.hbase.options import HbaseOptions, StoreAddress
from storage.hbase.pool import Pool
from storage.hbase.row_answers import CellShape, RowCells
from storage.hbase.tables import UnusableTables, unusable_tables
from storage.hbase.waits import Deadline, Tell, Waits
from storage.watched import Operation, StoreConnected, StoreRepeated, StoreReport

_T = TypeVar("_T")
_Answer = TypeVar("_Answer")
_OtherAnswer = TypeVar("_OtherAnswer")

CHANGES_AT_ONCE_MAX: Final = 2_000
CHANGE_BYTES_AT_ONCE_MAX: Final = 4 << 20
"""The maximum number of changes in one request, and their bytes. A gateway reads at most 100 MB, all into memory."""
SWAPS_APART_MIN: Final = 16
"""Fewer compare-and-sets are not worth their own connection."""
ROWS_APART_MIN: Final = 16
"""Fewer rows are not worth their own connection."""
_PAUSE_S: Final = 0.025
_PAUSE_MAX_S: Final = 2.0
_PAUSE_DOUBLINGS_MAX: Final = 10
_EXAMINE_S_MAX: Final = 2.0
_EXAMINE_SHARE_MAX: Final = 0.25
"""The maximum time to examine the cause of a failed call, in seconds and as a share of the call's deadline."""


class Gateways:
    """The access to one HBase: a pool of connections, and threads that use several of them at a time."""

    def __init__(
        self,
        place: StoreAddress,
        options: HbaseOptions,
        report: StoreReport | None = None,
        tell_wait: Tell | None = None,
    ) -> None:
        self.place = place
        self.options = options
        self.report = report
        self.waits = Waits(place, tell_wait)
        self.waits.watch()
        notify = None if report is None else lambda change: report(StoreConnected(change))
        self.pool = Pool(place.addresses, options, notify=notify)
        self._threads = ThreadPoolExecutor(options.connections_max, thread_name_prefix="hbase")

    def calls(self, operation: Operation | None = None) -> "Calls":
        """Begin a call of the store, whose requests share one deadline from now on.

        Repetitions are reported under ``operation``, or not at all if it is None.
        """
        return Calls(self, Deadline.after(self.options.deadline_s), operation)

    def spread(self, tasks: Sequence[Callable[[], _Answer]]) -> list[_Answer]:
        """Call these functions, several at a time, and return their results.

        If some fail, raise the error of the first failed function in order.
        """
        if len(tasks) == 1:
            return [tasks[0]()]
        futures: list[Future[_Answer]] = [self._threads.submit(work) for work in tasks]
        # Nothing may still run when the caller gets an error.
        wait(futures)
        return [future.result() for future in futures]

    def side_by_side(
        self, first: Callable[[], _Answer], second: Callable[[], _OtherAnswer]
    ) -> tuple[_Answer, _OtherAnswer]:
        """Call two functions at the same time, and return both results. If both fail, raise the error of the first.

        Both may use ``spread``. The second has its own thread: in the pool, functions that wait for others could take
        all threads.
        """
        answered: Future[_OtherAnswer] = Future()
        thread = Thread(target=_answer, args=(answered, second), name="hbase-beside")
        thread.start()
        try:
            answer = first()
        finally:
            # As in spread: nothing may still run when the caller gets an error.
            thread.join()
        return answer, answered.result()

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self.waits.close()
        self._threads.shutdown(cancel_futures=True)
        self.pool.close()


@dataclass(frozen=True, slots=True)
class Calls:
    """The requests of one call of the store.

    Every method that sends requests raises the store's error as soon as HBase reports a failure that waiting would not
    cure. After the deadline all of them except ``swap`` raise ``StoreUnavailable``, or ``StoreRefused`` if a table of
    the store turns out to be missing.
    """

    gateways: Gateways
    deadline: Deadline
    operation: Operation | None = None
    _pauses: "count[int]" = field(default_factory=count)
    _reasons: list[Exception] = field(default_factory=list)

    def rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], at_once: int, bytes_max: int | None = None
    ) -> dict[bytes, Columns]:
        """Read these columns or families of these rows, at most ``at_once`` rows per request.

        Even rows that fit into one request are spread over the connections, at least 16 each: while one part is decoded
        here, gateways and servers work on others. Raises ``AnswerTooBig`` if one answer has more than ``bytes_max``
        bytes.
        """
        tasks = [
            partial(self._rows, table, some, columns, bytes_max)
            for some in pieces(rows, self.share(len(rows), at_once))
        ]
        return {row: found for part in self.gateways.spread(tasks) for row, found in part.items()}

    def row_cells(  # the parameters of GatewayConnection.row_cells
        self,
        table: bytes,
        rows: Sequence[bytes],
        families: Sequence[bytes],
        shape: CellShape,
        bytes_max: int,
        check_after: CellAddress | None = None,
    ) -> tuple[dict[bytes, RowCells], bool]:
        """Read families of these rows with one request; most of their cells should have this shape.

        Also return whether the cell ``check_after`` existed once the rows had been read. Raises ``AnswerTooBig`` if the
        answer has more than ``bytes_max`` bytes.
        """
        return self.ask(lambda connection: connection.row_cells(table, rows, families, shape, bytes_max, check_after))

    def share(self, count: int, at_once: int) -> int:
        """Return how many of ``count`` rows go into one request, so that all connections get some, but none too few."""
        each = -(-count // self.gateways.options.connections_max)
        return min(max(each, ROWS_APART_MIN), at_once)

    def change(self, table: bytes, changes: Iterable[CellChange], until_ms: int | None = None) -> None:
        """Put and delete cells, in any order. After an error the call may be repeated.

        With ``until_ms`` all changes must be deletes. They affect only cells written by that time of the server's
        clock.
        """
        self.gateways.spread([partial(self._change, table, some, until_ms) for some in _requests(changes)])

    def swap(self, table: bytes, swaps: Sequence[Swap]) -> list[bool | None]:
        """Compare and set each cell once; return None where the outcome is unknown."""
        options = self.gateways.options
        each = -(-len(swaps) // options.connections_max)
        at_once = min(max(each, SWAPS_APART_MIN), options.swaps_under_way_max)
        tasks = [partial(self._swap, table, some) for some in pieces(swaps, at_once)]
        return [outcome for part in self.gateways.spread(tasks) for outcome in part]

    def scan(self, selection: ScanSelection, work: Callable[[Iterator[tuple[bytes, Columns]]], _Answer]) -> _Answer:
        """Return the result of ``work`` on the rows of a selection. After a temporary error the scan starts again."""

        def walk(connection: GatewayConnection) -> _Answer:
            with closing(connection.scan(selection)) as found:
                return work(self.gateways.waits.pieces(found))

        return self.ask(walk)

    def ask(self, work: Callable[[GatewayConnection], _Answer]) -> _Answer:
        """Return the result of ``work`` on a connection; repeat it, on any connection, until it succeeds.

        Running ``work`` twice must be harmless.
        """
        with self.gateways.waits.request():
            while True:
                try:
                    with self.gateways.pool.connection(self.deadline) as connection:
                        return work(connection)
                except ConnectionLost as lost:
                    self.pause(lost)
                except RequestDenied as denied:
                    self._raise_permanent(denied)
                    self.pause(denied)

    def pause(self, cause: Exception) -> None:
        """Wait for a random time that grows with each attempt. Raise an error if the deadline would pass first."""
        doublings = min(next(self._pauses), _PAUSE_DOUBLINGS_MAX)
        wait_s = min(_PAUSE_S * 2**doublings, _PAUSE_MAX_S) * random.uniform(0.5, 1.0)  # noqa: S311  # no secret
        # The last attempt, cut off by the deadline, reports only a time-out; the failure before it names the cause.
        if self.deadline.left_s > 0 or not self._reasons:
            self._reasons[:] = [cause]
        if wait_s >= self.deadline.left_s:
            raise self._deadline_error(self._reasons[0]) from cause
        if self.operation is not None and self.gateways.report is not None:
            self.gateways.report(StoreRepeated(self.operation))
        self.gateways.waits.note_failure(cause)
        time.sleep(wait_s)

    def _rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], bytes_max: int | None
    ) -> dict[bytes, Columns]:
        return self.ask(lambda connection: connection.rows(table, rows, columns, bytes_max))

    def _change(self, table: bytes, changes: Sequence[CellChange], until_ms: int | None) -> None:
        self.ask(lambda connection: connection.change(table, changes, until_ms))

    def _swap(self, table: bytes, swaps: Sequence[Swap]) -> list[bool | None]:
        try:
            with self.gateways.waits.request(), self.gateways.pool.connection(self.deadline) as connection:
                outcomes = connection.swap(table, swaps)
        except ConnectionLost:
            return [None] * len(swaps)
        for outcome in outcomes:
            if isinstance(outcome, RequestDenied):
                self._raise_permanent(outcome)
        return [None if isinstance(outcome, RequestDenied) else outcome for outcome in outcomes]

    def _deadline_error(self, cause: Exception) -> StoreError:
        """Return the error of a call that was repeated until its deadline.

        HBase's answer to a batch does not distinguish a missing table from one whose regions move ("Failed 2 actions:
        feed:postings"). So the master is asked for its tables, but only now, after temporary failures have had
        time to end.
        """
        found = self._unusable_tables()
        if found.missing:
            return StoreRefused(found.missing)
        advice = "Check that HBase and the gateways in store.url are running; dupwatch doctor checks each."
        reason = " ".join(found.disabled) or f"{str(cause).rstrip('.')}. {advice}"
        within = f"within {self.gateways.options.deadline_s:g} seconds"
        return StoreUnavailable(f"The store {self.gateways.place} did not answer {within}: {reason}")

    def _unusable_tables(self) -> UnusableTables:
        place, options = self.gateways.place, self.gateways.options
        moment = Deadline.after(min(_EXAMINE_S_MAX, _EXAMINE_SHARE_MAX * options.deadline_s))
        try:
            with self.gateways.pool.connection(moment) as connection:
                return unusable_tables(connection, place, options.seen_ttl_s)
        except (ConnectionLost, RequestDenied):
            return UnusableTables()

    def _raise_permanent(self, denied: RequestDenied) -> None:
        error = permanent_error(denied, self.gateways.place)
        if error is not None:
            raise error from denied


def pieces(whole: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """Cut a sequence into pieces of this size; the last one may be shorter."""
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _answer(future: "Future[_Answer]", work: Callable[[], _Answer]) -> None:
    """Run ``work``, and set its result or error on the future."""
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  # raised again where the future is read
        future.set_exception(error)


def _requests(changes: Iterable[CellChange]) -> Iterator[list[CellChange]]:
    """Sort changes by row, and split them into pieces of one request each."""
    ordered = iter(sorted(changes, key=lambda change: change.row))
    piece: list[CellChange] = []
    size_bytes = 0
    for change in ordered:
        change_bytes = len(change.row) + len(change.column) + len(change.value or b"")
        if piece and (len(piece) == CHANGES_AT_ONCE_MAX or size_bytes + change_bytes > CHANGE_BYTES_AT_ONCE_MAX):
            yield piece
            piece, size_bytes = [], 0
        piece.append(change)
        size_bytes += change_bytes
    if piece:
        yield piece


def take(found: Iterator[_T], count_max: int) -> list[_T]:
    """Return the first ``count_max`` items of an iterator."""
    return list(islice(found, count_max))
