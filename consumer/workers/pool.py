"""Computes fingerprints: in the calling thread, or in other threads or processes while earlier batches are judged."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from types import FrameType
from typing import NamedTuple, Protocol

from typing_extensions import override

from consumer.fingerprint import (
    PUBLISHED_SECRET,
    Engine,
    Fingerprinter,
    Fingerprints,
    Scheme,
    Secret,
    chunks,
    join_batches,
)
from consumer.lifecycle.interruption import UNINTERRUPTED
from consumer.lifecycle.thread_progress import WorkerProgressed
from consumer.model.errors import Fatal
from consumer.model.hooks import Hooks
from consumer.workers.word_files import WordFiles, load_lexicon

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PIECE_CHARS_MAX = 200_000
"""The maximum number of characters in a piece of a batch, unless a single text has more.

A piece takes a second or less. The run reports progress between pieces.
"""
_GRACE_S = 5.0
"""How long a worker survives SIGTERM. Its parent gets the signal too, and can finish the current batch."""


class TimedFingerprints(NamedTuple):
    """Fingerprints, and the seconds it took to compute them."""

    fingerprints: Fingerprints
    work_s: float


class Fingerprinting(Protocol):
    """A way to compute fingerprints of batches, possibly ahead of their use. Called from the thread of the run."""

    @property
    def ahead(self) -> int:
        """The number of batches to submit before their results are needed; 0 if nothing runs in the background."""
        ...

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[TimedFingerprints]":
        """Start computing a batch, with the declared languages of its texts; return the future result.

        Called for each batch in order. Results must not depend on the process or the batch. Raises ``Fatal``, directly
        or from the future, if the computation cannot be completed.
        """
        ...

    def close(self) -> None:
        """Stop, and discard unfinished batches. Called once, at the end of the run."""
        ...


class InlineFingerprinting(Fingerprinting):
    """Fingerprinting in the caller's thread, at once; ``proceed`` is called before each piece and may raise."""

    def __init__(self, engine: Engine, proceed: Callable[[], None] = UNINTERRUPTED.while_preparing) -> None:
        self._engine = engine
        self._proceed = proceed

    @property
    @override
    def ahead(self) -> int:
        return 0

    @override
    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[TimedFingerprints]":
        future: Future[TimedFingerprints] = Future()
        results = []
        for piece in pieces(texts):
            self._proceed()
            results.append(_compute(self._engine, texts[piece], languages[piece]))
        future.set_result(_join(results))
        return future

    @override
    def close(self) -> None:
        pass


class ThreadedFingerprinting(Fingerprinting):
    """Fingerprinting on threads that share an engine, which must release the interpreter lock.

    These threads report ``WorkerProgressed`` for each finished piece.
    """

    def __init__(self, engine: Engine, workers: int, hooks: Hooks | None = None) -> None:
        self._engine = engine
        self._workers = workers
        self._hooks = hooks or Hooks()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="fingerprint")

    @property
    @override
    def ahead(self) -> int:
        """One batch for each thread, and one for the next free thread."""
        return self._workers + 1

    @override
    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[TimedFingerprints]":
        futures = [self._pool.submit(_compute, self._engine, texts[piece], languages[piece]) for piece in pieces(texts)]
        return _gather(futures, self._hooks)

    @override
    def close(self) -> None:
        """Cancel waiting pieces, and wait for the current ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class ProcessFingerprinting(Fingerprinting):
    """Fingerprinting in spawned processes, each with its own dictionary (about 150 MB).

    They are not forked, because a fork would inherit locks of the store and of client libraries, but not the threads
    that hold them. A thread of the pool reports ``WorkerProgressed`` for each finished piece.
    """

    def __init__(  # noqa: PLR0913  # its workers need all of these
        self,
        scheme: Scheme,
        words: WordFiles,
        workers: int,
        *,
        sketched: bool,
        parts: bool = False,
        secret: Secret = PUBLISHED_SECRET,
        hooks: Hooks | None = None,
    ) -> None:
        self._workers = workers
        self._hooks = hooks or Hooks()
        self._pool = ProcessPoolExecutor(
            workers,
            multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(scheme, words, sketched, parts, secret),
        )

    @property
    @override
    def ahead(self) -> int:
        """One batch for each worker, and one for the next free worker."""
        return self._workers + 1

    @override
    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[TimedFingerprints]":
        try:
            with _signals_blocked():
                futures = [
                    self._pool.submit(_fingerprint, list(texts[piece]), list(languages[piece]))
                    for piece in pieces(texts)
                ]
        except BrokenProcessPool as error:
            raise _worker_died() from error
        return _gather(futures, self._hooks)

    @override
    def close(self) -> None:
        """Cancel waiting pieces, and wait for the current ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block SIGINT and SIGTERM while tasks are submitted, because that may start workers.

    Workers inherit the blocked signals, and unblock them once their handlers are installed.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker_died() -> Fatal:
    return Fatal(
        "a worker process ended unexpectedly, possibly out of memory; nothing of the batch was committed. Start again, "
        "with fewer workers if necessary"
    )


