"""The thread that owns the Kafka client, turn by turn, with a fake client."""

import threading
import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from consumer.kafka.client_settings import SourceOptions
from consumer.kafka.membership import member_of
from consumer.kafka.message import Offsets, TopicRecord
from consumer.kafka.offset_metadata import HoldReason, HoldRequest, Note, encode_note
from consumer.kafka.source import client_thread as kafka_client
from consumer.kafka.source import fetching, gaps, group_places
from consumer.kafka.source.client_thread import ClientThread
from consumer.kafka.source.handover import Handover
from consumer.kafka.source.partitions import Partitions
from consumer.kafka.source.progress import CommitPoint
from consumer.kafka.source.unpacking import FAILURES_MAX
from consumer.model.errors import Abandoned, SourceError
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition
from tests.builders import raw_message
from tests.kafka.reading import Watched
from tests.unit.kafka.source.fake_client import NO_OFFSET, BadBatch, EmptyMessage, FakeConsumer, FakeGroup, OutOfRange

P0, P1 = ("t", 0), ("t", 1)
LIMITS = ReadLimits(batch_records_max=4)


class Given:
    """The client's thread under test, with its fake client, group and logs, and the partitions that it shares."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:  # noqa: ANN401  # of the thread
        self.group = FakeGroup()
        self.logs = {P0: (0, 100), P1: (0, 100)}
        self.client = FakeConsumer(self.group, self.logs)

        def create(settings: dict[str, Any]) -> FakeConsumer:
            self.client.on_commit, self.client.on_error = settings["on_commit"], settings["error_cb"]
            return self.client

        monkeypatch.setattr(kafka_client, "new_consumer", create)
        for module in (gaps, group_places):
            monkeypatch.setattr(module, "RETRY_PAUSE_S", 0.0)
        monkeypatch.setattr(fetching, "POLL_S", 0.0)
        monkeypatch.setattr(kafka_client, "CLOSE_S", 0.05)
        chosen: dict[str, Any] = {"start": "earliest", "on_gap": "continue", "transactional": True} | options
        self.partitions = Partitions(LIMITS, 2, transactional=chosen["transactional"])
        self.handover = Handover(self.partitions)
        self.watched = Watched()
        settings = {"bootstrap.servers": "nowhere", "group.id": "group"}
        self.thread = ClientThread(
            settings,
            ["t"],
            ReadLimits(record_bytes_max=1000, batch_records_max=4),
            SourceOptions(revoke_s=0.05, pause_after_s=9, **chosen),
            self.handover,
            self.watched.hooks,
        )
        self.thread.consumer = self.thread._subscribe()

    def turn(self, times: int = 1) -> None:
        """Let the client's thread turn."""
        for _ in range(times):
            self.thread._turn(self.thread.consumer)  # type: ignore[arg-type]  # it is there

    def assign(self, *partitions: Partition) -> None:
        """Assign partitions."""
        self.client.call_back("on_assign", *partitions)
        self.turn()

    def begin(self, partition: Partition, offset: int, count: int = 1) -> Offsets:
        """Deliver records, and begin the batch that has them."""
        self.partitions.deliver([record(partition, offset + number) for number in range(count)])
        batch = self.partitions.take()
        assert batch is not None
        assert isinstance(batch.end, Offsets)
        self.partitions.begin(batch.end)
        return batch.end


def record(partition: Partition, offset: int) -> TopicRecord:
    """Return a record of a partition."""
    topic, number = partition
    return raw_message(b"x", b"k", offset=offset, topic=topic, partition=number)


