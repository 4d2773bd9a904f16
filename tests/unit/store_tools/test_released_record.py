"""Which record of a topic is a released version's, as the headers of its flags say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import pytest

from consumer.judge.events import version_name
from consumer.kafka.sink.event_headers import ORIGIN_OFFSET, ORIGIN_PARTITION, ORIGIN_TOPIC
from consumer.model.errors import SourceError
from consumer.model.record import Header, RawRecord
from consumer.model.verdict import Outcome, Verdict, decode_verdict, encode
from consumer.store_tools.released_record import RecordOrigins, RecordPosition, RecordSearch, ReturnObstacle
from consumer.store_tools.releases import FlaggedVersion
from storage.records import StoredVersion
from tests.builders import make_record, make_tombstone, raw_message

RECORD = make_record("a")
PLACE = RecordPosition("articles", 2, 7)
ARRIVED = "2026-01-02T03:04:05.678Z"


def flag_of(
    article_id: str = "a", content: str = version_name(RECORD.reference), outcome: Outcome = "duplicate"
) -> bytes:
    """Write the verdict on an article."""
    verdict = Verdict(
        id=article_id, version=content, outcome=outcome, scheme="test/1", arrived_at=ARRIVED, decided_at=ARRIVED,
    )  # fmt: skip
    return encode(verdict)


STORED = StoredVersion(RECORD, flag_of(), None)


def message(data: bytes, key: bytes = b"a", headers: tuple[Header, ...] = ()) -> RawRecord:
    """Return a record of a topic."""
    return raw_message(data, key, headers=headers)


def origin(position: RecordPosition) -> tuple[Header, ...]:
    """Return the headers of a flag that name a record."""
    names = (ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET)
    return tuple((name, str(value).encode()) for name, value in zip(names, position, strict=True))


@dataclass
class Topics:
    """Flags, and records by where they are; the content says whether a record is the version."""

    flags: list[RawRecord] = field(default_factory=list)
    records: Mapping[RecordPosition, bytes] = field(default_factory=dict)
    asked: list[RecordPosition] = field(default_factory=list)
    readings: int = 0
    read: int = 0

    def flags_since(self, time_ms: int) -> Iterator[RawRecord]:
        """Yield all flags."""
        assert time_ms > 0
        self.readings += 1
        for flag in self.flags:
            self.read += 1
            yield flag

    def record_at(self, position: RecordPosition) -> RawRecord | None:
        """Return a record; topics with the name "secret" cannot be read."""
        self.asked.append(position)
        if position.topic == "secret":
            raise SourceError("not allowed")
        return message(self.records[position]) if position in self.records else None

    def search(self, stored: StoredVersion = STORED, known: RecordOrigins | None = None) -> RawRecord | ReturnObstacle:
        """Search for the record of a version."""
        flagged = FlaggedVersion(stored, decode_verdict(stored.verdict or b""))
        return self.searching().record_of(flagged, known)

    def searching(self) -> RecordSearch:
        """What searches here."""
        return RecordSearch(
            "p.duplicates", self.flags_since, self.record_at, lambda record, _: record.data == b"the version"
        )


def test_the_record_that_a_flag_names_is_found() -> None:
    """Each place is read once, and one that has another version by now does not end the search."""
    moved = PLACE._replace(offset=3)
    flags = [message(flag_of(), headers=origin(at)) for at in (moved, moved, PLACE)]
    topics = Topics(flags, {moved: b"another version", PLACE: b"the version"})
    found = topics.search()
    assert isinstance(found, RawRecord)
    assert found.data == b"the version"
    assert topics.asked == [moved, PLACE]


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (PLACE, "its record at articles [2] offset 7 no longer exists"),
        (PLACE._replace(offset=8), "the record at articles [2] offset 8 is not this version"),
        (PLACE._replace(topic="secret"), "its record at secret [2] offset 7 cannot be read: not allowed"),
    ],
)
def test_a_record_that_cannot_be_sent_again_has_a_reason(at: RecordPosition, why: str) -> None:
    """The reason names the record."""
    found = Topics([message(flag_of(), headers=origin(at))], {PLACE._replace(offset=8): b"another version"}).search()
    assert isinstance(found, ReturnObstacle)
    assert found.reason.startswith(why)


@pytest.mark.parametrize(
    "flag",
    [
        message(b"not a verdict", headers=origin(PLACE)),
        message(flag_of(), key=b"b", headers=origin(PLACE)),
        message(flag_of(content="00" * 16), headers=origin(PLACE)),
        message(flag_of(outcome="unique"), headers=origin(PLACE)),
        message(flag_of()),
        message(flag_of(), headers=(*origin(PLACE)[:2], (ORIGIN_OFFSET, b"seven"))),
    ],
)
def test_other_messages_of_the_topic_name_nothing(flag: RawRecord) -> None:
    """Anybody may write to a topic, and flags of other versions are of no use."""
    topics = Topics([flag], {PLACE: b"the version"})
    assert topics.search() == ReturnObstacle("none of its flags in p.duplicates says where its record is")
    assert topics.asked == []


def from_topic(
    stored: StoredVersion = STORED, feed: str = "articles:2", sequence: int = 7, key: str | None = None
) -> StoredVersion:
    """Return the version with an origin, by default ``PLACE``."""
    return stored._replace(record=msgspec.structs.replace(stored.record, feed=feed, sequence=sequence, key=key))


def test_a_version_with_an_origin_is_read_there() -> None:
    """One record is read, and no flag, whatever flags name."""
    topics = Topics([message(flag_of(), headers=origin(PLACE._replace(offset=3)))], {PLACE: b"the version"})
    found = topics.search(from_topic())
    assert isinstance(found, RawRecord)
    assert (found.data, topics.asked, topics.readings) == (b"the version", [PLACE], 0)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (from_topic(sequence=9), ReturnObstacle("its record at articles [2] offset 9 no longer exists")),
        (
            from_topic(sequence=8),
            ReturnObstacle("the record at articles [2] offset 8 is not this version, as decoded with these settings"),
        ),
        (
            from_topic(feed="secret:2"),
            ReturnObstacle("its record at secret [2] offset 7 cannot be read: not allowed", is_temporary=True),
        ),
    ],
)
def test_what_is_not_at_its_origin_is_not_searched_for(stored: StoredVersion, expected: ReturnObstacle) -> None:
    """It is said what is there, though a flag names the record elsewhere."""
    records = {PLACE: b"the version", PLACE._replace(offset=8): b"another version"}
    topics = Topics([message(flag_of(), headers=origin(PLACE))], records)
    assert topics.search(stored) == expected
    assert (len(topics.asked), topics.readings) == (1, 0)


@pytest.mark.parametrize(
    "stored",
    [
        from_topic(feed="feed.jsonl@00ff"),
        from_topic(feed="stream 1764000000000"),
        from_topic(feed="owner:1", key="k 0"),
        from_topic(feed="", key="k 0"),
        from_topic(feed="articles:two"),
    ],
)
def test_what_came_from_no_topic_cannot_return_to_one(stored: StoredVersion) -> None:
    """A file, a stream or a request: nothing is read."""
    topics = Topics([message(flag_of(), headers=origin(PLACE))], {PLACE: b"the version"})
    assert topics.search(stored) == ReturnObstacle("it did not come from a topic")
    assert (topics.asked, topics.readings) == ([], 0)


def test_versions_with_an_origin_are_left_out_of_the_search() -> None:
    """The topic is not read for them."""
    topics = Topics(flags_of((0, 7), (1, 1)))
    assert topics.searching().origins_of([from_topic(FLAGGED[0])]).positions == {}
    assert topics.readings == 0
    known = topics.searching().origins_of([from_topic(FLAGGED[0]), FLAGGED[1]])
    assert known.positions == {MANY[1].reference: [PLACE._replace(offset=1)]}


def test_a_version_that_was_followed_does_not_return() -> None:
    """The clean feed keeps the last message of an id."""
    topics = Topics([message(flag_of(), headers=origin(PLACE))], {PLACE: b"the version"})
    found = topics.search(STORED._replace(ends_at=make_tombstone("a").arrival))
    assert isinstance(found, ReturnObstacle)
    assert "a later version or a retraction" in found.reason
    assert topics.asked == []


MANY = [make_record(f"a{number}") for number in range(5)]
FLAGGED = [StoredVersion(record, flag_of(record.id, version_name(record.reference)), None) for record in MANY]


def flags_of(*places: tuple[int, int], more: int = 0) -> list[RawRecord]:
    """Flags of some of these, each with the offset of its record, and others after them."""
    flags = [
        message(FLAGGED[n].verdict or b"", MANY[n].id.encode(), origin(PLACE._replace(offset=at))) for n, at in places
    ]
    return [*flags, *(message(flag_of(f"b{n}"), f"b{n}".encode(), origin(PLACE)) for n in range(more))]


def test_the_records_of_many_are_found_in_one_reading() -> None:
    """Which ends where all are found; then each record is read, and no flag any more."""
    topics = Topics(
        flags_of((1, 1), (0, 7), (0, 8), (2, 2), more=9),
        {PLACE._replace(offset=at): b"the version" for at in (1, 2, 7)},
    )
    known = topics.searching().origins_of(FLAGGED[:3])
    assert (topics.readings, topics.read, known.is_complete) == (1, 4, False)
    assert all(isinstance(topics.search(stored, known), RawRecord) for stored in FLAGGED[:3])
    assert (topics.readings, [at.offset for at in topics.asked]) == (1, [7, 1, 2])


def test_a_record_that_moved_is_searched_for_after_all() -> None:
    """What was found first may be gone: a topic was made anew, or its beginning was deleted. The rest of it counts."""
    topics = Topics(flags_of((0, 7), (1, 1), (0, 9)), {PLACE._replace(offset=9): b"the version"})
    known = topics.searching().origins_of(FLAGGED[:2])
    assert not known.is_complete
    assert isinstance(topics.search(FLAGGED[0], known), RawRecord)
    assert (topics.readings, [at.offset for at in topics.asked]) == (2, [7, 9])


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ([], "none of its flags in p.duplicates says where its record is"),
        ([(0, 7)], "its record at articles [2] offset 7 no longer exists"),
    ],
)
def test_a_topic_that_was_read_to_its_end_is_not_read_again(places: list[tuple[int, int]], why: str) -> None:
    """What it does not name, and what it names and is gone, is said at once."""
    topics = Topics(flags_of(*places, more=3))
    known = topics.searching().origins_of(FLAGGED[:2])
    assert known.is_complete
    assert topics.search(FLAGGED[0], known) == ReturnObstacle(why)
    assert (topics.readings, len(topics.asked)) == (1, len(places))


def test_what_was_not_looked_for_is_searched_for() -> None:
    """Also beside others that were, and what ended or was never judged is not looked for at all."""
    topics = Topics(flags_of((0, 7), (1, 1), more=3), {PLACE._replace(offset=1): b"the version"})
    nothing = topics.searching().origins_of(
        [FLAGGED[2]._replace(verdict=None), FLAGGED[3]._replace(ends_at=RECORD.arrival)]
    )
    assert (topics.readings, nothing.positions) == (0, {})
    for known in (nothing, topics.searching().origins_of(FLAGGED[:1])):
        assert isinstance(topics.search(FLAGGED[1], known), RawRecord)
