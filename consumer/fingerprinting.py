"""Where fingerprints are made: in this process, or on worker processes while the batch before is judged."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import Protocol

from consumer.fingerprint import Fingerprinter, Fingerprints, Lexicon, Scheme
from consumer.lexicon import load_lexicon


class Fingerprinting(Protocol):
    """Texts in, fingerprints out, some time later."""

    @property
    def ahead(self) -> int:
        """How many batches are worth having under way at once; 0 where nothing runs beside the caller."""
        ...

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[Fingerprints]":
        """Begin with a batch and the languages its texts declare. Results do not depend on where, or in what batch."""
        ...

    def close(self) -> None:
        """Stop, without waiting for what nobody will ask for any more."""
        ...


class InProcess:
    """Fingerprints are made at once, by the caller."""

    def __init__(self, scheme: Scheme, lexicon: Lexicon) -> None:
        self._fingerprinter = Fingerprinter(scheme, lexicon)

    @property
    def ahead(self) -> int:
        """Nothing runs beside the caller."""
        return 0

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[Fingerprints]":
        """Make the fingerprints before returning."""
        future: Future[Fingerprints] = Future()
        future.set_result(self._fingerprinter.fingerprint(texts, languages))
        return future

    def close(self) -> None:
        """There is nothing to stop."""


class OnWorkers:
    """Fingerprints are made by spawned processes, each with a dictionary of its own (about 150 MB).

    Spawned, not forked: a fork would carry over the store's locks and the client libraries' threads.
    """

    def __init__(self, scheme: Scheme, workers: int) -> None:
        self._workers = workers
        self._pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(scheme,)
        )

    @property
    def ahead(self) -> int:
        """One batch for each worker, and one that waits for the next to be free."""
        return self._workers + 1

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[Fingerprints]":
        """Hand the batch to the next free worker."""
        return self._pool.submit(_fingerprint, list(texts), list(languages))

    def close(self) -> None:
        """Cancel what waits; workers end with what they are at."""
        self._pool.shutdown(wait=True, cancel_futures=True)


_worker: Fingerprinter | None = None


def _start_worker(scheme: Scheme) -> None:
    global _worker  # noqa: PLW0603  # a pool's initializer has no other way to leave its work to the calls that follow
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides what it means
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = Fingerprinter(scheme, load_lexicon())


def _end_with_parent() -> None:
    """A parent killed with -9 closes nothing: without this its workers would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _fingerprint(texts: list[str], languages: list[str]) -> Fingerprints:
    if _worker is None:
        raise RuntimeError("a worker was asked before it was started")
    return _worker.fingerprint(texts, languages)