def test_a_client_that_became_another_member_gives_up_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before others can see the new membership; its partitions are not read, and a new client joins."""
    given = Given(monkeypatch)
    given.group.offsets = {P0: 5, P1: 5}
    given.assign(P0, P1)
    given.begin(P0, 5)
    given.group.member = b"two"
    given.client.call_back("on_assign")
    given.turn()
    with pytest.raises(Abandoned, match="another member"):
        given.partitions.check()
    assert given.partitions.owned() == {}
    given.client.call_back("on_revoke", P0, P1)
    given.thread.consumer = given.thread._replace_client(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    assert given.client.calls_of("close") == [{}]
    given.group.member = b"three"
    given.assign(P0)
    assert not given.thread._membership.replacement_reason
    assert set(given.partitions.owned()) == {P0}


def test_a_static_member_that_fenced_itself_joins_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client may join twice after it lost its partitions; the next time, another consumer has its name."""
    given = Given(monkeypatch)
    fenced = KafkaError(KafkaError.FENCED_INSTANCE_ID)
    fatal = KafkaError(KafkaError._FATAL, f"Fatal error: {fenced.str()}: Fatal consumer error", fatal=True)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    given.client.call_back("on_lost", P0)
    given.client.call_back("on_assign", P0)
    given.turn()
    given.begin(P0, 5)
    given.client.next_polls.append(lambda: given.client.on_error(fatal))
    given.turn()
    with pytest.raises(Abandoned, match="fenced itself"):
        given.partitions.check()
    given.thread.consumer = given.thread._replace_client(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    given.client.next_polls.append(lambda: given.client.on_error(fatal))
    with pytest.raises(SourceError, match="fenced by other consumer"):
        given.turn()


def test_a_client_that_does_not_end_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commits would be refused, but it may keep the name of a static member."""
    given = Given(monkeypatch)
    over = threading.Event()
    monkeypatch.setattr(given.client, "close", lambda: over.wait(5), raising=False)
    beats = given.watched.beats
    with pytest.raises(SourceError, match="restart dupwatch"):
        given.thread._replace_client(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    over.set()
    assert given.watched.beats > beats
    assert given.thread.consumer is None


@pytest.mark.parametrize("member", [b"", b"one"])
def test_a_client_that_is_briefly_not_a_member_loses_nothing(monkeypatch: pytest.MonkeyPatch, member: bytes) -> None:
    """The client reports lost partitions; until then the sink refuses its transactions."""
    given = Given(monkeypatch)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    given.begin(P0, 5)
    given.group.member = member
    given.turn()
    given.partitions.check()
    assert member_of(given.handover.group_metadata or b"") == (member or None)
    given.group.member = b"one"
    given.turn()
    given.partitions.check()


def test_a_gap_is_skipped_once_all_records_before_it_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that is revoked at that moment is not read any more."""
    given = Given(monkeypatch)
    given.group.offsets = {P0: 5, P1: 5}
    given.assign(P0, P1)
    end = given.begin(P0, 5, 3)
    given.logs[P0] = (35, 100)
    given.client.next_polls.append(OutOfRange(P0))
    given.turn(5)
    assert given.client.calls_of("unassign") == given.client.calls_of("incremental_unassign") == []
    given.partitions.acknowledge_committed(end)
    taken_in: list[bool] = []

    def goes() -> None:
        taken_in.append(not given.partitions.suspended or given.partitions.take() is not None)

    def waiting() -> None:
        given.client.when_unassigned = lambda: None
        given.client.call_back("on_revoke", P1)
        given.client.next_polls.append(goes)

    given.client.when_unassigned = waiting
    given.turn()
    assert given.client.calls_of("unassign")[0] == {P0: NO_OFFSET}
    assert given.client.calls_of("incremental_assign")[-1] == {P0: 35}
    # Otherwise fetched messages would delay the events that the client has yet to report.
    assert given.client.calls_of("pause")[-1] == {P0: NO_OFFSET}
    assert taken_in == [False]
    assert set(given.partitions.owned()) == {P0}
    assert given.watched.gaps == [27]
    given.turn()
    assert given.client.calls_of("resume")[-1] == {P0: NO_OFFSET}
    assert given.partitions.room() > 0


def test_fetching_pauses_if_judging_is_behind_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full buffer alone is not enough: a pause discards what the client has fetched ahead."""
    given = Given(monkeypatch)
    given.assign(P0)
    given.partitions.deliver([record(P0, offset) for offset in range(2 * LIMITS.batch_records_max)])
    assert given.partitions.room() == 0
    given.turn(3)
    assert given.watched.pauses == []
    assert given.client.calls_of("pause") == []
    assert given.thread._fetching._full_since_s is not None
    given.thread._fetching._full_since_s -= 9
    given.turn(3)
    assert given.watched.pauses == [True]
    assert [list(places) for places in given.client.calls_of("pause")] == [[P0]]


def test_brokers_that_do_not_answer_for_a_gap_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read meanwhile; if the partition is revoked first, reading continues with the others."""
    given = Given(monkeypatch)
    given.group.offsets = {P0: 5, P1: 5}
    given.assign(P0, P1)

    def silent(*_: object, **how: object) -> tuple[int, int]:
        if "cached" in how:
            return 0, 0
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(given.client, "get_watermark_offsets", silent)
    given.client.next_polls.append(OutOfRange(P0))
    began_s = time.monotonic()
    given.turn(4)
    assert given.partitions.room() == 0
    assert given.watched.waits_s
    assert sum(given.watched.waits_s) <= time.monotonic() - began_s
    given.client.call_back("on_revoke", P0)
    given.turn(2)
    assert given.partitions.room() > 0
    assert set(given.partitions.owned()) == {P1}


@pytest.mark.parametrize("transactional", [False, True])
def test_how_the_group_learns_that_records_were_skipped(
    monkeypatch: pytest.MonkeyPatch, *, transactional: bool
) -> None:
    """The client commits it; with transactions only the next one does, because another member may be further."""
    given = Given(monkeypatch, transactional=transactional)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    given.logs[P0] = (35, 100)
    given.client.next_polls.append(OutOfRange(P0))
    given.turn(4)
    batch = given.partitions.take()
    if transactional:
        assert batch is not None
        assert isinstance(batch.end, Offsets)
        assert (batch.records, batch.end.next) == ((), {P0: 35})
        given.client.call_back("on_revoke", P0)
        given.turn()
        assert given.client.calls_of("commit") == []
    else:
        assert batch is None
        assert given.client.calls_of("commit") == [{P0: 35}]


@pytest.mark.parametrize("transactional", [False, True])
def test_a_start_at_the_end_stays_where_it_was_first(monkeypatch: pytest.MonkeyPatch, *, transactional: bool) -> None:
    """Nothing is read before it is committed, and the end of the topic is not asked for again."""
    given = Given(monkeypatch, transactional=transactional, start="latest")
    given.group.refusal = KafkaError._TRANSPORT
    given.assign(P0)
    given.logs[P0] = (0, 110)
    given.partitions.deliver([record(P0, 100)])
    assert given.partitions.buffered() == 0
    if transactional:
        given.partitions.lose_places()
        given.turn()
        batch = given.partitions.take()
        assert batch is not None
        assert isinstance(batch.end, Offsets)
        assert (batch.records, batch.end.next) == ((), {P0: 100})
        given.partitions.begin(batch.end)
        given.partitions.acknowledge_committed(batch.end)
        assert given.client.calls_of("commit") == [{P0: 100}]
    else:
        given.group.refusal = None
        given.turn(2)
        assert given.group.offsets == {P0: 100}
    given.turn()
    given.partitions.deliver([record(P0, 100)])
    assert given.partitions.buffered() == 1
    assert given.partitions.position(P0) == 101


@pytest.mark.parametrize("transactional", [False, True])
def test_a_start_at_the_end_is_committed_at_once(monkeypatch: pytest.MonkeyPatch, *, transactional: bool) -> None:
    """If the brokers answer, reading begins there."""
    given = Given(monkeypatch, transactional=transactional, start="latest")
    given.assign(P0)
    given.turn()
    assert given.client.calls_of("commit") == [{P0: 100}]
    assert given.partitions.take() is None
    given.partitions.deliver([record(P0, 100)])
    assert given.partitions.buffered() == 1


def test_a_client_that_is_not_a_member_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers would refuse it, and answer a static member that another has its name, which ends a run."""
    given = Given(monkeypatch, transactional=False)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    given.partitions.acknowledge(given.begin(P0, 5))
    given.group.member = b""
    given.turn(2)
    given.client.call_back("on_revoke", P0)
    given.turn()
    assert given.client.calls_of("commit") == []
    assert given.partitions.owned() == {}


def test_a_commit_that_a_rebalance_refuses_is_repeated_soon_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Other refusals wait longer; a member that hangs may delay the others for a whole session."""
    caplog.set_level("INFO", "dupwatch")
    given = Given(monkeypatch, transactional=False)
    monkeypatch.setattr(group_places, "RETRY_PAUSE_S", 60.0)
    monkeypatch.setattr(group_places, "_REBALANCING_S", 0.0)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    given.group.refusal = KafkaError.REBALANCE_IN_PROGRESS
    given.partitions.acknowledge(given.begin(P0, 5))
    given.turn(3)
    assert len(given.client.calls_of("commit")) == 3
    given.group.refusal = None
    given.turn(2)
    assert given.group.offsets == {P0: 6}
    given.group.refusal = KafkaError.REBALANCE_IN_PROGRESS
    given.partitions.acknowledge(given.begin(P0, 6))
    given.turn(2)
    logged = [record.message for record in caplog.records if "offsets could not be committed" in record.message]
    assert len(logged) == 2
    given.group.refusal = KafkaError.COORDINATOR_NOT_AVAILABLE
    given.turn(3)
    assert len(given.client.calls_of("commit")) == 7


HELD = Note(held=HoldReason(bad=6, records=10, reason="invalid_json"), highest_ms=5)


def test_a_poisoned_partition_is_paused_and_its_hold_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once. Others are read, also after a pause of all, and the next owner of the partition can fetch it."""
    given = Given(monkeypatch, transactional=False)
    given.group.offsets = {P0: 5, P1: 5}
    given.assign(P0, P1)
    end = given.begin(P0, 5, 3)
    assert HELD.held is not None
    given.partitions.hold_poisoned(end, {P0: HoldRequest(5, HELD.held)})
    given.partitions.abandon()
    given.turn(2)
    assert given.client.calls_of("pause") == [{P0: NO_OFFSET}]
    assert given.group.notes == {P0: encode_note(Note(held=HELD.held))}
    assert given.watched.held == {P0: HELD.held.sentence()}
    given.partitions.deliver([record(P1, 5 + number) for number in range(13)])
    given.turn(2)
    while (batch := given.partitions.take()) is not None:
        assert isinstance(batch.end, Offsets)
        given.partitions.begin(batch.end)
        given.partitions.acknowledge(batch.end)
    given.turn(2)
    assert given.client.calls_of("resume") == [{P1: NO_OFFSET}]
    assert 0 not in given.watched.lags
    given.client.call_back("on_revoke", P0)
    given.turn(2)
    assert given.client.calls_of("resume")[-1] == {P0: NO_OFFSET}
    assert given.watched.held == {}


@pytest.mark.parametrize("transactional", [False, True])
def test_a_held_partition_is_not_read(monkeypatch: pytest.MonkeyPatch, *, transactional: bool) -> None:
    """It is not committed again, a gap in it ends no run, and a migration's note beside the hold is ignored."""
    given = Given(monkeypatch, transactional=transactional, on_gap="stop")
    given.group.offsets = {P0: 5, P1: 5}
    given.group.notes = {P0: encode_note(Note(held=HELD.held, highest_ms=5, migrate="switched"))}
    given.logs[P0] = (35, 100)
    given.assign(P0, P1)
    assert given.client.calls_of("pause") == [{P0: NO_OFFSET}]
    given.client.next_polls.append(OutOfRange(P0))
    given.partitions.deliver([record(P0, 5), record(P1, 5)])
    given.turn(2)
    assert given.client.calls_of("commit") == []
    batch = given.partitions.take()
    assert batch is not None
    assert isinstance(batch.end, Offsets)
    assert batch.end.next == {P1: 6}
    given.partitions.begin(batch.end)
    given.partitions.acknowledge_committed(batch.end)
    given.turn(4)
    assert given.partitions.owned()[P0] == CommitPoint(5, None, HELD)
    assert given.partitions.room() > 0


def test_notes_are_read_again_together_with_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a transaction with unknown outcome the brokers say what was committed, with its note."""
    given = Given(monkeypatch)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    given.group.offsets, given.group.notes = {P0: 7}, {P0: encode_note(HELD)}
    given.partitions.lose_places()
    given.turn()
    assert given.partitions.owned() == {P0: CommitPoint(7, None, HELD)}


def test_metadata_that_is_not_a_note_is_counted_and_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tools write there too; it is left unchanged until something is answered."""
    given = Given(monkeypatch, transactional=False)
    given.group.offsets, given.group.notes = {P0: 5}, {P0: "somebody else's"}
    given.assign(P0)
    given.turn()
    assert given.watched.unreadable_notes == 1
    assert given.client.calls_of("commit") == []
    given.partitions.acknowledge(given.begin(P0, 5), {P0: Note(highest_ms=5)})
    given.turn()
    assert given.group.notes == {P0: encode_note(Note(highest_ms=5))}


def test_a_commit_of_an_older_note_does_not_count_for_the_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition is held while a commit is sent: the offset is the same, and the next commit has the hold."""
    given = Given(monkeypatch, transactional=False)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    given.partitions.acknowledge(given.begin(P0, 5), {P0: Note(highest_ms=5)})
    given.thread._commits.send(given.thread.consumer)  # type: ignore[arg-type]  # it is there
    end = given.begin(P0, 6)
    assert HELD.held is not None
    given.partitions.hold_poisoned(end, {P0: HoldRequest(6, HELD.held)})
    given.partitions.abandon()
    given.turn(3)
    assert given.group.notes == {P0: encode_note(HELD)}


def test_a_partition_whose_batch_cannot_be_unpacked_is_paused_and_its_hold_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After enough attempts since it was assigned last. The next owner can fetch it."""
    given = Given(monkeypatch, transactional=False)
    given.group.offsets = {P0: 5, P1: 5}
    given.assign(P0, P1)
    given.client.next_polls.extend(BadBatch(P0, 5) for _ in range(FAILURES_MAX - 1))
    given.turn(FAILURES_MAX)
    given.client.call_back("on_revoke", P0)
    given.turn()
    given.assign(P0)
    given.client.next_polls.extend(BadBatch(P0, 5) for _ in range(FAILURES_MAX - 1))
    given.turn(FAILURES_MAX + 1)
    assert given.watched.held == {}
    given.client.next_polls.append(BadBatch(P0, 5))
    given.turn(2)
    held = HoldReason(bad=0, records=0, reason="bad_compression", batch_offset=5)
    assert given.watched.held == {P0: held.sentence()}
    assert given.client.calls_of("pause") == [{P0: NO_OFFSET}]
    assert given.group.notes == {P0: encode_note(Note(held=held))}
    assert given.partitions.room() > 0
    given.client.call_back("on_revoke", P0)
    given.turn(2)
    assert given.client.calls_of("resume") == [{P0: NO_OFFSET}]


def test_records_around_a_batch_that_cannot_be_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records before it are delivered, those after it are not: the client seeks back to the batch."""
    given = Given(monkeypatch)
    given.group.offsets = {P0: 5}
    given.assign(P0)
    bad = BadBatch(P0, 7, KafkaError._BAD_MSG)
    given.thread._fetching._take_in([EmptyMessage(P0, 5), EmptyMessage(P0, 6), bad, EmptyMessage(P0, 9)])  # type: ignore[list-item]
    assert given.partitions.buffered() == 2
    assert given.partitions.seeks() == {P0: 7}
