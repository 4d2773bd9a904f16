"""Sends the feed while everything else happens, so that there is always something that is not answered."""

import threading
import time
from contextlib import AbstractContextManager
from typing import Final, Self

from confluent_kafka import Producer

from tests.chaos.kafka.known_feed import KnownFeed
from tests.chaos.kafka.places import Onlooker, done
from tests.kafka.topics import Topics

NUMBER: Final = "number"
"""The header by which a message is known again."""
BACKLOG: Final = 1_000
BURST: Final = 200
_LOOK_S: Final = 0.1


class Feeding(AbstractContextManager["Feeding"]):
    """A thread that sends so many messages a second, and a burst when it is asked to.

    It keeps back while ``BACKLOG`` of them are not answered. ``rate`` is what it sends beside the bursts.
    """

    def __init__(self, topics: Topics, feed: KnownFeed, rate: float) -> None:
        self.feed = feed
        self._topics = topics
        self._rate = rate
        self._bursts = 0
        # Whatever happens to the broker, each message is in its topic once.
        self._producer = Producer(
            {
                "bootstrap.servers": topics.address,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="feeding")

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what was not sent."""
        self._ended.set()
        self._thread.join()
        self._producer.purge()
        self._producer.close()

    def burst(self) -> None:
        """Send so many at once that there is something to do for a while."""
        self._bursts += BURST

    def fill(self, messages: int) -> None:
        """Send so many in all, as fast as they are answered."""
        self._bursts = max(self._bursts, messages)

    def check(self) -> None:
        """Raise what ended it."""
        if self._failure is not None:
            raise self._failure

    def end(self, seconds: float) -> None:
        """Send no more, and return when all that was made is in its topic."""
        self._ended.set()
        self._thread.join()
        self.check()
        left = self._producer.flush(seconds)
        assert left == 0, f"{left} messages could not be sent"

    def _run(self) -> None:
        onlooker = Onlooker(self._topics)
        answered = 0
        began_s = time.monotonic()
        try:
            while not self._ended.wait(_LOOK_S):
                places = onlooker.look()
                answered = answered if places is None else done(places)
                due = self._rate * (time.monotonic() - began_s) + self._bursts
                while len(self.feed.made) < min(due, answered + BACKLOG):
                    self._send()
        except BaseException as failure:  # noqa: BLE001  # it is raised again where somebody sees it
            self._failure = failure
        finally:
            onlooker.close()

    def _send(self) -> None:
        number = len(self.feed.made)
        made = self.feed.next()
        self._producer.produce(self._topics.source, made.value, made.key, headers=[(NUMBER, str(number).encode())])
        self._producer.poll(0)
