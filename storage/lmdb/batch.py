"""The transaction that a thread's calls share within ``Store.together``, and reports of its commits."""

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
    """An error of a batch's work, wrapped so that the handlers of LMDB's errors do not catch it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Batch(local):
    """The batch of each thread; its ``transaction`` is None unless the thread is in a batch."""

    def __init__(self) -> None:
        self.transaction: Any = None
        self._failure: BaseException | None = None
        self._is_full = False

    def run(self, transaction: Any, work: Callable[[], _Answer]) -> _Answer:  # noqa: ANN401  # LMDB hides its type
        """Run ``work`` while all calls of this thread use ``transaction``.

        Raises ``MapFullError`` if the map was too small for a call, otherwise ``WorkFailed`` with the error of ``work``
        or of a call. The error of a call is raised even if ``work`` has caught it: nothing may be committed then.
        """
        self.transaction = transaction
        try:
            answer = work()
            self._check()
        except BaseException as error:
            # The error's type does not show whether the map is full: another store, whose batch contains this one, may
            # have raised it.
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
        """Guard a call of the batch: if it fails, the batch fails, even if the caller handles the error."""
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
    """A reporter of commits. It skips a batch whose work failed, because its calls have been reported already."""

    def __init__(self, report: StoreReport) -> None:
        self._report = report

    def timed(self, together: Callable[[Callable[[], _Answer]], _Answer], work: Callable[[], _Answer]) -> _Answer:
        """Return ``together(work)``, and report how long it took, excluding the time in ``work``."""
        work_s = 0.0
        work_error: BaseException | None = None

        def timed_work() -> _Answer:
            nonlocal work_s, work_error
            began_s = time.perf_counter()
            try:
                return work()
            except BaseException as error:
                work_error = error
                raise
            finally:
                work_s += time.perf_counter() - began_s

        began_s = time.perf_counter()
        try:
            answer = together(timed_work)
        except BaseException as error:
            if error is not work_error:
                self._report(StoreCalled("commit", ending_of(error), time.perf_counter() - began_s - work_s))
            raise
        self._report(StoreCalled("commit", "ok", time.perf_counter() - began_s - work_s))
        return answer
