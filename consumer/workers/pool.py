"""Where fingerprints are made: in this process, or on worker processes while the batch before is judged."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from types import FrameType
from typing import NamedTuple, Protocol

from consumer.fingerprint import Fingerprinter, Fingerprints, Scheme, chunks, joined
from consumer.model.errors import Fatal
from consumer.workers.word_files import WordFiles, load_lexicon

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PIECE_CHARS_MAX = 200_000
"""A batch of more is made in pieces of this, a second of work or less: each is a turn of whoever waits for it."""
_GRACE_S = 5.0
"""How long a worker outlives SIGTERM: the parent, which got it too, finishes what was begun meanwhile."""


def _nothing() -> None:
    """Nobody has a say."""


class Made(NamedTuple):
    """Fingerprints, and how long the process that made them worked on them."""

    fingerprints: Fingerprints
    work_s: float


class Fingerprinting(Protocol):
    """Texts in, fingerprints out, some time later."""

    @property
    def ahead(self) -> int:
        """How many batches are worth having under way at once; 0 where nothing runs beside the caller."""
        ...

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[Made]":
        """Begin with a batch and the languages its texts declare. Results do not depend on where, or in what batch."""
        ...

    def close(self) -> None:
        """Stop, without waiting for what nobody will ask for any more."""
        ...


class InProcess:
    """Fingerprints are made at once, by the caller, who has a say before each piece: ``turn`` may raise."""

    def __init__(self, fingerprinter: Fingerprinter, turn: Callable[[], None] = _nothing) -> None:
        self._fingerprinter = fingerprinter
        self._turn = turn

    @property
    def ahead(self) -> int:
        """Nothing runs beside the caller."""
        return 0

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[Made]":
        """Make the fingerprints before returning."""
        future: Future[Made] = Future()
        made = []
        for piece in pieces(texts):
            self._turn()
            made.append(_made(self._fingerprinter, texts[piece], languages[piece]))
        future.set_result(_joined(made))
        return future

    def close(self) -> None:
        """There is nothing to stop."""


class OnWorkers:
    """Fingerprints are made by spawned processes, each with a dictionary of its own (about 150 MB).

    Spawned, not forked: a fork would carry over the store's locks and the client libraries' threads. ``helped`` is told
    of each piece that is done, from a thread of the pool's.
    """

    def __init__(
        self,
        scheme: Scheme,
        words: WordFiles,
        workers: int,
        *,
        sketched: bool,
        helped: Callable[[], None] = _nothing,
    ) -> None:
        self._workers = workers
        self._helped = helped
        self._pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(scheme, words, sketched)
        )

    @property
    def ahead(self) -> int:
        """One batch for each worker, and one that waits for the next to be free."""
        return self._workers + 1

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[Made]":
        """Hand the batch to the workers. ``Fatal``, here or as the result, where a worker was killed."""
        try:
            with _signals_held():
                made = [
                    self._pool.submit(_fingerprint, list(texts[piece]), list(languages[piece]))
                    for piece in pieces(texts)
                ]
        except BrokenProcessPool as error:
            raise _worker_died() from error
        return _gathered(made, self._helped)

    def close(self) -> None:
        """Cancel what waits; workers end with what they are at."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Workers are started by the first task, and must not be hit before they can tell what a signal means."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker_died() -> Fatal:
    return Fatal(
        "a worker process ended in the middle of its work, for want of memory perhaps; nothing of the batch was "
        "committed, start again, with fewer workers if need be"
    )


def _gathered(pieces_made: "Sequence[Future[Made]]", helped: Callable[[], None]) -> "Future[Made]":
    """All pieces as one result, with a sentence for a person where the worker that was to make one is gone."""
    gathered: Future[Made] = Future()
    lock = threading.Lock()
    left = len(pieces_made)

    def tell(done: "Future[Made]") -> None:
        nonlocal left
        del done
        helped()
        with lock:
            left -= 1
            if left or gathered.done():
                return
            if any(one.cancelled() for one in pieces_made):
                gathered.cancel()
                return
            error = next((error for one in pieces_made if (error := one.exception()) is not None), None)
            if error is None:
                gathered.set_result(_joined([one.result() for one in pieces_made]))
            else:
                gathered.set_exception(_worker_died() if isinstance(error, BrokenProcessPool) else error)

    for one in pieces_made:
        one.add_done_callback(tell)
    return gathered


def pieces(texts: Sequence[str]) -> list[slice]:
    """Where to cut a batch: each piece has one text, or several of ``PIECE_CHARS_MAX`` together. At least one piece."""
    return chunks(texts, PIECE_CHARS_MAX)


def _joined(made: Sequence[Made]) -> Made:
    if len(made) == 1:
        return made[0]
    return Made(joined([one.fingerprints for one in made]), sum(one.work_s for one in made))


_worker: Fingerprinter | None = None


def _start_worker(scheme: Scheme, words: WordFiles, sketched: bool) -> None:  # noqa: FBT001  # by place, from a pool
    global _worker  # noqa: PLW0603  # a pool's initializer has no other way to leave its work to the calls that follow
    # Ctrl-C and a supervisor's SIGTERM go to the whole group; the parent decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_later)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = Fingerprinter(scheme, load_lexicon(*words), sketched=sketched)


def _end_later(number: int, frame: FrameType | None) -> None:
    del number, frame
    later = threading.Timer(_GRACE_S, os._exit, (1,))
    later.daemon = True
    later.start()


def _end_with_parent() -> None:
    """A parent killed with -9 closes nothing: without this its workers would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _fingerprint(texts: list[str], languages: list[str]) -> Made:
    if _worker is None:
        raise RuntimeError("a worker was asked before it was started")
    return _made(_worker, texts, languages)


def _made(fingerprinter: Fingerprinter, texts: Sequence[str], languages: Sequence[str]) -> Made:
    began_s = time.perf_counter()
    fingerprints = fingerprinter.fingerprint(texts, languages)
    return Made(fingerprints, time.perf_counter() - began_s)
