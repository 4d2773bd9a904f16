"""The thread that owns the Kafka client, turn by turn, over a client that does what real ones seldom do."""

import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from consumer.kafka.membership import member_of
from consumer.kafka.offset_metadata import Held, Holding, Note, encode_note
from consumer.model.errors import Abandoned, SourceError
from consumer.model.limits import ReadLimits
from consumer.model.record import Message, Offsets, Partition, Position, RawRecord
from consumer.sources import commits, fetching, gaps, group_places, kafka_client
from consumer.sources.handover import Handover
from consumer.sources.kafka_client import ClientOptions, ClientThread
from consumer.sources.partitions import Partitions
from consumer.sources.progress import Place
from consumer.sources.unpacking import FAILURES_MAX
from tests.kafka.reading import Watched

P0, P1 = ("t", 0), ("t", 1)
LIMITS = ReadLimits(batch_records_max=4)
NOTHING = -1001


class Ended:
    """What a client gives in a message's place where it has ended a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def error(self) -> KafkaError:
        """Its place is out of range."""
        return KafkaError(KafkaError._AUTO_OFFSET_RESET)

    def topic(self) -> str:
        """Of the partition."""
        return self._partition[0]

    def partition(self) -> int:
        """Its number."""
        return self._partition[1]


class NotUnpacked(Ended):
    """What a client gives in a message's place where it cannot unpack a batch."""

    def __init__(self, partition: Partition, offset: int, code: int = KafkaError._BAD_COMPRESSION) -> None:
        super().__init__(partition)
        self._offset = offset
        self._code = code

    def error(self) -> KafkaError:
        """Its content is too large, or something else."""
        return KafkaError(self._code)

    def offset(self) -> int:
        """Where the batch begins."""
        return self._offset


class ArrivedAt(NotUnpacked):
    """A message, of which the client hands out its place only."""

    def error(self) -> None:  # type: ignore[override]  # a message has none
        """Nothing is wrong."""

    def value(self) -> None:
        """It has none."""

    def key(self) -> None:
        """It has none."""


