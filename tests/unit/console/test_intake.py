"""How batches of the topic of flags get into the database."""

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from consumer.config.sections.console import ConsoleSection
from consumer.console.intake import intake as module
from consumer.console.intake.intake import ConsoleStopped, Intake, IntakeParts, count_queue
from consumer.console.intake.store_reading import fill_in_sources
from consumer.model.hooks import Hooks, Outage
from consumer.model.verdict import encode
from consumer.reviews import queue
from consumer.reviews.database import Database, DatabaseUnavailable
from consumer.reviews.flag_events import add_events
from consumer.reviews.queue import Filters
from consumer.reviews.ranking.preferred import preferred_members
from consumer.reviews.ranking.rank_changes import apply_ranks, configure_ranks
from consumer.reviews.sources import source_ids
from consumer.reviews.standing.standing_decisions import NewStandingDecision, StandingOutcome, begin, end
from consumer.reviews.tables import OUTBOX
from consumer.telemetry.metrics.console import EventSkipped, EventsTaken, FlagsDecided, FloodsStarted, QueueCounted
from storage.errors import StoreUnavailable
from tests.cli.command import wait_for
from tests.unit.console.events_made import ScriptedSource, SourcesStore, batch, flag, of_earlier_version, release
from tests.unit.reviews.made import add_person, database_in, executions
from tests.unit.reviews.outbox_made import add_webhook, causes_of, events_of

NOW_MS = 1_764_000_000_000


class Taking:
    """An intake over a database, and what it reports."""

    def __init__(self, database: Database, **settings: float) -> None:
        self.database = database
        self.stopping = threading.Event()
        self.reported: list[object] = []
        self.noted = 0
        hooks = Hooks()
        for kind in (EventsTaken, EventSkipped, FlagsDecided, FloodsStarted, Outage):
            hooks.on(kind, self.reported.append)
        section = ConsoleSection(**settings)  # type: ignore[arg-type]
        self.parts = IntakeParts(database, section, lambda: NOW_MS, hooks, self._note)
        self.intake = Intake(self.parts, self.stopping)

    def take(self, *batches: object, lost: int = 0) -> ScriptedSource:
        """Take batches in."""
        source = ScriptedSource(*batches, lost=lost)  # type: ignore[arg-type]
        self.intake.take_all(source)
        return source

    def rows(self) -> list[tuple[str, str, str | None, str | None]]:
        """Id, state and sources of everything that is there, in the order in which it came."""
        with self.database.read_connection() as connection:
            found = queue.page(connection, Filters(state=None), "oldest", 100).rows
        return sorted((row.article_id, row.state, row.source, row.original_source) for row in found)

    def _note(self) -> None:
        self.noted += 1


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """One that is empty."""
    opened = database_in(tmp_path)
    yield opened
    opened.close()


def test_a_batch_is_stored_with_its_sources_and_then_committed(database: Database) -> None:
    """The events name the sources: no store is read, neither at once nor later."""
    taking, store = Taking(database), SourcesStore({})
    store.error = StoreUnavailable("gone")
    source = taking.take(batch(flag(1), flag(2), release(3)))
    assert not fill_in_sources(taking.parts, store)
    assert store.calls == []
    assert taking.rows() == [("a1", "open", "s1", "s0"), ("a2", "open", "s2", "s0"), ("a3", "released", "s3", "s0")]
    assert source.committed == [3]
    assert taking.reported == [Outage("database", "intake", None), EventsTaken("flag", 2), EventsTaken("release", 1)]


def test_what_comes_again_changes_nothing(database: Database) -> None:
    """It is counted as known."""
    taking = Taking(database)
    taking.take(batch(flag(1), flag(2)))
    before = taking.rows()
    taking.take(batch(flag(1), flag(2)))
    assert taking.rows() == before
    assert taking.reported[-1] == EventsTaken("known", 2)


def test_sources_of_earlier_flags_are_read_from_the_store(database: Database) -> None:
    """In one call, once it answers, and only those. Articles that it no longer holds have no source."""
    taking, store = Taking(database), SourcesStore({"a0": "s0", "a1": "s1", "a4": "another"})
    earlier = [of_earlier_version(event) for event in (flag(1), flag(2), release(3))]
    assert taking.take(batch(*earlier, flag(4))).committed == [4]
    unknown = [("a1", "open", None, None), ("a2", "open", None, None), ("a3", "released", None, None)]
    assert taking.rows() == [*unknown, ("a4", "open", "s4", "s0")]
    store.error = StoreUnavailable("gone")
    with pytest.raises(StoreUnavailable):
        fill_in_sources(taking.parts, store)
    store.error = None
    assert not fill_in_sources(taking.parts, store)
    known = [("a1", "open", "s1", "s0"), ("a2", "open", "", "s0"), ("a3", "released", "", "s0")]
    assert taking.rows() == [*known, ("a4", "open", "s4", "s0")]
    assert not fill_in_sources(taking.parts, store)
    assert store.calls == [4, 4]


