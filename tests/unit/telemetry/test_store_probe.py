"""What the probe of a store reports."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from consumer.model.hooks import Hooks, Outage
from consumer.telemetry.store_probe import ANSWER_S_MAX, PAUSE_S, StoreProbe
from storage.errors import StoreUnavailable
from storage.memory import MemoryStore

WAIT_S = 60


class Reports:
    """Keeps what is reported, and lets a test wait for it."""

    def __init__(self) -> None:
        self._reports: list[str | None] = []
        self._changed = threading.Condition()

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(Outage, self._tell)

    def _tell(self, outage: Outage) -> None:
        with self._changed:
            self._reports.append(outage.reason)
            self._changed.notify_all()

    def wait_for(self, what: str | None) -> None:
        """Wait until this is the last report."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._reports[-1:] == [what], WAIT_S), self._reports


class Moody(MemoryStore):
    """Answers unless it is given an error to raise."""

    error: Exception | None = None

    def settings(self) -> bytes | None:
        """As the port says."""
        if self.error is not None:
            raise self.error
        return super().settings()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StoreUnavailable("nobody is there"), "nobody is there"),
        (ZeroDivisionError(), "the probe failed: ZeroDivisionError()"),
    ],
)
def test_an_outage_is_told_and_its_end(error: Exception, words: str) -> None:
    """Any error is reported, the store is opened again until it answers, and that is reported, too."""
    store, reports, opened = Moody(), Reports(), 0

    @contextmanager
    def open_store() -> Iterator[Moody]:
        nonlocal opened
        opened += 1
        yield store

    with StoreProbe(open_store, Hooks(reports), pause_s=0.001):
        reports.wait_for(None)
        assert opened == 1
        store.error = error
        reports.wait_for(words)
        store.error = None
        reports.wait_for(None)
        assert opened > 1


def test_an_outage_is_told_within_ten_seconds() -> None:
    """As the documentation promises: the pause, and then the time for an answer."""
    assert PAUSE_S + ANSWER_S_MAX < 10


def test_nobody_is_asked_after_it_was_left() -> None:
    """The thread ends with the context, however long its pause is."""
    reports = Reports()

    @contextmanager
    def open_store() -> Iterator[Moody]:
        yield Moody()

    with StoreProbe(open_store, Hooks(reports), pause_s=3600):
        reports.wait_for(None)
    assert "store-probe" not in {thread.name for thread in threading.enumerate()}
