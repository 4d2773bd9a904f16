"""An engine that several threads share: one of them at a time computes."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from consumer.fingerprint import KnownShingles
from consumer.workers.engines import SerializedEngine

THREADS = 4


class Crowded:
    """Notes how many threads are in it at once; each waits for the others for a moment."""

    def __init__(self) -> None:
        self.most = 0
        self._inside = 0
        self._together = threading.Barrier(THREADS)
        self._lock = threading.Lock()

    def fingerprint(self, texts: Sequence[str], languages: Sequence[str] | None = None, known: Any = None) -> Any:  # noqa: ANN401  # no engine's
        """Compute nothing."""
        self._compute()

    def smallest_shingles(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Any:  # noqa: ANN401  # no engine's
        """Compute nothing either."""
        self._compute()

    def _compute(self) -> None:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        # They meet where nobody keeps them apart; otherwise nobody comes.
        with suppress(threading.BrokenBarrierError):
            self._together.wait(0.2)
        with self._lock:
            self._inside -= 1


def test_threads_take_turns() -> None:
    """However many ask at the same time."""
    crowded = Crowded()
    engine = SerializedEngine(crowded)  # type: ignore[arg-type]  # it has all that is used
    with ThreadPoolExecutor(THREADS) as pool:
        calls = [engine.fingerprint, engine.smallest_shingles] * 2
        list(pool.map(lambda call: call(["text"], [""]), calls))
    assert crowded.most == 1


def test_the_engine_gets_what_is_asked_for() -> None:
    """Texts, languages and known shingles, and the caller gets its results."""

    class Echo:
        def fingerprint(self, *asked: object) -> object:
            return asked

        smallest_shingles = fingerprint

    engine = SerializedEngine(Echo())  # type: ignore[arg-type]  # it has all that is used
    known = KnownShingles(np.array([1], dtype=np.uint64))
    asked: list[object] = [engine.fingerprint(["a"], ["zh"], known), engine.smallest_shingles(["b"], ["en"])]
    assert asked == [(["a"], ["zh"], known), (["b"], ["en"])]
