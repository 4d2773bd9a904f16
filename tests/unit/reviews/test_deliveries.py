"""Deliveries: who sends what next, in which order, and what is left when something fails or two processes send."""

from sqlalchemy import select

from consumer.reviews.database import Database
from consumer.reviews.outbox import deliveries, webhooks
from consumer.reviews.outbox.deliveries import DeliveryBacklog, DeliveryClaim, Failure, LastAttempt
from consumer.reviews.tables import DELIVERIES
from tests.unit.reviews.made import NOW_MS, at_once, read, write
from tests.unit.reviews.webhooks_made import SECRET, add_webhook, happened, outbox, settings, tell, waiting

LEASE_MS = 60_000


def claim(database: Database, webhook_id: int, now_ms: int = NOW_MS, limit: int = 10) -> list[DeliveryClaim]:
    """Claim what is due."""
    return write(database, deliveries.claim_due_deliveries, webhook_id, now_ms, LEASE_MS, limit)


def accept(database: Database, *claims: DeliveryClaim) -> None:
    """Note that a webhook has these."""
    write(database, deliveries.note_accepted, claims, NOW_MS)


def fail(database: Database, claimed: DeliveryClaim, due_ms: int, now_ms: int = NOW_MS) -> None:
    """Note that one failed."""
    write(database, deliveries.note_failed, Failure(claimed, 503, "status later", due_ms), now_ms)


def numbers(claims: list[DeliveryClaim]) -> list[int]:
    """The events of claims."""
    return [each.event_id for each in claims]


def test_the_first_event_of_each_story_is_claimed(database: Database) -> None:
    """The next one once a webhook has it; events without a story wait for none."""
    hook = add_webhook(database, settings())
    tell(database, happened("a", 1), happened("b", 1), happened("c", 2), happened("d"), happened("e"), happened("f", 2))
    first = claim(database, hook)
    assert numbers(first) == [1, 3, 4, 5]
    assert [each.payload for each in first][:1] == ['{"event": 1, "text": "a"}']
    assert claim(database, hook) == []
    accept(database, *first[:1])
    second = claim(database, hook)
    assert numbers(second) == [2]
    accept(database, *second, *first[1:])
    last = claim(database, hook)
    assert numbers(last) == [6]
    accept(database, *last)
    assert waiting(database, hook) == []
    # The latest one keeps the number.
    assert outbox(database) == [6]


def test_a_story_waits_behind_its_failed_delivery(database: Database) -> None:
    """Other stories and other webhooks go on, and so do events without a story."""
    ops, site = add_webhook(database, settings("ops")), add_webhook(database, settings("site"))
    tell(database, happened("a", 1), happened("b", 1), happened("c", 2), happened("d"))
    stuck, *others = claim(database, ops)
    fail(database, stuck, NOW_MS + 5_000)
    accept(database, *others)
    tell(database, happened("e", 1), happened("f", 2))
    assert numbers(claim(database, ops, NOW_MS + 4_999)) == [6]
    assert numbers(claim(database, site)) == [1, 3, 4]
    (again,) = claim(database, ops, NOW_MS + 5_000)
    assert (again.event_id, again.failing_since_ms, again.tries) == (1, NOW_MS, 2)
    accept(database, again)
    assert numbers(claim(database, ops, NOW_MS + 5_000)) == [2]


def test_only_the_first_event_of_a_story_is_due(database: Database) -> None:
    """So a claim looks at no others, however many wait; sending everything now makes no more of them due."""
    ops, site = add_webhook(database, settings("ops")), add_webhook(database, settings("site"))
    tell(database, happened("a", 1), happened("b", 1), happened("c", 2), happened("d"), happened("e"))
    tell(database, happened("f", 2), happened("g", 3))

    def due(webhook_id: int) -> list[int]:
        is_due = (DELIVERIES.c.webhook_id == webhook_id, DELIVERIES.c.due_ms.is_not(None))
        query = select(DELIVERIES.c.event_id).where(*is_due).order_by(DELIVERIES.c.event_id)
        return read(database, lambda c: list(c.execute(query).scalars()))

    assert due(ops) == due(site) == [1, 3, 4, 5, 7]
    write(database, webhooks.send_waiting, ops, NOW_MS)
    assert due(ops) == [1, 3, 4, 5, 7]
    claims = claim(database, ops)
    accept(database, *claims[:2])
    # Another process had one of them too, and had it accepted a little later.
    accept(database, *claims[:1])
    assert (due(ops), due(site)) == ([2, 4, 5, 6, 7], [1, 3, 4, 5, 7])
    assert numbers(claim(database, ops)) == [2, 6]


def test_a_claim_runs_out(database: Database, second: Database) -> None:
    """Whoever was killed with it leaves it to others; a late note of a failure changes nothing then."""
    hook = add_webhook(database, settings())
    tell(database, happened("a", 1), happened("b", 1))
    (lost,) = claim(database, hook)
    assert claim(second, hook, NOW_MS + LEASE_MS - 1) == []
    (taken,) = claim(second, hook, NOW_MS + LEASE_MS)
    assert (taken.event_id, taken.tries) == (1, 2)
    fail(database, lost, NOW_MS + 1)
    assert claim(database, hook, NOW_MS + LEASE_MS + 1) == []
    # One that was accepted is accepted, whoever had the claim.
    accept(database, lost)
    assert numbers(claim(second, hook, NOW_MS + LEASE_MS)) == [2]


