"""Times what a batch waits for besides its own work: for the write lock, and for the commit with its flush."""

import time
from collections.abc import Callable
from typing import TypeVar

from storage.watched import StoreCalled, StoreReport, ending_of

_Answer = TypeVar("_Answer")


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