class Client:
    """Stands in for librdkafka's consumer; what waits in ``queue`` comes with the next polls, callbacks are called."""

    def __init__(self) -> None:
        self.member = b"one"
        self.told: list[tuple[str, dict[Partition, int]]] = []
        self.queue: deque[Ended | Callable[[], None]] = deque()
        self.group: dict[Partition, int] = {}
        self.notes: dict[Partition, str] = {}
        self.logs: dict[Partition, tuple[int, int]] = {P0: (0, 100), P1: (0, 100)}
        self.refusal: int | None = None
        self.when_unassigned: Callable[[], None] = lambda: None
        self.on_commit: Callable[..., None] = lambda *_: None
        self.on_error: Callable[..., None] = lambda *_: None

    def subscribe(self, topics: Sequence[str], **callbacks: Any) -> None:  # noqa: ANN401  # the thread's own
        """Keep the callbacks."""
        assert topics == ["t"]
        self.callbacks = callbacks

    def later(self, what: str, *partitions: Partition) -> None:
        """Have a callback wait for the next poll."""
        self.queue.append(lambda: self.callbacks[what](self, [TopicPartition(*one) for one in partitions]))

    def consumer_group_metadata(self) -> bytes:
        """As librdkafka writes them."""
        return b"CGMDv2:" + struct.pack("=i", 1) + b"group\0" + self.member + b"\0\x01"

    def poll(self, timeout: float) -> Ended | None:
        """Call what waits, up to the first message."""
        del timeout
        while self.queue:
            waiting = self.queue.popleft()
            if isinstance(waiting, Ended):
                return waiting
            waiting()
        return None

    def consume(self, count: int, timeout: float) -> list[Ended]:
        """All there is comes one by one."""
        del count, timeout
        return []

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """What the group has."""
        del timeout
        keys = [(one.topic, one.partition) for one in asked]
        return [TopicPartition(*key, self.group.get(key, NOTHING), self.notes.get(key, "")) for key in keys]

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> list[TopicPartition]:
        """Refuse, or let the group have them."""
        self._note("commit", offsets)
        if self.refusal is not None:
            raise KafkaException(KafkaError(self.refusal))
        self.group.update({(one.topic, one.partition): one.offset for one in offsets})
        self.notes.update({(one.topic, one.partition): one.metadata for one in offsets if one.metadata})
        if asynchronous:
            self.queue.append(lambda: self.on_commit(None, offsets))
        return offsets

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """What waits for an answer may take this for it."""
        self._note("unassign", partitions)
        self.when_unassigned()

    def get_watermark_offsets(self, of: TopicPartition, **_: Any) -> tuple[int, int]:  # noqa: ANN401  # how, it is all one
        """Where the log begins and ends."""
        return self.logs[of.topic, of.partition]

    def list_topics(self, *_: object, **_how: object) -> None:
        """Nobody answers."""
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Note all else."""
        return lambda *args, **_: self._note(name, args[0] if args and isinstance(args[0], list) else [])

    def _note(self, what: str, partitions: Sequence[TopicPartition]) -> None:
        self.told.append((what, {(one.topic, one.partition): one.offset for one in partitions}))

    def said(self, what: str) -> list[dict[Partition, int]]:
        """With which partitions it was told this."""
        return [partitions for said, partitions in self.told if said == what]


class Given:
    """A thread's work, its client, and both sides' bookkeeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:  # noqa: ANN401  # of the thread
        self.client = Client()

        def made(settings: dict[str, Any]) -> Client:
            self.client.on_commit, self.client.on_error = settings["on_commit"], settings["error_cb"]
            return self.client

        monkeypatch.setattr(kafka_client, "new_consumer", made)
        for module in (commits, gaps, group_places):
            monkeypatch.setattr(module, "AGAIN_S", 0.0)
        monkeypatch.setattr(fetching, "POLL_S", 0.0)
        chosen: dict[str, Any] = {"start": "earliest", "on_gap": "continue", "transactional": True} | options
        self.partitions = Partitions(LIMITS, 2, transactional=chosen["transactional"])
        self.handover = Handover(self.partitions)
        self.watched = Watched()
        settings = {"bootstrap.servers": "nowhere", "group.id": "group"}
        self.thread = ClientThread(
            ClientOptions(
                settings=settings,
                topics=("t",),
                record_bytes_max=1000,
                consume_max=4,
                revoke_s=0.05,
                close_s=0.05,
                pause_after_s=9,
                **chosen,
            ),
            self.handover,
            self.watched.hooks,
        )
        self.thread.consumer = self.thread._subscribed()

    def turn(self, times: int = 1) -> None:
        """The client's thread turns."""
        for _ in range(times):
            self.thread._turn(self.thread.consumer)  # type: ignore[arg-type]  # it is there

    def assign(self, *partitions: Partition) -> None:
        """Partitions come, and are read from where they begin."""
        self.client.later("on_assign", *partitions)
        self.turn()

    def begin(self, partition: Partition, offset: int, count: int = 1) -> Offsets:
        """Records are read, and their batch is begun."""
        self.partitions.deliver([record(partition, offset + number) for number in range(count)])
        batch = self.partitions.take()
        assert batch is not None
        assert isinstance(batch.end, Offsets)
        self.partitions.begin(batch.end)
        return batch.end


def record(partition: Partition, offset: int) -> RawRecord:
    """A record of a partition."""
    return RawRecord(0, offset, b"x", 1, None, None, Position(), Message(*partition, offset, b"k", (), 0))


