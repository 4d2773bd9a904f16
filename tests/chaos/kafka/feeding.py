"""Sends the feed while everything else happens, so that there is always something that is not answered."""

import threading
import time
from contextlib import AbstractContextManager
from typing import Final, Self

from tests.chaos.kafka.known_feed import KnownFeed
from tests.chaos.kafka.places import Onlooker, lag
from tests.chaos.kafka.sending import Senders
from tests.kafka.topics import Topics

BACKLOG: Final = 1_000
BURST: Final = 200
_LOOK_S: Final = 0.1


class Feeding(AbstractContextManager["Feeding"]):
    """A thread that sends this many messages a second, and a burst when asked.

    It keeps back while ``BACKLOG`` of them are not answered. ``rate`` is what it sends beside the bursts.
    """

    def __init__(self, topics: Topics, feed: KnownFeed, rate: float) -> None:
        self.feed = feed
        self._topics = topics
        self._rate = rate
        self._bursts = 0
        self._senders = Senders(topics)
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
        self._senders.close()

    def burst(self) -> None:
        """Send enough at once to keep the consumers busy for a while."""
        self._bursts += BURST

    def fill(self, messages: int) -> None:
        """Send up to this total, as fast as messages are answered."""
        self._bursts = max(self._bursts, messages)

    def check(self) -> None:
        """Raise what ended it."""
        if self._failure is not None:
            raise self._failure
        self._senders.check()

    def end(self, seconds: float) -> None:
        """Send no more but a last article to each partition, and return when all that was made is in its topic."""
        self._ended.set()
        self._thread.join()
        self.check()
        left = self._senders.flush(seconds)
        assert left == 0, f"{left} messages could not be sent"
        for partition in range(self._topics.partitions):
            self._senders.send(len(self.feed.messages), self.feed.last_of(partition))
        assert self._senders.flush(seconds) == 0, "the last messages could not be sent"

    def _run(self) -> None:
        onlooker = Onlooker(self._topics)
        began_s = time.monotonic()
        room = BACKLOG
        try:
            while not self._ended.wait(_LOOK_S):
                places = onlooker.look()
                if places is not None:
                    # Offsets, of which the ends of transactions are some.
                    room = BACKLOG - lag(places) - self._senders.unsent()
                due = int(self._rate * (time.monotonic() - began_s) + self._bursts) - len(self.feed.messages)
                due = max(0, min(due, room))
                room -= due
                for _ in range(due):
                    self._senders.send(len(self.feed.messages), self.feed.next())
        except BaseException as failure:  # noqa: BLE001  # it is raised again where somebody sees it
            self._failure = failure
        finally:
            onlooker.close()
