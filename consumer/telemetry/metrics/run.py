"""Metrics of the process: its build, memory and progress."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from consumer.kafka.source.handover import ClientProgressed
from consumer.lifecycle.thread_progress import MAIN, ThreadIdle, ThreadProgressed, WorkerProgressed
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.telemetry.metrics.instruments import Instruments, Label, Measure, MetricGroup

Thread = Literal["client", "main"]

_THREADS: Final[tuple[Thread, ...]] = get_args(Thread)

BUILD: Final = Measure(
    "dupwatch_build_info",
    "info",
    "The build: settings is the SHA-256 of all settings that change verdicts; larger_plan is the plan to move to when "
    "the window outgrows this one, if any; engine (compiled or python) computes fingerprints.",
    "1",
    tuple(
        Label(name, others_limit="one value")
        for name in ("version", "scheme", "plan", "settings", "larger_plan", "engine")
    ),
)
WORKERS: Final = Measure(
    "dupwatch_workers",
    "gauge",
    "Threads that compute fingerprints, or processes with the engine in Python; 0 if the main thread does.",
    "workers",
)
OWN_MEMORY: Final = Measure(
    "dupwatch_own_memory_bytes",
    "gauge",
    "Memory that only the main process uses. Pages of files, such as those of an LMDB store, are not included, because "
    "the system reclaims them when it needs memory. 0 if the system does not report it (only Linux does).",
    "bytes",
)
BUSY: Final = Measure("dupwatch_busy", "gauge", "1 while a batch is being processed, 0 while waiting.", "0 or 1")
LAST_PROCESSED: Final = Measure(
    "dupwatch_last_processed_timestamp_seconds",
    "gauge",
    "Time of the last commit of a batch; 0 before the first.",
    "seconds since 1970",
)
HEARTBEAT: Final = Measure(
    "dupwatch_loop_heartbeat_timestamp_seconds",
    "gauge",
    "Time of the last turn of a thread's loop; 0 before the first. The main thread has no turns without records.",
    "seconds since 1970",
    (Label("thread", _THREADS),),
)
GROUP: Final = MetricGroup("The process", (BUILD, WORKERS, OWN_MEMORY, BUSY, LAST_PROCESSED, HEARTBEAT))
_STATUS: Final = Path("/proc/self/status")
_ANONYMOUS: Final = "RssAnon:"
_KILOBYTE: Final = 1024


class Build(NamedTuple):
    """The version of dupwatch, the scheme, the block plan, and the digest of all settings that change verdicts.

    ``larger_plan`` is the plan to move to when the window outgrows this one, empty if there is none. ``engine`` is the
    name of the engine that computes fingerprints.
    """

    version: str
    scheme: str
    plan: str
    settings: str = ""
    larger_plan: str = ""
    engine: str = ""


class OwnMemory:
    """The memory of the process. There is nothing to listen to."""

    def __init__(self, instruments: Instruments) -> None:
        instruments.gauge(OWN_MEMORY).set_function(own_memory_bytes)

    def listen(self, hooks: Hooks) -> None:
        """Listen to nothing."""


class RunMetrics:
    """The progress of a run's threads, the number of its workers, and its memory."""

    def __init__(self, instruments: Instruments, clock: Callable[[], float], workers: int) -> None:
        self._clock = clock
        instruments.gauge(WORKERS).set(workers)
        OwnMemory(instruments)
        self._busy = instruments.gauge(BUSY)
        self._last_processed = instruments.gauge(LAST_PROCESSED)
        heartbeats = instruments.gauge(HEARTBEAT)
        self._heartbeats = {thread: heartbeats.labels(thread) for thread in _THREADS}

    def listen(self, hooks: Hooks) -> None:
        """Follow batches and threads from now on."""
        hooks.on(BatchCommitted, lambda _: self._last_processed.set(self._clock()))
        hooks.on(ClientProgressed, lambda _: self._heartbeats["client"].set(self._clock()))
        hooks.on(WorkerProgressed, lambda _: self._heartbeats["main"].set(self._clock()))
        hooks.on(ThreadProgressed, self._note_progress)
        hooks.on(ThreadIdle, self._note_idle)

    def _note_progress(self, report: ThreadProgressed) -> None:
        if report.thread == MAIN:
            self._heartbeats["main"].set(self._clock())
            self._busy.set(1)

    def _note_idle(self, report: ThreadIdle) -> None:
        if report.thread == MAIN:
            self._busy.set(0)


def own_memory_bytes(status: Path = _STATUS) -> float:
    """Return resident memory that belongs to no file, ``RssAnon`` of proc_pid_status(5); 0 if it is not reported."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * _KILOBYTE for line in lines if line.startswith(_ANONYMOUS)), 0.0)
