"""An endless feed with known duplicates: articles as messages, in an artificial language.

A **group** is a text and its copies. Copies are exact, or have a word changed; texts of two groups have nothing in
common. No article of a group is ever replaced or retracted, so of each group something is kept to the end, and of what
has one text never two. Beside them come articles of which that cannot be said: copies on the edge, new versions,
retractions; and messages that come again, and some that are no articles.
"""

import heapq
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from tests.chaos.kafka.feed_message import POISON, FeedMessage, Way
from tests.chaos.kafka.hostile_values import Write, json_value
from tests.chaos.written_feed import WORDS_AN_ARTICLE, word

RECENT: Final = 400
"""Copies and new versions are made of something among so many that came last."""
LATE_MAX: Final = 400
"""How many messages may come between two of a group."""
SHORT_WORDS: Final = 3
FLOOD: Final = 40


class Others(Protocol):
    """A source of other messages to mix into the feed."""

    def next(self, before: Sequence[FeedMessage]) -> FeedMessage:
        """The next message; ``before`` is everything the feed has sent so far."""
        ...


class KnownFeed:
    """Makes messages one by one; the same seed makes the same ones. ``messages`` has all so far, in order.

    A ``share`` of the messages comes from ``others``. ``write`` encodes the articles.
    """

    def __init__(self, seed: str, others: Others | None = None, share: float = 0.0, write: Write = json_value) -> None:
        self.messages: list[FeedMessage] = []
        self._others = others
        self._share = share
        self._write = write
        self._mixing = random.Random(f"mixing {seed}")
        self._chance = random.Random(f"feed {seed}")
        self._groups = 0
        self._due: list[tuple[int, int, FeedMessage]] = []
        self._loose: list[tuple[str, str]] = []
        self._makers: Mapping[Callable[[], FeedMessage], int] = {
            self._group: 20,
            self._loner: 10,
            self._edge: 8,
            self._new_version: 4,
            self._retraction: 2,
            self._again: 3,
            self._poison: 1,
        }

    def next(self) -> FeedMessage:
        """The next message."""
        if self._others is not None and self._mixing.random() < self._share:
            message = self._others.next(self.messages)
        elif self._due and self._due[0][0] <= len(self.messages):
            message = heapq.heappop(self._due)[2]
        else:
            message = self._chance.choices(list(self._makers), list(self._makers.values()))[0]()
        self.messages.append(message)
        return message

    def last_of(self, partition: int) -> FeedMessage:
        """An article for the end of a partition, so that the last offset there is not the marker of a transaction."""
        message = self._loner()._replace(way=Way(partition=partition))
        self.messages.append(message)
        return message

    def _group(self) -> FeedMessage:
        self._groups += 1
        short = self._chance.random() < 0.1
        size = FLOOD if self._chance.random() < 0.004 else self._chance.randint(2, 5)
        body = self._text(SHORT_WORDS if short else WORDS_AN_ARTICLE)
        members = []
        for number in range(size):
            exact = short or self._chance.random() < 0.6
            own = body if exact else self._edited(body, 1)
            members.append(self._article(f"group {self._groups}.{number}", own, self._groups))
        for number, member in enumerate(members[1:]):
            # At once, where it meets the others in judging, or later, where it finds what they left.
            late = self._chance.choice((0, 0, self._chance.randrange(LATE_MAX)))
            heapq.heappush(self._due, (len(self.messages) + late, FLOOD * self._groups + number, member))
        return members[0]

    def _loner(self) -> FeedMessage:
        return self._message(f"loner {len(self.messages)}", self._text(WORDS_AN_ARTICLE))

    def _edge(self) -> FeedMessage:
        _, body = self._recent()
        return self._message(f"edge {len(self.messages)}", self._edited(body, self._chance.randint(1, 12)))

    def _new_version(self) -> FeedMessage:
        (name, own), (_, other) = self._recent(), self._recent()
        return self._message(name, self._edited(self._chance.choice((own, other)), self._chance.randint(1, 12)))

    def _retraction(self) -> FeedMessage:
        return FeedMessage(self._recent()[0].encode(), None)

    def _again(self) -> FeedMessage:
        recent = [
            earlier
            for earlier in self.messages[-RECENT:]
            if earlier.value is not None and earlier.expected.verdict and not earlier.case
        ]
        return self._chance.choice(recent) if recent else self._loner()

    def _poison(self) -> FeedMessage:
        name = f"poison {len(self.messages)}".encode()
        key, value = self._chance.choice(
            [
                (name, b'{"title": "cut o'),
                (name, b"\xff\xfe"),
                (None, b'{"body": "a"}'),
                (name, b'{"id": "b", "body": "a"}'),
            ]
        )
        return FeedMessage(key, value, expected=POISON)

    def _recent(self) -> tuple[str, str]:
        if not self._loose:
            self._loner()
        return self._chance.choice(self._loose[-RECENT:])

    def _message(self, name: str, body: str) -> FeedMessage:
        self._loose.append((name, body))
        return self._article(name, body)

    def _text(self, words: int) -> str:
        return " ".join(word(self._chance) for _ in range(words))

    def _edited(self, body: str, changed: int) -> str:
        words = body.split()
        for place in self._chance.sample(range(len(words)), min(changed, len(words))):
            words[place] = word(self._chance)
        return " ".join(words)

    def _article(self, name: str, body: str, group: int | None = None) -> FeedMessage:
        value = self._write(f"Title of {name}", body, "")
        return FeedMessage(name.encode(), value, group, body if group is not None else None)