def _gather(futures: "Sequence[Future[TimedFingerprints]]", hooks: Hooks) -> "Future[TimedFingerprints]":
    """Return one future for all pieces, which is cancelled if a piece is. A lost worker becomes a ``Fatal`` error."""
    combined: Future[TimedFingerprints] = Future()
    lock = threading.Lock()
    left = len(futures)

    def finish(done: "Future[TimedFingerprints]") -> None:
        nonlocal left
        del done
        hooks.report(WorkerProgressed())
        with lock:
            left -= 1
            if left or combined.done():
                return
            if any(future.cancelled() for future in futures):
                combined.cancel()
                return
            error = next((error for future in futures if (error := future.exception()) is not None), None)
            if error is None:
                combined.set_result(_join([future.result() for future in futures]))
            else:
                combined.set_exception(_worker_died() if isinstance(error, BrokenProcessPool) else error)

    for future in futures:
        future.add_done_callback(finish)
    return combined


def pieces(texts: Sequence[str]) -> list[slice]:
    """Cut a batch into one or more pieces of at most ``PIECE_CHARS_MAX`` characters. A longer text is its own piece."""
    return chunks(texts, PIECE_CHARS_MAX)


def _join(results: Sequence[TimedFingerprints]) -> TimedFingerprints:
    if len(results) == 1:
        return results[0]
    fingerprints = join_batches([result.fingerprints for result in results])
    return TimedFingerprints(fingerprints, sum(result.work_s for result in results))


_worker: Fingerprinter | None = None


def _start_worker(
    scheme: Scheme,
    words: WordFiles,
    sketched: bool,  # noqa: FBT001  # a pool passes arguments by position
    parts: bool,  # noqa: FBT001
    secret: Secret,
) -> None:
    global _worker  # noqa: PLW0603  # a pool's initializer can pass its result to later calls only in a global
    # Ctrl-C and a supervisor's SIGTERM go to the whole group, but the parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_later)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = Fingerprinter(scheme, load_lexicon(*words), sketched=sketched, parts=parts, secret=secret)


def _end_later(number: int, frame: FrameType | None) -> None:
    del number, frame
    later = threading.Timer(_GRACE_S, os._exit, (1,))
    later.daemon = True
    later.start()


def _end_with_parent() -> None:
    """End this worker when its parent ends. Otherwise a worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _fingerprint(texts: list[str], languages: list[str]) -> TimedFingerprints:
    if _worker is None:
        raise RuntimeError("a worker was called before it was initialised")
    return _compute(_worker, texts, languages)


def _compute(engine: Engine, texts: Sequence[str], languages: Sequence[str]) -> TimedFingerprints:
    began_s = time.perf_counter()
    fingerprints = engine.fingerprint(texts, languages)
    return TimedFingerprints(fingerprints, time.perf_counter() - began_s)
