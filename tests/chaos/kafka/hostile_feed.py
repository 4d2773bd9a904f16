"""An endless feed of hostile messages, generated from a seed."""

import random
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, get_args

from tests.chaos.kafka.feed_message import (
    PLAIN,
    VERDICT,
    Codec,
    Expected,
    FeedMessage,
    Header,
    Transaction,
    Way,
    letter,
)
from tests.chaos.kafka.hostile_values import LARGE_BYTES, Case, ValueFormat, sized, words

CODECS: Final[tuple[Codec, ...]] = get_args(Codec)
_STRONG: Final[tuple[Codec, ...]] = ("gzip", "zstd")
BURST: Final = 16
"""How many records of 8 MiB, which compress to a few KiB each, come in a row."""
RECENT: Final = 400
_MS: Final = 1_000
_DAY_MS: Final = 86_400 * _MS
_NOW_MS: Final = 1_795_000_000_000
"""Roughly the time of a run. It is a constant so that a seed gives the same feed every day."""
_LONG_MAX: Final = 2**63 - 1
_RAW_TIMES_MS: Final = (-1, 0, -2, -_DAY_MS, -62_135_596_800_000, _LONG_MAX)
"""No timestamp, and values that client libraries refuse or replace."""
_TIMES_MS: Final = (
    1, _DAY_MS, 946_684_800_000, _NOW_MS - 8 * _DAY_MS, _NOW_MS - 400 * _DAY_MS, _NOW_MS + 400 * _DAY_MS,
    253_402_300_799_000, 253_402_300_800_000, _NOW_MS // _MS, _NOW_MS * _MS, _NOW_MS * _MS * _MS, _LONG_MAX - 1,
)  # fmt: skip
_OURS: Final = (
    b"dupwatch-schema", b"dupwatch-reason", b"dupwatch-detail", b"dupwatch-timestamp-ms", b"dupwatch-replays",
    b"dupwatch-origin-partition", b"dupwatch-origin-offset", b"dupwatch-size-bytes", b"dupwatch-cut-of-bytes",
    b"__connect.errors.partition", b"__connect.errors.offset", b"__connect.errors.topic", b"traceparent", b"tracestate",
    b"baggage", b"ce_id", b"content-type",
)  # fmt: skip
_OUR_VALUES: Final = (b"", None, b"dupwatch.dead-letter/1", b"\xff\xfe", b"-1", b"9" * 30, b"00-0-0-00", b"\0")
_NOT_UTF8: Final = (b"\xff", b"caf\xe9", b"\xed\xa0\x80", b"\xe6\xb8", b"\xc0\x80", b"\xf8\x88\x80\x80\x80")
_LATIN_NAMES: Final = (b"", b" ", b"a\0b", "港口".encode(), "\ufdfa".encode(), b"n" * 20_000, b"\r\n", b"name")