def test_who_is_another_member_now_gives_up_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the new membership can be seen; what the client believes to have is not read, and it joins anew."""
    given = Given(monkeypatch)
    given.client.group = {P0: 5, P1: 5}
    given.assign(P0, P1)
    given.begin(P0, 5)
    given.client.member = b"two"
    given.client.later("on_assign")
    given.turn()
    with pytest.raises(Abandoned, match="another member"):
        given.partitions.check()
    assert given.partitions.owned() == {}
    given.client.later("on_revoke", P0, P1)
    given.thread.consumer = given.thread._replaced(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    assert given.client.said("close") == [{}]
    given.client.member = b"three"
    given.assign(P0)
    assert not given.thread._membership.outlived
    assert set(given.partitions.owned()) == {P0}


def test_a_static_member_that_was_fenced_by_itself_joins_anew_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client may join twice after it lost its partitions; the next time, or without a loss, it has a rival."""
    given = Given(monkeypatch)
    fenced = KafkaError(KafkaError.FENCED_INSTANCE_ID)
    fatal = KafkaError(KafkaError._FATAL, f"Fatal error: {fenced.str()}: Fatal consumer error", fatal=True)
    given.client.group = {P0: 5}
    given.assign(P0)
    given.client.later("on_lost", P0)
    given.client.later("on_assign", P0)
    given.turn()
    given.begin(P0, 5)
    given.client.queue.append(lambda: given.client.on_error(fatal))
    given.turn()
    with pytest.raises(Abandoned, match="fenced itself"):
        given.partitions.check()
    given.thread.consumer = given.thread._replaced(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    given.client.queue.append(lambda: given.client.on_error(fatal))
    with pytest.raises(SourceError, match="fenced by other consumer"):
        given.turn()


def test_a_client_that_does_not_end_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would still commit is refused to it; but it may keep the name of a static member."""
    given = Given(monkeypatch)
    over = threading.Event()
    monkeypatch.setattr(given.client, "close", lambda: over.wait(5), raising=False)
    beats = given.watched.beats
    with pytest.raises(SourceError, match="restart dupwatch"):
        given.thread._replaced(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    over.set()
    assert given.watched.beats > beats
    assert given.thread.consumer is None


@pytest.mark.parametrize("member", [b"", b"one"])
def test_who_is_no_member_for_a_while_loses_nothing_by_that(monkeypatch: pytest.MonkeyPatch, member: bytes) -> None:
    """Its client says when partitions are lost; until then its transactions are refused by the sink."""
    given = Given(monkeypatch)
    given.client.group = {P0: 5}
    given.assign(P0)
    given.begin(P0, 5)
    given.client.member = member
    given.turn()
    given.partitions.check()
    assert member_of(given.handover.group_metadata or b"") == (member or None)
    given.client.member = b"one"
    given.turn()
    given.partitions.check()


def test_a_gap_is_bridged_with_nothing_in_the_judges_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before it is answered first; and a partition that goes at that moment is not read any more."""
    given = Given(monkeypatch)
    given.client.group = {P0: 5, P1: 5}
    given.assign(P0, P1)
    end = given.begin(P0, 5, 3)
    given.client.logs[P0] = (35, 100)
    given.client.queue.append(Ended(P0))
    given.turn(5)
    assert given.client.said("unassign") == given.client.said("incremental_unassign") == []
    given.partitions.acknowledge_committed(end)
    taken_in: list[bool] = []

    def goes() -> None:
        taken_in.append(not given.partitions.suspended or given.partitions.take() is not None)

    def waiting() -> None:
        given.client.when_unassigned = lambda: None
        given.client.later("on_revoke", P1)
        given.client.queue.append(goes)

    given.client.when_unassigned = waiting
    given.turn()
    assert given.client.said("unassign")[0] == {P0: NOTHING}
    assert given.client.said("incremental_assign")[-1] == {P0: 35}
    # Else what is fetched of it would keep the client from coming to an end of what it has to say.
    assert given.client.said("pause")[-1] == {P0: NOTHING}
    assert taken_in == [False]
    assert set(given.partitions.owned()) == {P0}
    assert given.watched.gaps == [27]
    given.turn()
    assert given.client.said("resume")[-1] == {P0: NOTHING}
    assert given.partitions.room() > 0


def test_fetching_pauses_where_the_judge_is_behind_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full buffer is no reason by itself: a pause throws away what the client has fetched ahead."""
    given = Given(monkeypatch)
    given.assign(P0)
    given.partitions.deliver([record(P0, offset) for offset in range(2 * LIMITS.batch_records_max)])
    assert given.partitions.room() == 0
    given.turn(3)
    assert given.watched.pauses == []
    assert given.client.said("pause") == []
    assert given.thread._fetching._full_since_s is not None
    given.thread._fetching._full_since_s -= 9
    given.turn(3)
    assert given.watched.pauses == [True]
    assert [list(places) for places in given.client.said("pause")] == [[P0]]


def test_brokers_that_do_not_answer_for_a_gap_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken in meanwhile; and where the partition goes first, the others are read on."""
    given = Given(monkeypatch)
    given.client.group = {P0: 5, P1: 5}
    given.assign(P0, P1)

    def silent(*_: object, **how: object) -> tuple[int, int]:
        if "cached" in how:
            return 0, 0
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(given.client, "get_watermark_offsets", silent)
    given.client.queue.append(Ended(P0))
    began_s = time.monotonic()
    given.turn(4)
    assert given.partitions.room() == 0
    assert given.watched.waits_s
    assert sum(given.watched.waits_s) <= time.monotonic() - began_s
    given.client.later("on_revoke", P0)
    given.turn(2)
    assert given.partitions.room() > 0
    assert set(given.partitions.owned()) == {P1}


@pytest.mark.parametrize("transactional", [False, True])
def test_who_tells_the_group_that_records_went_unread(monkeypatch: pytest.MonkeyPatch, *, transactional: bool) -> None:
    """The client; or the next transaction, and never the client: it might say so when another is further."""
    given = Given(monkeypatch, transactional=transactional)
    given.client.group = {P0: 5}
    given.assign(P0)
    given.client.logs[P0] = (35, 100)
    given.client.queue.append(Ended(P0))
    given.turn(4)
    batch = given.partitions.take()
    if transactional:
        assert batch is not None
        assert isinstance(batch.end, Offsets)
        assert (batch.records, batch.end.next) == ((), {P0: 35})
        given.client.later("on_revoke", P0)
        given.turn()
        assert given.client.said("commit") == []
    else:
        assert batch is None
        assert given.client.said("commit") == [{P0: 35}]


@pytest.mark.parametrize("transactional", [False, True])
def test_the_latest_start_stays_where_it_was_first(monkeypatch: pytest.MonkeyPatch, *, transactional: bool) -> None:
    """Nothing is read before the group knows it, and the end of the topic is not asked again."""
    given = Given(monkeypatch, transactional=transactional, start="latest")
    given.client.refusal = KafkaError._TRANSPORT
    given.assign(P0)
    given.client.logs[P0] = (0, 110)
    given.partitions.deliver([record(P0, 100)])
    assert given.partitions.waiting() == 0
    if transactional:
        given.partitions.lose_places()
        given.turn()
        batch = given.partitions.take()
        assert batch is not None
        assert isinstance(batch.end, Offsets)
        assert (batch.records, batch.end.next) == ((), {P0: 100})
        given.partitions.begin(batch.end)
        given.partitions.acknowledge_committed(batch.end)
        assert given.client.said("commit") == [{P0: 100}]
    else:
        given.client.refusal = None
        given.turn(2)
        assert given.client.group == {P0: 100}
    given.turn()
    given.partitions.deliver([record(P0, 100)])
    assert given.partitions.waiting() == 1
    assert given.partitions.position(P0) == 101


@pytest.mark.parametrize("transactional", [False, True])
def test_the_latest_start_is_known_to_the_group_at_once(
    monkeypatch: pytest.MonkeyPatch, *, transactional: bool
) -> None:
    """Where the brokers answer it is read from there without another word."""
    given = Given(monkeypatch, transactional=transactional, start="latest")
    given.assign(P0)
    given.turn()
    assert given.client.said("commit") == [{P0: 100}]
    assert given.partitions.take() is None
    given.partitions.deliver([record(P0, 100)])
    assert given.partitions.waiting() == 1


def test_who_is_no_member_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers would refuse it; to a static member they would say that another has its name, which ends a run."""
    given = Given(monkeypatch, transactional=False)
    given.client.group = {P0: 5}
    given.assign(P0)
    given.partitions.acknowledge(given.begin(P0, 5))
    given.client.member = b""
    given.turn(2)
    given.client.later("on_revoke", P0)
    given.turn()
    assert given.client.said("commit") == []
    assert given.partitions.owned() == {}


def test_what_a_rebalance_refuses_is_sent_again_soon_and_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever else is refused waits longer; a member that hangs may hold up the others for a whole session."""
    caplog.set_level("INFO", "dupwatch")
    given = Given(monkeypatch, transactional=False)
    monkeypatch.setattr(commits, "AGAIN_S", 60.0)
    monkeypatch.setattr(commits, "_REBALANCING_S", 0.0)
    given.client.group = {P0: 5}
    given.assign(P0)
    given.client.refusal = KafkaError.REBALANCE_IN_PROGRESS
    given.partitions.acknowledge(given.begin(P0, 5))
    given.turn(3)
    assert len(given.client.said("commit")) == 3
    given.client.refusal = None
    given.turn(2)
    assert given.client.group == {P0: 6}
    given.client.refusal = KafkaError.REBALANCE_IN_PROGRESS
    given.partitions.acknowledge(given.begin(P0, 6))
    given.turn(2)
    told = [one.message for one in caplog.records if "Offsets were not committed" in one.message]
    assert len(told) == 2
    given.client.refusal = KafkaError.COORDINATOR_NOT_AVAILABLE
    given.turn(3)
    assert len(given.client.said("commit")) == 7


HELD = Note(held=Held(bad=6, records=10, reason="invalid_json"), highest_ms=5)


def test_a_partition_that_is_poisoned_is_paused_and_the_group_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; the others are read, also after a pause of all; and who goes on reading it elsewhere can fetch it."""
    given = Given(monkeypatch, transactional=False)
    given.client.group = {P0: 5, P1: 5}
    given.assign(P0, P1)
    end = given.begin(P0, 5, 3)
    assert HELD.held is not None
    given.partitions.hold_poisoned(end, {P0: Holding(5, HELD.held)})
    given.partitions.abandon()
    given.turn(2)
    assert given.client.said("pause") == [{P0: NOTHING}]
    assert given.client.notes == {P0: encode_note(Note(held=HELD.held))}
    assert given.watched.held == {P0: HELD.held.sentence()}
    given.partitions.deliver([record(P1, 5 + number) for number in range(13)])
    given.turn(2)
    while (batch := given.partitions.take()) is not None:
        assert isinstance(batch.end, Offsets)
        given.partitions.begin(batch.end)
        given.partitions.acknowledge(batch.end)
    given.turn(2)
    assert given.client.said("resume") == [{P1: NOTHING}]
    assert 0 not in given.watched.lags
    given.client.later("on_revoke", P0)
    given.turn(2)
    assert given.client.said("resume")[-1] == {P0: NOTHING}
    assert given.watched.held == {}


@pytest.mark.parametrize("transactional", [False, True])
def test_who_gets_a_held_partition_does_not_read_it(monkeypatch: pytest.MonkeyPatch, *, transactional: bool) -> None:
    """Nor is it committed again, nor is a gap in it anybody's end; a migration's word beside it is passed over."""
    given = Given(monkeypatch, transactional=transactional, on_gap="stop")
    given.client.group = {P0: 5, P1: 5}
    given.client.notes = {P0: encode_note(Note(held=HELD.held, highest_ms=5, migrate="switched"))}
    given.client.logs[P0] = (35, 100)
    given.assign(P0, P1)
    assert given.client.said("pause") == [{P0: NOTHING}]
    given.client.queue.append(Ended(P0))
    given.partitions.deliver([record(P0, 5), record(P1, 5)])
    given.turn(2)
    assert given.client.said("commit") == []
    batch = given.partitions.take()
    assert batch is not None
    assert isinstance(batch.end, Offsets)
    assert batch.end.next == {P1: 6}
    given.partitions.begin(batch.end)
    given.partitions.acknowledge_committed(batch.end)
    given.turn(4)
    assert given.partitions.owned()[P0] == Place(5, None, HELD)
    assert given.partitions.room() > 0


def test_where_places_are_asked_for_again_so_are_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a transaction whose end nobody knows the brokers say what was committed, note and all."""
    given = Given(monkeypatch)
    given.client.group = {P0: 5}
    given.assign(P0)
    given.client.group, given.client.notes = {P0: 7}, {P0: encode_note(HELD)}
    given.partitions.lose_places()
    given.turn()
    assert given.partitions.owned() == {P0: Place(7, None, HELD)}


def test_metadata_that_is_no_note_is_counted_and_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tools write there too; it is left as it stands until something is answered."""
    given = Given(monkeypatch, transactional=False)
    given.client.group, given.client.notes = {P0: 5}, {P0: "somebody else's"}
    given.assign(P0)
    given.turn()
    assert given.watched.unreadable_notes == 1
    assert given.client.said("commit") == []
    given.partitions.acknowledge(given.begin(P0, 5), {P0: Note(highest_ms=5)})
    given.turn()
    assert given.client.notes == {P0: encode_note(Note(highest_ms=5))}


def test_a_commit_of_another_note_is_not_taken_for_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is on its way its partition is held: the offset is the same, and the hold is told by the next."""
    given = Given(monkeypatch, transactional=False)
    given.client.group = {P0: 5}
    given.assign(P0)
    given.partitions.acknowledge(given.begin(P0, 5), {P0: Note(highest_ms=5)})
    given.thread._commits.send(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    end = given.begin(P0, 6)
    assert HELD.held is not None
    given.partitions.hold_poisoned(end, {P0: Holding(6, HELD.held)})
    given.partitions.abandon()
    given.turn(3)
    assert given.client.notes == {P0: encode_note(HELD)}


def test_a_partition_whose_batch_cannot_be_unpacked_is_paused_and_the_group_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After enough attempts while it was ours; it may have been away in between. It can be fetched elsewhere."""
    given = Given(monkeypatch, transactional=False)
    given.client.group = {P0: 5, P1: 5}
    given.assign(P0, P1)
    given.client.queue.extend(NotUnpacked(P0, 5) for _ in range(FAILURES_MAX - 1))
    given.turn(FAILURES_MAX)
    given.client.later("on_revoke", P0)
    given.turn()
    given.assign(P0)
    given.client.queue.extend(NotUnpacked(P0, 5) for _ in range(FAILURES_MAX - 1))
    given.turn(FAILURES_MAX + 1)
    assert given.watched.held == {}
    given.client.queue.append(NotUnpacked(P0, 5))
    given.turn(2)
    held = Held(bad=0, records=0, reason="bad_compression", batch_offset=5)
    assert given.watched.held == {P0: held.sentence()}
    assert given.client.said("pause") == [{P0: NOTHING}]
    assert given.client.notes == {P0: encode_note(Note(held=held))}
    assert given.partitions.room() > 0
    given.client.later("on_revoke", P0)
    given.turn(2)
    assert given.client.said("resume") == [{P0: NOTHING}]


def test_what_comes_in_one_call_with_a_batch_that_cannot_be_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records before it are taken in, and those behind it are not: the client is sought back to the batch."""
    given = Given(monkeypatch)
    given.client.group = {P0: 5}
    given.assign(P0)
    bad = NotUnpacked(P0, 7, KafkaError._BAD_MSG)
    given.thread._fetching._take_in([ArrivedAt(P0, 5), ArrivedAt(P0, 6), bad, ArrivedAt(P0, 9)])  # type: ignore[list-item]
    assert given.partitions.waiting() == 2
    assert given.partitions.seeks() == {P0: 7}
