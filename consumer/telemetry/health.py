"""The liveness and readiness of a run. This module also ends a run that does not stop when asked to."""

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from consumer.kafka.source.handover import ClientProgressed
from consumer.kafka.source.holds import PartitionsHeld
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import MAIN, ThreadIdle, ThreadProgressed, WorkerProgressed
from consumer.model.hooks import Hooks, Outage, RunPart
from consumer.model.record import partition_name
from consumer.text.redaction import redacted

HEARTBEAT_MAX_S: Final = 60.0
_CLIENT: Final = "client"
log = logging.getLogger("dupwatch")

_POLL_S: Final = 0.1
EXIT_CODE: Final = 1


class HangingThread(NamedTuple):
    """A thread that has made no progress for too long: its name, the seconds without progress, and its stack."""

    thread: str
    silent_s: float
    stack: str


class HangLog:
    """A log of hanging threads with their stacks. It has each hang once, although probes come every few seconds."""

    def __init__(self, hanging: Callable[[], Sequence[HangingThread]]) -> None:
        self._hanging = hanging
        self._logged: frozenset[str] = frozenset()

    def hanging(self) -> Sequence[HangingThread]:
        """Return the hanging threads, and log the threads that did not hang at the last call."""
        hanging = self._hanging()
        for late in hanging:
            if late.thread not in self._logged:
                log.error(
                    "The %s thread has made no progress for %.0f s. Its stack:\n%s",
                    late.thread,
                    late.silent_s,
                    late.stack,
                )
        self._logged = frozenset(late.thread for late in hanging)
        return hanging


class Health:
    """The state of one run, reported by its threads. Every method may be called from any thread.

    A thread hangs if it makes no progress for more than ``heartbeat_max_s``. Every thread has to report progress while
    it works on records. A thread that waits for records is idle, however long that takes. The client's thread has to
    keep reporting progress after its first report. ``grouped`` says that the source shares its partitions with a group.
    Then the main thread has to report progress from the start, and the run is not ready before its first assignment,
    which may have no partitions. ``judge`` names the thread that judges, which waits for workers. ``clock`` returns
    monotonic seconds.
    """

    def __init__(
        self,
        heartbeat_max_s: float = HEARTBEAT_MAX_S,
        *,
        grouped: bool = True,
        judge: str = MAIN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._heartbeat_max_s = heartbeat_max_s
        self._judge = judge
        self._clock = clock
        self._lock = threading.Lock()
        # The client's thread is watched from its first report. Until then the main thread waits for stores and brokers.
        self._progressed_s: dict[str, float] = {MAIN: clock()} if grouped else {}
        self._threads: dict[str, int] = {MAIN: threading.get_ident()}
        self._assigned: int | None = None if grouped else 0
        self._outages: dict[RunPart, dict[str, str]] = {}
        self._stopping = False
        self._held: dict[str, str] = {}

    def hanging_threads(self) -> list[HangingThread]:
        """Return the threads that seem to hang; an empty list if the run is alive."""
        now_s = self._clock()
        with self._lock:
            silent = {thread: now_s - progressed_s for thread, progressed_s in self._progressed_s.items()}
            threads = dict(self._threads)
        return [
            HangingThread(thread, silent_s, _stack(threads.get(thread)))
            for thread, silent_s in sorted(silent.items())
            if silent_s > self._heartbeat_max_s
        ]

    def unready_reasons(self) -> list[str]:
        """Return the reasons why the run is not ready to judge; an empty list if it is ready."""
        with self._lock:
            # Several reporters may give the same reason.
            outages = {
                part: "; ".join(dict.fromkeys(by_reporter.values()))
                for part, by_reporter in self._outages.items()
                if by_reporter
            }
            reasons = [f"{part}: {reason}" for part, reason in sorted(outages.items())]
            if self._assigned is None:
                reasons.append("source: no partitions assigned yet")
            if self._stopping:
                reasons.append("run: stopping")
        return reasons

    def held_partitions(self) -> dict[str, str]:
        """Return the held partitions, by name, with the reasons. The run stays ready, because it reads the others."""
        with self._lock:
            return dict(self._held)

    def listen(self, hooks: Hooks) -> None:
        """Follow the threads, partitions and outages reported from now on."""
        hooks.on(ThreadProgressed, lambda report: self._note_progress(report.thread))
        hooks.on(ThreadIdle, self._note_idle)
        hooks.on(WorkerProgressed, self._note_worker_progress)
        hooks.on(ClientProgressed, lambda _: self._note_progress(_CLIENT))
        hooks.on(PartitionsRebalanced, self._note_assignment)
        hooks.on(PartitionsHeld, self._note_held)
        hooks.on(Outage, self._note_outage)

    def note_stopping(self) -> None:
        """Note that the run was asked to stop."""
        with self._lock:
            self._stopping = True

    def _note_progress(self, thread: str) -> None:
        """Note that a thread has begun to work, or made progress."""
        with self._lock:
            self._progressed_s[thread] = self._clock()
            self._threads[thread] = threading.get_ident()

    def _note_idle(self, report: ThreadIdle) -> None:
        with self._lock:
            self._progressed_s.pop(report.thread, None)

    def _note_worker_progress(self, _: WorkerProgressed) -> None:
        """Count progress of workers as progress of the judging thread, which waits for them."""
        with self._lock:
            if self._judge in self._progressed_s:
                self._progressed_s[self._judge] = self._clock()

    def _note_assignment(self, rebalanced: PartitionsRebalanced) -> None:
        """Note how many partitions are assigned after a rebalance, which may be none."""
        with self._lock:
            self._assigned = rebalanced.partitions

    def _note_held(self, report: PartitionsHeld) -> None:
        with self._lock:
            self._held = {
                partition_name(partition): reason for partition, reason in report.reasons.items() if reason is not None
            }

    def _note_outage(self, outage: Outage) -> None:
        with self._lock:
            by_reporter = self._outages.setdefault(outage.part, {})
            if outage.reason is None:
                by_reporter.pop(outage.reporter, None)
            else:
                by_reporter[outage.reporter] = redacted(outage.reason)


def main_stack() -> str:
    """Return the stack of the main thread: files, lines and names, without values."""
    return _stack(threading.main_thread().ident)


def _stack(thread: int | None) -> str:
    # No public function returns the frames of another thread.
    frame = sys._current_frames().get(-1 if thread is None else thread)  # noqa: SLF001
    return "the thread has ended\n" if frame is None else "".join(traceback.format_stack(frame))


def enforce_stop(stopping: StopSignal, ending: Callable[[], None], limit_s: float) -> None:
    """Call ``ending`` when the run is asked to stop. End the process if it still runs ``limit_s`` after the request.

    The process may be ended at any moment, because uncommitted records are read again. Returns at once; a daemon thread
    waits.
    """

    def watch() -> None:
        while stopping.requested_at_s is None:
            time.sleep(_POLL_S)
        ending()
        time.sleep(max(0.0, stopping.requested_at_s + limit_s - time.monotonic()))
        log.error(
            "The run did not stop within %.0f s; ending it now. Stack of the main thread:\n%s", limit_s, main_stack()
        )
        os._exit(EXIT_CODE)

    threading.Thread(target=watch, name="deadline", daemon=True).start()