class HostileFeed:
    """Generates messages one at a time; the same seed gives the same messages. ``without`` names cases to leave out."""

    def __init__(self, seed: str, values: ValueFormat, without: Collection[str] = ()) -> None:
        self._chance = random.Random(f"hostile {seed}")
        self._values = values
        self._cases: Sequence[Case] = [case for case in values.cases if case.name not in without]
        self._weights = [case.weight for case in self._cases]
        self._count = 0
        self._transactions = 0
        self._pending: deque[FeedMessage] = deque()
        self._large = sized(values.write, LARGE_BYTES, "p")
        makers: Mapping[str, tuple[Callable[[Sequence[FeedMessage]], FeedMessage], float]] = {
            "value": (self._of_value, 60),
            "key": (self._of_key, 8),
            "headers": (self._of_headers, 10),
            "raw headers": (self._of_raw_headers, 6),
            "time": (self._of_time, 8),
            "tombstone": (self._of_tombstones, 4),
            "transaction": (self._of_transaction, 6),
            "burst": (self._of_burst, 0.05),
        }
        self._makers = {make: weight for name, (make, weight) in makers.items() if name not in without}

    def next(self, before: Sequence[FeedMessage]) -> FeedMessage:
        """The next message; ``before`` is everything the feed has sent so far."""
        if not self._pending:
            make = self._chance.choices(list(self._makers), list(self._makers.values()))[0]
            self._pending.appendleft(make(before))
        self._count += 1
        return self._pending.popleft()

    def _of_value(self, _: Sequence[FeedMessage]) -> FeedMessage:
        case = self._chance.choices(self._cases, self._weights)[0]
        codec = self._chance.choice(CODECS)
        return FeedMessage(
            self._id(), case.make(self._chance), expected=case.expected, way=Way(codec=codec), case=case.name
        )

    def _of_key(self, _: Sequence[FeedMessage]) -> FeedMessage:
        keys: list[tuple[bytes | None, Expected]] = [
            (None, letter("missing_key")),
            (b"", letter("empty_id")),
            (self._id() + self._chance.choice(_NOT_UTF8), letter("invalid_key")),
            (self._chance.randbytes(self._chance.randint(100, 600)), letter("invalid_key")),
            (self._id() + b"\0", letter("nul_character")),
            (self._id().ljust(512, b"k"), VERDICT),
            (self._id().ljust(513, b"k"), letter("id_too_long")),
            (self._id().ljust(self._chance.choice((10_000, 1 << 20)), b"k"), letter("id_too_long")),
            (self._id() + " \u202e\u200b港口\r\n".encode(), VERDICT),
        ]
        key, expected = self._chance.choice(keys)
        value = self._chance.choice((self._article(), self._article(), None))
        return FeedMessage(key, value, expected=expected, case="key")

    def _of_headers(self, _: Sequence[FeedMessage]) -> FeedMessage:
        """Headers that a client library sends."""
        headers = self._chance.choice((self._few_headers, self._our_headers, self._many_headers))()
        return self._dressed("headers", Way(headers, codec=self._chance.choice(CODECS)))

    def _of_raw_headers(self, _: Sequence[FeedMessage]) -> FeedMessage:
        """Headers that no client library sends."""
        names = self._chance.choices([*_NOT_UTF8, *_LATIN_NAMES], k=self._chance.randint(1, 6))
        headers = tuple((name, self._header_value()) for name in names)
        return self._dressed("raw headers", Way((*headers, (self._chance.choice(_NOT_UTF8), b"v")), raw=True))

    def _of_time(self, _: Sequence[FeedMessage]) -> FeedMessage:
        if self._chance.random() < 0.4:
            return self._dressed("time", Way(timestamp_ms=self._chance.choice(_RAW_TIMES_MS), raw=True))
        codec = self._chance.choice(CODECS)
        return self._dressed("time", Way(timestamp_ms=self._chance.choice(_TIMES_MS), codec=codec))

    def _dressed(self, case: str, way: Way) -> FeedMessage:
        """An article, a tombstone or poison, sent this way: dead letters and the clean feed have to preserve it."""
        key = self._id()
        value, expected = self._chance.choice(
            ((self._article(), VERDICT), (self._article(), VERDICT), (None, VERDICT), self._refused())
        )
        return FeedMessage(key, value, expected=expected, way=way, case=case)

    def _refused(self) -> tuple[bytes, Expected]:
        return self._values.write("t" * 5_000, "a text under too long a title", ""), letter("field_too_long")

    def _of_tombstones(self, _: Sequence[FeedMessage]) -> FeedMessage:
        """Tombstones of an unknown id, sometimes with its article in between."""
        key = self._id()
        gone = FeedMessage(key, None, case="tombstone")
        between = [FeedMessage(key, self._article(), case="tombstone")] if self._chance.random() < 0.5 else []
        self._pending.extend([*[gone] * self._chance.randint(0, 3), *between, gone])
        return gone

    def _of_transaction(self, before: Sequence[FeedMessage]) -> FeedMessage:
        """A transaction of up to six messages. Those of an aborted one would do harm if they were judged."""
        self._transactions += 1
        aborted = self._chance.random() < 0.5
        count = self._chance.randint(1, 6)
        lot = [self._harmful(before) if aborted else self._dressed("transaction", PLAIN) for _ in range(count)]
        self._pending.extend(
            message._replace(
                case="aborted" if aborted else "committed",
                way=Way(transaction=Transaction(self._transactions, at == count, aborted)),
            )
            for at, message in enumerate(lot, 1)
        )
        return self._pending.popleft()

    def _harmful(self, before: Sequence[FeedMessage]) -> FeedMessage:
        """A copy of a known text, or a retraction or a new version of a known article."""
        known = [earlier for earlier in before[-RECENT:] if earlier.group is not None]
        if not known or self._chance.random() < 0.3:
            return FeedMessage(self._id(), self._chance.choice((self._article(), self._chance.randbytes(50))))
        chosen = self._chance.choice(known)
        if self._chance.random() < 0.6:
            return FeedMessage(chosen.key, self._chance.choice((None, self._article())))
        return FeedMessage(self._id(), chosen.value)

    def _of_burst(self, _: Sequence[FeedMessage]) -> FeedMessage:
        codec = self._chance.choice(_STRONG)
        lot = [
            FeedMessage(self._id(), self._large, way=Way(codec=codec, partition=0), case="burst") for _ in range(BURST)
        ]
        self._pending.extend(lot[1:])
        return lot[0]

    def _few_headers(self) -> tuple[Header, ...]:
        names = ("a", "a", "A", "港口", "x" * 1_000, "\ufdfa", "\u202e", " ")
        return tuple(
            (self._chance.choice(names).encode(), self._header_value()) for _ in range(self._chance.randint(1, 9))
        )

    def _our_headers(self) -> tuple[Header, ...]:
        """Header names that dupwatch itself uses in events and dead letters."""
        return tuple(
            (self._chance.choice(_OURS), self._chance.choice(_OUR_VALUES)) for _ in range(self._chance.randint(1, 9))
        )

    def _many_headers(self) -> tuple[Header, ...]:
        count = self._chance.choice((100, 1_000, 3_000))
        return tuple((b"h%d" % number, self._chance.choice((b"", None, b"v" * 20))) for number in range(count))

    def _header_value(self) -> bytes | None:
        values = (None, b"", b"\0", b"\xff\xfe", self._chance.randbytes(20), b"v" * 10_000)
        return self._chance.choice(values)

    def _article(self) -> bytes:
        return self._values.write(words(self._chance, 3), words(self._chance), "")

    def _id(self) -> bytes:
        return b"hostile %d.%d" % (self._count, self._chance.randrange(10**9))