def test_the_preferred_member_is_that_of_every_batch(database: Database) -> None:
    """Also where sources are read later, and where a release takes it away."""
    taking, store = Taking(database), SourcesStore({"a0": "s0", "a1": "s1"})
    with database.write_transaction() as connection:
        configure_ranks(connection, {"s1": 5, "s2": 7, "s3": 9}, NOW_MS)
        apply_ranks(connection, NOW_MS)

    def preferred() -> str:
        with database.read_connection() as connection:
            return preferred_members(connection, [1])[1].article_id

    taking.take(batch(of_earlier_version(flag(1))))
    assert preferred() == "a0"
    fill_in_sources(taking.parts, store)
    assert preferred() == "a1"
    taking.take(batch(flag(2), flag(3)))
    assert preferred() == "a3"
    taking.take(batch(release(3)))
    assert preferred() == "a2"


def test_a_database_that_is_away_is_waited_for(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is committed before it is stored; that it is away is said, and that it is back."""
    taking, stored, away = Taking(database), add_events, [True, True]

    def failing(*arguments: object) -> object:
        if away:
            away.pop()
            raise DatabaseUnavailable("no connection")
        return stored(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "add_events", failing)
    assert taking.take(batch(flag(1))).committed == [1]
    assert [row[0] for row in taking.rows()] == ["a1"]
    outages = [each for each in taking.reported if isinstance(each, Outage)]
    assert [outage.reason for outage in outages] == ["no connection", "no connection", None]


def test_a_batch_that_others_have_is_left_to_them(database: Database) -> None:
    """It is not committed; what was stored of it meanwhile comes again, and changes nothing."""
    taking = Taking(database)
    source = taking.take(batch(flag(1)), batch(flag(2), begin=1), lost=1)
    assert (source.committed, source.abandoned) == ([2], 1)
    taking.take(batch(flag(1)))
    assert [row[0] for row in taking.rows()] == ["a1", "a2"]


def test_a_batch_is_given_up_while_its_database_is_away(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has its partitions now stores it: this one waits no longer, and goes on with what it has."""
    taking, attempts = Taking(database), []

    def failing(*arguments: object) -> object:
        attempts.append(arguments)
        if len(attempts) == 1:
            raise DatabaseUnavailable("no connection")
        return add_events(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "add_events", failing)
    source = taking.take(batch(flag(1)), batch(flag(2), begin=1), lost=1)
    assert (source.committed, source.abandoned) == ([2], 1)
    assert [row[0] for row in taking.rows()] == ["a2"]


def test_it_stops_while_it_waits(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console that ends while its database is away commits nothing."""
    taking = Taking(database)

    def failing(*_: object) -> object:
        taking.stopping.set()
        raise DatabaseUnavailable("no connection")

    monkeypatch.setattr(module, "add_events", failing)
    source = ScriptedSource(batch(flag(1)))
    with pytest.raises(ConsoleStopped):
        taking.intake.take_all(source)
    assert source.committed == []


def test_an_event_of_a_newer_version_is_waited_with(database: Database) -> None:
    """Nothing of its batch is committed, and readiness says what to do."""
    taking = Taking(database)
    newer = encode(flag(1)).replace(b"dupwatch.verdict/1", b"dupwatch.verdict/2")
    source = ScriptedSource(batch(flag(2), newer))

    def wait() -> None:
        with pytest.raises(ConsoleStopped):
            taking.intake.take_all(source)

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_for(lambda: bool(taking.reported))
    (outage,) = taking.reported
    assert isinstance(outage, Outage)
    assert outage.reason is not None
    assert "update the console" in outage.reason
    taking.stopping.set()
    waiting.join(60)
    assert source.committed == []
    assert taking.rows() == []


def test_a_flood_is_noted_within_the_batch(database: Database) -> None:
    """And whoever announces it is woken; once it is known it is not noted again."""
    taking = Taking(database, flood_copies=5)
    taking.take(batch(*(flag(number) for number in range(1, 5))))
    assert taking.noted == 0
    taking.take(batch(flag(5)), batch(flag(6), begin=1))
    assert taking.noted == 1
    assert taking.reported.count(FloodsStarted(1)) == 1
    assert causes_of(database) == [("began", "a0", 4), ("flood", "a0", 5)]
    assert [event["copies"] for event in events_of(database, "flood")] == [5]


def test_nothing_comes_in_while_the_outbox_has_no_room(database: Database) -> None:
    """The batch waits, neither stored nor committed, and comes in once there is some."""
    taking, room = Taking(database), threading.Event()
    asked = threading.Event()

    def has_room() -> bool:
        asked.set()
        return room.is_set()

    taking.intake = Intake(dataclasses.replace(taking.parts, has_room=has_room), taking.stopping)
    source = ScriptedSource(batch(flag(1)))
    waiting = threading.Thread(target=taking.intake.take_all, args=(source,))
    waiting.start()
    assert asked.wait(60)
    assert (taking.rows(), source.committed) == ([], [])
    room.set()
    waiting.join(60)
    assert (len(taking.rows()), source.committed) == (1, [1])


def stand(database: Database, outcome: StandingOutcome, **about: object) -> None:
    """Let somebody decide what still comes."""
    ann = add_person(database, "Ann").person_id
    new = NewStandingDecision(outcome, ann, NOW_MS + 1_000, "", **about)  # type: ignore[arg-type]
    database.write(lambda c: begin(c, new, NOW_MS))


def test_flags_are_decided_as_standing_decisions_say(database: Database) -> None:
    """In the transaction that stores them, and once; it is counted and reported as no person's decision."""
    taking = Taking(database)
    taking.take(batch(flag(1)))
    with database.read_connection() as connection:
        (row,) = queue.page(connection, Filters(), "oldest", 9).rows
    stand(database, "right", story_id=row.story_id)
    for begun in (1, 3):
        taking.take(batch(flag(2), flag(3), begin=begun))
    assert [each[1] for each in taking.rows()] == ["open", "right", "right"]
    decided = [each for each in taking.reported if isinstance(each, FlagsDecided)]
    assert decided == [FlagsDecided("right", 2, "standing_decision")]
    counted: list[object] = []
    count_queue(database, NOW_MS, counted.append)
    (counts,) = counted
    assert isinstance(counts, QueueCounted)
    assert counts.standing == {"story": 1, "sources": 0}


def test_a_muted_pair_is_no_flood(database: Database) -> None:
    """Its flags are no copies."""
    sources = database.write(lambda c: source_ids(c, ["s1", "s0"]))
    stand(database, "wrong", sources=(sources["s1"], sources["s0"]))
    taking = Taking(database, flood_copies=3)
    taking.take(batch(*(replace(flag(number), source="s1") for number in range(1, 5))))
    assert [each[1] for each in taking.rows()] == ["wrong"] * 4
    assert taking.noted == 0


def test_a_muted_pair_begins_no_story(database: Database) -> None:
    """Nor is its flag preferred, whatever its rank; the story begins once the mute is ended in time."""
    sources = database.write(lambda c: source_ids(c, ["s1", "s0"]))
    stand(database, "wrong", sources=(sources["s1"], sources["s0"]))
    database.write(lambda c: configure_ranks(c, {"s1": 5}, NOW_MS))
    Taking(database).take(batch(flag(1)))
    assert causes_of(database) == []
    database.write(lambda c: end(c, 1, NOW_MS + 1))
    assert causes_of(database) == [("began", "a0", 1), ("preferred", "a0", 1)]


def test_the_events_of_a_batch_are_in_order(database: Database) -> None:
    """A flag before its decision, and a story's beginning before anything else of it."""
    add_webhook(database, "flag", "decision", "story", "flood")
    sources = database.write(lambda c: source_ids(c, ["s1", "s0"]))
    stand(database, "wrong", sources=(sources["s1"], sources["s0"]))
    database.write(lambda c: configure_ranks(c, {"s2": 5}, NOW_MS))
    Taking(database, flood_copies=3).take(batch(*(flag(number) for number in range(1, 5))))
    with database.read_connection() as connection:
        kinds = list(connection.execute(select(OUTBOX.c.kind).order_by(OUTBOX.c.event_id)).scalars())
    assert kinds == [*["flag"] * 4, "decision", "story", "story", "flood", "story"]
    assert causes_of(database) == [("began", "a0", 3), ("preferred", "a0", 3), ("flood", "a0", 3)]


def test_a_batch_costs_the_same_statements_whatever_its_size(database: Database) -> None:
    """With webhooks, ranks and a standing decision, and as many stories as flags."""
    add_webhook(database, "flag", "decision", "story", "flood")
    sources = database.write(lambda c: source_ids(c, ["copier", "wire"]))
    stand(database, "wrong", sources=(sources["copier"], sources["wire"]))
    database.write(lambda c: configure_ranks(c, {"post": 5, "wire": -2}, NOW_MS))
    taking, counts = Taking(database), []
    for first, size in ((1_000, 20), (2_000, 400)):
        flags = [
            replace(flag(number, number + 10_000), source="copier" if number % 2 else "post", original_source="wire")
            for number in range(first, first + size)
        ]
        with executions(database) as executed:
            taking.take(batch(*flags, begin=first))
        counts.append(len(executed))
    assert max(counts) < 80
    assert abs(counts[0] - counts[1]) < 3


def test_a_mute_fits_once_the_store_says_the_sources(database: Database) -> None:
    """In the transaction that stores them, and before any of them is preferred."""
    sources = database.write(lambda c: source_ids(c, ["s1", "s0"]))
    stand(database, "wrong", sources=(sources["s1"], sources["s0"]))
    database.write(lambda c: configure_ranks(c, {"s1": 5}, NOW_MS))
    taking, store = Taking(database), SourcesStore({"a0": "s0", "a1": "s1", "a2": "s2"})
    taking.take(batch(of_earlier_version(flag(1)), of_earlier_version(flag(2))))
    assert [each[1] for each in taking.rows()] == ["open", "open"]
    assert not fill_in_sources(taking.parts, store)
    assert taking.rows() == [("a1", "wrong", "s1", "s0"), ("a2", "open", "s2", "s0")]
    assert taking.reported[-1] == FlagsDecided("wrong", 1, "standing_decision")
    assert causes_of(database) == [("began", "a0", 2)]
