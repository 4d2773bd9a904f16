"""A message of the feed: its content, how it is sent, and which answers it may get."""

from typing import Final, Literal, NamedTuple

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Header = tuple[bytes, bytes | None]


class Expected(NamedTuple):
    """The answers a message may get: a verdict, a dead letter, or either.

    ``reasons`` are the reasons a dead letter may have; None allows any.
    """

    verdict: bool = True
    reasons: frozenset[str] | None = frozenset()

    @property
    def letter(self) -> bool:
        """Whether the message may become a dead letter."""
        return self.reasons is None or bool(self.reasons)


VERDICT: Final = Expected()
EITHER: Final = Expected(verdict=True, reasons=None)
"""One answer, of either kind."""
POISON: Final = Expected(verdict=False, reasons=None)


def letter(*reasons: str) -> Expected:
    """A dead letter with one of these reasons."""
    return Expected(verdict=False, reasons=frozenset(reasons))


class Transaction(NamedTuple):
    """The transaction of a message: its number, whether the message is its last, and how it ends."""

    number: int
    last: bool
    aborted: bool


class Way(NamedTuple):
    """How a message is sent.

    A ``timestamp_ms`` of None is the time of sending. ``raw`` messages have headers or timestamps that no client
    library sends, so their batch is written byte by byte. With a ``partition`` of None the client chooses it.
    """

    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    codec: Codec = "none"
    raw: bool = False
    partition: int | None = None
    transaction: Transaction | None = None


PLAIN: Final = Way()


class FeedMessage(NamedTuple):
    """A message; a ``value`` of None is a retraction. Members of a group have its number and their ``text``.

    ``case`` names what is hostile about the message.
    """

    key: bytes | None
    value: bytes | None
    group: int | None = None
    text: str | None = None
    expected: Expected = VERDICT
    way: Way = PLAIN
    case: str = ""

    @property
    def aborted(self) -> bool:
        """Whether its transaction is aborted: then it must get no answer."""
        return self.way.transaction is not None and self.way.transaction.aborted