def test_a_late_note_is_of_its_own_event(database: Database) -> None:
    """SQLite gives the id of a deleted row to the next one, which nobody has sent."""
    hook = add_webhook(database, settings())
    tell(database, happened("a"), happened("b"))
    first, second = claim(database, hook)
    for late, quick in zip((first, second), claim(database, hook, NOW_MS + LEASE_MS), strict=True):
        accept(database, quick)
        assert late.event_id == quick.event_id
    tell(database, happened("c"), happened("d"))
    claims = claim(database, hook)
    accept(database, first)
    fail(database, second, NOW_MS + 5)
    assert waiting(database, hook) == [3, 4]
    assert claim(database, hook, NOW_MS + 5) == []
    accept(database, *claims)


def test_two_processes_never_have_the_same(database: Database, second: Database) -> None:
    """Nor two events of a story, while both claim as fast as they can."""
    hook = add_webhook(database, settings())
    tell(database, *(happened(f"{story}", story) for _ in range(4) for story in range(10)))
    for _ in range(4):
        mine, yours = at_once([lambda: claim(database, hook, limit=7), lambda: claim(second, hook, limit=7)])
        both = [*mine, *yours, *claim(database, hook)]
        assert len(numbers(both)) == len(set(numbers(both))) == 10
        at_once([lambda mine=mine: accept(database, *mine), lambda yours=yours: accept(second, *yours)])  # type: ignore[misc]
        accept(database, *both[len(mine) + len(yours) :])
    assert waiting(database, hook) == []
    assert outbox(database) == [40]


def test_an_event_stays_until_the_last_webhook_has_it(database: Database, second: Database) -> None:
    """Two that accept it at the same moment leave nothing behind."""
    ops, site = add_webhook(database, settings("ops")), add_webhook(database, settings("site"))
    tell(database, *(happened("a") for _ in range(8)))
    mine, yours = claim(database, ops), claim(second, site)
    accept(database, mine[0])
    assert outbox(database) == [*range(1, 9)]
    accept(second, yours[0])
    assert outbox(database) == [*range(2, 9)]
    for one, other in zip(mine[1:], yours[1:], strict=True):
        at_once([lambda one=one: accept(database, one), lambda other=other: accept(second, other)])  # type: ignore[misc]
    assert outbox(database) == [8]
    # Once there is a later one it is not needed for its number any more.
    tell(database, happened("b"))
    assert outbox(database) == [9]


def test_what_the_sink_is_to_get_stays(database: Database) -> None:
    """Although every webhook has it."""
    hook = add_webhook(database, settings())
    tell(database, happened("a", 1, "story"), happened("b"))
    accept(database, *claim(database, hook))
    assert outbox(database) == [1, 2]


def test_a_webhook_that_is_off_or_pauses_has_no_destination(database: Database) -> None:
    """Its events are kept, and sent when it is on again; one that was accepted ends the pause."""
    hook = add_webhook(database, settings())
    tell(database, happened("a", 1))

    def is_on(now_ms: int = NOW_MS) -> bool:
        return bool(read(database, deliveries.destinations, now_ms))

    write(database, deliveries.note_last, hook, LastAttempt(NOW_MS, 503, "status", NOW_MS + 30_000))
    assert [is_on(NOW_MS + 29_999), is_on(NOW_MS + 30_000)] == [False, True]
    write(database, deliveries.note_last, hook, LastAttempt(NOW_MS, 204, "", None))
    assert is_on()
    assert write(database, webhooks.turn_off, hook, "day", NOW_MS)
    assert not write(database, webhooks.turn_off, hook, "gone", NOW_MS)
    assert not is_on()
    tell(database, happened("b", 2))
    assert waiting(database, hook) == [1, 2]
    write(database, webhooks.send_waiting, hook, NOW_MS)
    assert [each.secrets for each in read(database, deliveries.destinations, NOW_MS)] == [(SECRET,)]
    assert numbers(claim(database, hook)) == [1, 2]


def test_what_waits_is_counted(database: Database) -> None:
    """The oldest only of webhooks that are on; those that a person turned off are not given up."""
    ops, site = add_webhook(database, settings("ops")), add_webhook(database, settings("site"))
    assert read(database, deliveries.backlog) == DeliveryBacklog(None, 0)
    tell(database, happened("a", 1), now_ms=NOW_MS + 1)
    accept(database, *claim(database, site, NOW_MS + 1))
    tell(database, happened("b", 1), now_ms=NOW_MS + 2)
    assert read(database, deliveries.backlog) == DeliveryBacklog(NOW_MS + 1, 0)
    write(database, webhooks.turn_off, ops, "person", NOW_MS)
    assert read(database, deliveries.backlog) == DeliveryBacklog(NOW_MS + 2, 0)
    write(database, webhooks.turn_off, site, "day", NOW_MS)
    assert read(database, deliveries.backlog) == DeliveryBacklog(None, 1)
    (claimed,) = claim(database, ops, NOW_MS + 2)
    fail(database, claimed, NOW_MS + 9, NOW_MS + 3)
    assert read(database, deliveries.failing_since, ops) == NOW_MS + 3
    assert read(database, deliveries.failing_since, site) is None
