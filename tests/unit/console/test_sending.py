"""How decisions are carried out once they are final, by one process or several."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from consumer.console.intake.sending import (
    CLAIMED_MAX,
    LEASE_S,
    PATIENT_ATTEMPTS_MAX,
    PREPARED_S,
    PendingRelease,
    ReleasePort,
    ReleaseSender,
    ReleaseSenderParts,
)
from consumer.model.errors import ConfigError, SinkError, SourceError
from consumer.model.hooks import Hooks
from consumer.reviews import audit, decisions, people, sending
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import Database, DatabaseUnavailable
from consumer.reviews.flag_events import add_events
from consumer.store_tools.releases import Attribution
from consumer.telemetry.metrics.console import ReleaseEnded
from storage.errors import StoreUnavailable
from tests.unit.console.events_made import flag, version
from tests.unit.reviews.made import counted_writes, database_in

NOW_MS = 1_764_000_000_000
UNDO_MS = 10_000


class Desk(ReleasePort):
    """A database with decisions, and a sink that notes what it gets."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.at_ms = NOW_MS
        self.released: list[tuple[str, str, Attribution]] = []
        self.patient: list[bool] = []
        self.prepared: list[list[tuple[str, str]]] = []
        self.errors: list[Exception] = []
        self.outcomes: dict[str, list[ConfigError | SourceError]] = {}
        self.broken: set[str] = set()
        self.calls: list[int] = []
        self.begun_max = CLAIMED_MAX
        self.unwritable: Path | None = None
        self.unprepared: list[Exception] = []
        self.reported: list[object] = []
        self.person = database.write(lambda c: people.add_person(c, "Ann", "reviewer", NOW_MS))

    @override
    def release(self, wanted: Sequence[PendingRelease]) -> list[ConfigError | SourceError | None]:
        self.patient += [each.is_patient for each in wanted]
        self.calls.append(len(wanted))
        if self.errors:
            raise self.errors.pop()
        if self.broken.intersection(each.article_id for each in wanted):
            raise SinkError("a message is refused")
        outcomes = [self._outcome(each) for each in wanted[: self.begun_max]]
        self.released += [each[:3] for each, outcome in zip(wanted, outcomes, strict=False) if outcome is None]
        return outcomes

    def _outcome(self, wanted: PendingRelease) -> ConfigError | SourceError | None:
        coming = self.outcomes.get(wanted.article_id)
        return coming.pop() if coming else None

    @override
    def prepare(self, versions: Sequence[tuple[str, str]]) -> None:
        if self.unprepared:
            raise self.unprepared.pop()
        self.prepared.append(list(versions))

    def sender(self) -> ReleaseSender:
        """One that is a process of its own, as far as the database knows."""
        hooks = Hooks()
        hooks.on(ReleaseEnded, self.reported.append)
        return ReleaseSender(
            ReleaseSenderParts(self.database, self, lambda: self.at_ms, hooks, lambda: self.unwritable)
        )

    def decided(self, count: int, note: str = "") -> list[int]:
        """Flags that are said to be wrong; their reviews."""
        events = [flag(number) for number in range(1, count + 1)]
        self.database.write(lambda c: add_events(c, events))
        ids = list(range(1, count + 1))
        decided = self.database.write(
            lambda c: decisions.decide(c, ids, self.person.person_id, "wrong", note, NOW_MS, UNDO_MS)
        )
        assert decided.refused == []
        return decided.review_ids

    def due(self) -> int:
        """How many releases are due."""
        with self.database.read_connection() as connection:
            return sending.backlog(connection, self.at_ms).due

    def audited(self) -> list[tuple[str, str, str, str]]:
        """What is in the audit log, the first first."""
        with self.database.read_connection() as connection:
            rows = audit.search(connection, AuditFilters(), None, 100).rows
        return [(row.person, row.action, row.subject, row.why) for row in reversed(rows)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """An empty one."""
    opened = database_in(tmp_path)
    yield Desk(opened)
    opened.close()


def test_a_release_is_sent_once_it_is_final(desk: Desk) -> None:
    """Not before; then with the person's name and note, and the audit log has it. Nothing is sent again."""
    desk.decided(1, "another story")
    sender = desk.sender()
    desk.at_ms += UNDO_MS - 1
    assert not sender.work()
    assert desk.released == []
    desk.at_ms += 1
    assert not sender.work()
    assert desk.released == [("a1", version(1), Attribution("Ann", "another story"))]
    assert desk.audited() == [("Ann", "release.sent", "a1", "another story")]
    assert desk.reported == [ReleaseEnded("sent")]
    assert not sender.work()
    assert not desk.sender().work()
    assert len(desk.released) == 1
    assert desk.due() == 0


def test_a_sender_with_nothing_to_send_writes_nothing(desk: Desk) -> None:
    """Neither before a release is final, nor after it is sent."""
    desk.decided(1)
    sender = desk.sender()
    with counted_writes(desk.database) as writes:
        sender.work()
        assert writes == []
        desk.at_ms += UNDO_MS
        sender.work()
        assert writes
        writes.clear()
        sender.work()
        assert writes == []


def test_releases_wait_for_a_process_that_may_write(desk: Desk) -> None:
    """They are not tried, and none is refused."""
    desk.decided(1)
    desk.at_ms += UNDO_MS
    desk.unwritable = Path("store")
    sender = desk.sender()
    assert not sender.work()
    assert (desk.calls, desk.due()) == ([], 1)
    desk.unwritable = None
    assert not sender.work()
    assert (desk.calls, desk.due()) == ([1], 0)


def test_what_can_never_be_released_is_refused_with_the_reason(desk: Desk) -> None:
    """It is not tried again."""
    desk.decided(2)
    desk.at_ms += UNDO_MS
    desk.outcomes = {"a1": [ConfigError("its window has ended")]}
    sender = desk.sender()
    sender.work()
    sender.work()
    assert ([name for name, _, _ in desk.released], desk.due()) == (["a2"], 0)
    assert desk.audited() == [
        ("Ann", "release.refused", "a1", "its window has ended"),
        ("Ann", "release.sent", "a2", ""),
    ]
    assert desk.reported == [ReleaseEnded("refused"), ReleaseEnded("sent")]


def test_releases_that_were_claimed_are_sent_together(desk: Desk) -> None:
    """In the order of the decisions. Those that a call did not begin are in the next one."""
    desk.decided(5)
    desk.at_ms += UNDO_MS
    desk.begun_max = 2
    assert not desk.sender().work()
    assert desk.calls == [5, 3, 1]
    assert [name for name, _, _ in desk.released] == ["a1", "a2", "a3", "a4", "a5"]
    assert len(desk.audited()) == 5


def test_after_an_error_each_is_tried_alone(desk: Desk) -> None:
    """One that fails is in nobody's way, and stays with who claimed it."""
    desk.decided(3)
    desk.at_ms += UNDO_MS
    desk.broken = {"a1"}
    sender = desk.sender()
    for _ in range(2):
        with pytest.raises(SinkError):
            sender.work()
    assert (desk.released, desk.due()) == ([], 3)
    with pytest.raises(SinkError):
        sender.work()
    assert [name for name, _, _ in desk.released] == ["a2", "a3"]
    desk.broken.clear()
    assert not sender.work()
    assert desk.due() == 0
    assert desk.calls == [3, 1, 1, 1, 1, 1]


def test_an_article_that_cannot_return_now_is_put_off(desk: Desk) -> None:
    """The others are sent and noted, and the error says why one is not."""
    desk.decided(3)
    desk.at_ms += UNDO_MS
    desk.outcomes = {"a2": [SourceError("no broker")]}
    sender = desk.sender()
    with pytest.raises(SourceError, match="no broker"):
        sender.work()
    assert ([name for name, _, _ in desk.released], desk.due()) == (["a1", "a3"], 1)
    assert len(desk.audited()) == 2
    sender.work()
    assert (desk.calls, desk.due()) == ([3, 1], 0)


@pytest.mark.parametrize("error", [SinkError("no broker"), SourceError("no record")])
def test_patience_has_an_end(desk: Desk, error: Exception) -> None:
    """After so many failures a release does without the clean feed."""
    desk.decided(1)
    desk.at_ms += UNDO_MS
    if isinstance(error, SourceError):
        desk.outcomes = {"a1": [error] * PATIENT_ATTEMPTS_MAX}
    else:
        desk.errors = [error] * PATIENT_ATTEMPTS_MAX
    sender = desk.sender()
    for _ in range(PATIENT_ATTEMPTS_MAX):
        with pytest.raises(type(error)):
            sender.work()
    sender.work()
    assert desk.patient == [*[True] * PATIENT_ATTEMPTS_MAX, False]
    assert len(desk.released) == 1


def test_what_a_killed_process_had_claimed_is_sent_by_another(desk: Desk) -> None:
    """Once the lease has run out, and not before: a release that was sent and not noted is sent again."""
    desk.decided(1)
    desk.at_ms += UNDO_MS
    killed = desk.sender()
    desk.errors = [SinkError("killed here")]
    with pytest.raises(SinkError):
        killed.work()
    other = desk.sender()
    assert not other.work()
    assert desk.released == []
    desk.at_ms += round(LEASE_S * 1_000)
    other.work()
    assert len(desk.released) == 1


def test_a_process_gives_up_its_claims_before_others_may_have_them(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it could not send within the lease it claims again, or leaves to who has."""
    clock_s = [1_000.0]
    monkeypatch.setattr("consumer.console.intake.sending.time.monotonic", lambda: clock_s[0])
    desk.decided(2)
    desk.at_ms += UNDO_MS
    late = desk.sender()
    desk.errors = [SinkError("slow")]
    with pytest.raises(SinkError):
        late.work()
    clock_s[0] += LEASE_S
    desk.at_ms += round(LEASE_S * 1_000)
    desk.sender().work()
    late.work()
    assert sorted(name for name, _, _ in desk.released) == ["a1", "a2"]


def test_a_database_that_fails_after_the_release_repeats_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release may be sent twice, and is never forgotten."""
    desk.decided(1)
    desk.at_ms += UNDO_MS
    noted, away = sending.mark_sent, [True]

    def failing(*arguments: object) -> None:
        if away:
            away.pop()
            raise DatabaseUnavailable("gone")
        noted(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sending, "mark_sent", failing)
    sender = desk.sender()
    with pytest.raises(DatabaseUnavailable):
        sender.work()
    assert desk.due() == 1
    sender.work()
    assert (len(desk.released), desk.due()) == (2, 0)
    assert desk.audited() == [("Ann", "release.sent", "a1", "")]


def test_several_processes_share_the_work(desk: Desk) -> None:
    """None is sent twice, and none is left."""
    count = 3 * CLAIMED_MAX
    desk.decided(count)
    desk.at_ms += UNDO_MS

    def work() -> None:
        sender = desk.sender()
        while sender.work():
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert desk.due() == 0
    assert sorted(name for name, _, _ in desk.released) == sorted(f"a{number}" for number in range(1, count + 1))


def test_many_releases_are_prepared_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that are due, before any is claimed; later ones with the next, and all again when it was long ago."""
    clock_s = [1_000.0]
    monkeypatch.setattr("consumer.console.intake.sending.time.monotonic", lambda: clock_s[0])
    count = 3 * CLAIMED_MAX
    desk.decided(count)
    desk.at_ms += UNDO_MS
    desk.unprepared = [StoreUnavailable("away")]
    with pytest.raises(StoreUnavailable):
        desk.sender().work()
    sender = desk.sender()
    assert sender.work()
    assert sender.work()
    assert len(desk.released) == 2 * CLAIMED_MAX
    assert desk.prepared == [[(f"a{number}", version(number)) for number in range(1, count + 1)]]
    clock_s[0] += PREPARED_S + 1
    while sender.work():
        pass
    assert len(desk.released) == count
    assert [len(versions) for versions in desk.prepared] == [count, CLAIMED_MAX]
    sender.work()
    assert len(desk.prepared) == 2
