"""Events and records of the topic of flags, and a store that says what it is told."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from consumer.console.context import ArticleView
from consumer.console.intake.event_reading import place_in_topic
from consumer.judge.events import released_event
from consumer.kafka.message import Offsets, offsets_in
from consumer.model.bank_match import BankMatchEvent
from consumer.model.errors import Abandoned
from consumer.model.near_miss import NearMiss
from consumer.model.near_miss import encode as encode_near_miss
from consumer.model.record import End, RawBatch, RawRecord
from consumer.model.verdict import BankMention, EndedBefore, Verdict, encode
from consumer.reviews.database import Connection
from consumer.text.timestamps import rfc3339
from tests.builders import raw_message

AT_MS = 1_764_000_000_000
AT = rfc3339(AT_MS)
TOPIC = "p.duplicates"
MISSED_TOPIC = "p.near-misses"
MATCHES_TOPIC = "p.bank-matches"


def version(number: int) -> str:
    """The name of a version."""
    return f"{number:032x}"


def flag(number: int, original: int = 0, arrived_at: str = AT) -> Verdict:
    """A flag of the article ``aNUMBER``, whose source is ``sNUMBER``."""
    return Verdict(
        id=f"a{number}",
        version=version(number),
        outcome="duplicate",
        duplicate_of=f"a{original}",
        duplicate_of_version=version(original),
        distance=3,
        similarity=0.9,
        cluster=f"a{original}",
        arrived_at=arrived_at,
        decided_at=arrived_at,
        source=f"s{number}",
        original_source=f"s{original}",
    )


def of_earlier_version(event: Verdict) -> Verdict:
    """The same event as an earlier version of dupwatch sends it, without sources."""
    return msgspec.structs.replace(event, source=msgspec.UNSET, original_source=msgspec.UNSET)


def release(number: int, original: int = 0) -> Verdict:
    """The release of that flag."""
    return released_event(flag(number, original), by="Ann", reason=None, decided_ms=AT_MS).verdict


def missed(number: int, original: int = 0, **fields: Any) -> NearMiss:  # noqa: ANN401  # whichever of its fields
    """A near miss of the article ``aNUMBER``."""
    values: dict[str, Any] = {
        "id": f"a{number}", "version": version(number), "original": f"a{original}",
        "original_version": version(original), "source": "post", "original_source": "wire", "similarity": 0.7,
        "threshold": 0.75, "distance": 9, "sampled_in": 20.0, "truncated": False, "arrived_at": AT, "decided_at": AT,
    }  # fmt: skip
    return NearMiss(**(values | fields))


def unique(number: int, **fields: Any) -> Verdict:  # noqa: ANN401  # whichever of its fields
    """The verdict on an article that was kept."""
    values = {
        "id": f"a{number}", "version": version(number), "outcome": "unique", "arrived_at": AT, "decided_at": AT,
    }  # fmt: skip
    return Verdict(**(values | fields))


def repeat(number: int, ended: int = 0, **fields: Any) -> Verdict:  # noqa: ANN401  # whichever of its fields
    """The verdict on an article that repeats one that had ended."""
    before = EndedBefore(id=f"a{ended}", version=version(ended), ended_at=AT, similarity=0.8)
    return unique(number, ended_before=before, **fields)


def denied(item: str = "offer", similarity: float = 0.7, action: Any = "deny") -> BankMention:  # noqa: ANN401
    """An item that an article repeats."""
    return BankMention(bank="scams", item=item, action=action, form="similar", similarity=similarity)


def matched(number: int, *, retroactive: bool = False, **of_item: Any) -> BankMatchEvent:  # noqa: ANN401
    """A bank match of the article ``aNUMBER``."""
    return BankMatchEvent(
        id=f"a{number}", version=version(number), outcome="unique", banks=(denied(**of_item),), arrived_at=AT,
        decided_at=AT, retroactive=True if retroactive else msgspec.UNSET,
    )  # fmt: skip


def record(value: bytes | None, offset: int = 0, topic: str = TOPIC) -> RawRecord:
    """A record of a topic."""
    return raw_message(value, offset=offset, topic=topic)


def batch(*verdicts: Verdict | bytes | None, begin: int = 0) -> RawBatch:
    """A batch of events, or of whatever else is in the topic."""
    values = [encode(each) if isinstance(each, Verdict) else each for each in verdicts]
    records = tuple(record(value, begin + number) for number, value in enumerate(values))
    return RawBatch(records, Offsets({(TOPIC, 0): begin + len(values)}, 1))


def missed_batch(*near_misses: NearMiss | bytes | None, begin: int = 0) -> RawBatch:
    """A batch of near misses, or of whatever else is in their topic."""
    values = [encode_near_miss(each) if isinstance(each, NearMiss) else each for each in near_misses]
    records = tuple(record(value, begin + number, MISSED_TOPIC) for number, value in enumerate(values))
    return RawBatch(records, Offsets({(MISSED_TOPIC, 0): begin + len(values)}, 1))


def matched_batch(*matches: BankMatchEvent | bytes, begin: int = 0) -> RawBatch:
    """A batch of bank matches, or of whatever else is in their topic."""
    values = [each if isinstance(each, bytes) else msgspec.json.encode(each) for each in matches]
    records = tuple(record(value, begin + number, MATCHES_TOPIC) for number, value in enumerate(values))
    return RawBatch(records, Offsets({(MATCHES_TOPIC, 0): begin + len(values)}, 1))


class ScriptedSource:
    """A topic that delivers these batches. ``lost`` of the next batches are given up once they are begun."""

    def __init__(self, *batches: RawBatch, lost: int = 0) -> None:
        self._batches = batches
        self._lost = lost
        self.noted: list[End] = []
        self.committed: list[int] = []
        self.abandoned = 0

    def batches(self) -> Iterator[RawBatch]:
        """Deliver them."""
        yield from self._batches

    def place_of(self, record: RawRecord) -> str:
        """Say where a record is."""
        return place_in_topic(record)

    def begin(self, end: End) -> None:
        """Begin one."""

    def check(self) -> None:
        """Give a batch up."""
        if self._lost:
            self._lost -= 1
            raise Abandoned("another consumer has it")

    def note(self, _connection: Connection, end: End) -> None:
        """Note that its events are being stored."""
        self.noted.append(end)

    def commit(self, end: End) -> None:
        """Note how far it came."""
        self.check()
        self.committed += offsets_in(end).next.values()

    def abandon(self) -> None:
        """Note that it was given up."""
        self.abandoned += 1


class SourcesStore:
    """A store that knows the source of each article, and of no more than is asked for."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.sources = dict(sources)
        self.error: Exception | None = None
        self.calls: list[int] = []

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Return what is known."""
        self.calls.append(len(pairs))
        if self.error is not None:
            raise self.error
        assert not bodies
        return [
            ArticleView(name, of, "", self.sources[name], "", "", 0, None, None, None, ())
            if name in self.sources
            else None
            for name, of in pairs
        ]
