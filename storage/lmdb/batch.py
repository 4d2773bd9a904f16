"""The transaction that all calls of a thread share while it is in ``Store.together``, and how long its commit takes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any, TypeVar

import lmdb

from storage.errors import StartAgain
from storage.watched import StoreCalled, StoreReport, ending_of

_Answer = TypeVar("_Answer")


class WorkFailed(BaseException):
    """Carries what the work of a batch raised past all that handles errors of LMDB."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Batch(local):
    """What each thread has: ``transaction`` is None unless it is in a batch."""

    def __init__(self) -> None:
        self.transaction: Any = None
        self._failure: BaseException | None = None
        self._is_full = False

    def run(self, transaction: Any, work: Callable[[], _Answer]) -> _Answer:  # noqa: ANN401  # LMDB hides its type
        """Run ``work`` while ``transaction`` is that of all calls of this thread.

        Raises ``MapFullError`` where the map was too small for one of the calls, and otherwise ``WorkFailed`` with the
        error of ``work``, or with that of a call although ``work`` went on: nothing of the transaction may stay.
        """
        self.transaction = transaction
        try:
            answer = work()
            self._check()
        except BaseException as error:
            # Not asked of the error: it may come from another store, whose batch this one is within.
            if self._is_full:
                raise lmdb.MapFullError(str(self._failure)) from error
            raise WorkFailed(error) from error
        finally:
            self.transaction = self._failure = None
            self._is_full = False
        return answer

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def call(self) -> Iterator[None]:
        """Make a call of the batch within; one that fails ends the batch, whatever the caller does about it."""
        try:
            yield
        except lmdb.MapFullError as full:
            self._is_full = True
            self._failure = StartAgain(str(full))
            raise self._failure from full
        except BaseException as error:
            self._failure = error
            raise


class CommitReports:
    """Reports the commit of each batch, but not batches whose own work failed: its calls are reported already."""

    def __init__(self, report: StoreReport) -> None:
        self._report = report

    def timed(self, together: Callable[[Callable[[], _Answer]], _Answer], work: Callable[[], _Answer]) -> _Answer:
        """Return ``together(work)``, and report how long it took without the time within ``work``."""
        work_s = 0.0
        raised: BaseException | None = None

        def timed_work() -> _Answer:
            nonlocal work_s, raised
            began_s = time.perf_counter()
            try:
                return work()
            except BaseException as error:
                raised = error
                raise
            finally:
                work_s += time.perf_counter() - began_s

        began_s = time.perf_counter()
        try:
            answer = together(timed_work)
        except BaseException as error:
            if error is not raised:
                self._report(StoreCalled("commit", ending_of(error), time.perf_counter() - began_s - work_s))
            raise
        self._report(StoreCalled("commit", "ok", time.perf_counter() - began_s - work_s))
        return answer
