"""The feed of ``dupwatch demo``: a thread sends the records of a file to a topic at a steady rate."""

import threading
import time
from collections.abc import Callable
from typing import Final

from consumer.kafka.feed_sender import FeedSender
from consumer.model.article import Article
from consumer.model.ports import Source
from consumer.model.record import RawRecord

_JOIN_S: Final = 15.0
_READY_S: Final = 0.02
_PARTITION: Final = 0


class DemoFeed:
    """A feed that sends the records of ``source`` to a topic at ``rate`` records a second, and reports the end.

    ``destination`` is the address of the brokers and the topic. All records go to one partition, so that they are
    judged in the order of the feed. ``on_finished`` is called, from any thread, once all records are sent and at least
    as many records of the topic have a verdict or dead letter, and again after each later answer. It is also called if
    sending fails.
    """

    def __init__(
        self,
        source: Source,
        decode: Callable[[RawRecord], Article],
        destination: tuple[str, str],
        rate: float,
        on_finished: Callable[[], None],
    ) -> None:
        self._source = source
        self._decode = decode
        self._address, self._topic = destination
        self._rate = rate
        self._on_finished = on_finished
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._began_s = time.monotonic()
        self._sent = 0
        self._answered = 0
        self._all_sent = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self, ready: Callable[[], bool]) -> None:
        """Start a thread that sends records once ``ready`` returns True.

        Records sent before that would pile up, and then be judged in a burst.
        """
        self._thread = threading.Thread(target=self._run, args=(ready,), name="demo-feed", daemon=True)
        self._thread.start()

    def seconds(self) -> float:
        """Return the time since the first record was due, in seconds."""
        return time.monotonic() - self._began_s

    def count_answered(self, records: int) -> None:
        """Count records of the topic that have received a verdict or a dead letter."""
        with self._lock:
            self._answered += records
        self._report_if_finished()

    def close(self) -> None:
        """Stop sending, and wait a while for the thread to end. Raises the error that ended it early, if any."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)
        if self._error is not None:
            raise self._error

    def _run(self, ready: Callable[[], bool]) -> None:
        while not ready():
            if self._stop.wait(_READY_S):
                return
        try:
            self._send()
        except Exception as error:  # noqa: BLE001  # raised again when the demo ends
            self._error = error
        if self._error is not None:
            self._on_finished()
            return
        with self._lock:
            self._all_sent = True
        self._report_if_finished()

    def _send(self) -> None:
        sender = FeedSender(
            {"bootstrap.servers": self._address, "enable.idempotence": True, "linger.ms": 2},
            self._topic,
            self._decode,
            _PARTITION,
        )
        self._began_s = time.monotonic()
        if sender.send(self._source.batches(), self._rate, self._wait):
            sender.finish(self._wait)
        else:
            sender.drop()
        self._sent = sender.sent

    def _wait(self, seconds: float) -> bool:
        # A wait of zero seconds would still yield the processor for each record.
        return self._stop.wait(seconds) if seconds > 0 else self._stop.is_set()

    def _report_if_finished(self) -> None:
        with self._lock:
            done = self._all_sent and self._answered >= self._sent
        if done:
            self._on_finished()
