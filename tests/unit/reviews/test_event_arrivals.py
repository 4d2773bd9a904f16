"""Events for webhooks alone: flags, bank matches and decisions."""

import json
from typing import Any

from sqlalchemy import select

from consumer.model.verdict import encode
from consumer.reviews.database import Connection, Database
from consumer.reviews.decisions import decide, undo
from consumer.reviews.kinds.side_entries import add_side_entries
from consumer.reviews.moderation import reasons
from consumer.reviews.outbox.arrivals import take_in_bank_matches, write_bank_match_events
from consumer.reviews.tables import OUTBOX
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_matches,
    add_person,
    bank_match,
    denied,
    flag_ids,
    flagged,
    number_of,
    read,
    released,
    write,
)
from tests.unit.reviews.outbox_made import add_webhook, arrived, delivered_to, events_of


def stored(database: Database) -> list[tuple[str, int | None, bytes]]:
    """Kind, story and payload of all events."""
    columns = select(OUTBOX.c.kind, OUTBOX.c.story_id, OUTBOX.c.payload).order_by(OUTBOX.c.event_id)
    rows = read(database, lambda connection: connection.execute(columns).all())
    return [(kind, story_id, payload.encode()) for kind, story_id, payload in rows]


def test_new_flags_are_told_as_they_came(database: Database) -> None:
    """Before what they do to their story; not what is known, and not what comes after its release."""
    hook = add_webhook(database, "flag")
    late = flagged("late", "o")
    first, other = flagged("a", "o"), flagged("b", "o", sources=(None, None))
    arrived(database, released(late))
    arrived(database, first, first, late)
    arrived(database, other, first, released(first))
    kinds = [kind for kind, _, _ in stored(database)]
    assert kinds == ["flag", "story", "flag"]
    assert [payload for kind, _, payload in stored(database) if kind == "flag"] == [encode(first), encode(other)]
    assert delivered_to(database, hook) == [1, 3]


def test_flags_are_told_by_source(database: Database) -> None:
    """Of the article, or of the one it repeats."""
    hook = add_webhook(database, "flag", sources=("wire",))
    arrived(database, flagged("a", "o", sources=("wire", "x")), flagged("b", "p", sources=("x", "wire")))
    arrived(database, flagged("c", "q", sources=("x", "y")), flagged("d", "r", sources=(None, None)))
    told = [json.loads(payload)["id"] for kind, _, payload in stored(database) if kind == "flag"]
    assert (told, len(delivered_to(database, hook))) == (["a", "b"], 2)


def test_where_nobody_wants_them_none_are_written(database: Database) -> None:
    """What only webhooks get costs nothing without any."""
    add_webhook(database, "story")
    ann = add_person(database, "Ann").person_id
    add(database, flagged("a", "o"), flagged("b", "o"))
    write(database, decide, flag_ids(database)[:1], ann, "right", "", NOW_MS, 9)
    write(database, take_in_bank_matches, [bank_match("m", denied("offer"))], NOW_MS)
    assert number_of(database, OUTBOX) == 0


def test_bank_matches_are_told_where_they_name_something_new(database: Database) -> None:
    """A second item is new, also in a batch with what is known; what comes again is not."""
    add_webhook(database, "bank_match")
    first, more = bank_match("m", denied("offer")), bank_match("m", denied("offer"), denied("win"))
    assert write(database, take_in_bank_matches, [first, first], NOW_MS) == 1
    assert write(database, take_in_bank_matches, [first], NOW_MS) == 0
    assert write(database, take_in_bank_matches, [first, more, more], NOW_MS) == 0
    told = [json.loads(payload) for _, _, payload in stored(database)]
    assert [[item["item"] for item in event["banks"]] for event in told] == [["offer"], ["offer", "win"]]
    assert {event["schema"] for event in told} == {"dupwatch.bank-match/1"}
    assert add_matches(database, bank_match("other", denied("offer"))) == 1
    assert len(stored(database)) == 2, "only the intake tells of them"


def test_bank_matches_of_a_file_are_told(database: Database) -> None:
    """There they are made from verdicts."""
    add_webhook(database, "bank_match")
    verdict = flagged("m", "o", banks=(denied("offer"),))

    def take_in(connection: Connection) -> None:
        write_bank_match_events(connection, add_side_entries(connection, [verdict]).matches, NOW_MS)

    write(database, take_in)
    write(database, take_in)
    ((kind, story_id, payload),) = stored(database)
    assert (kind, story_id, json.loads(payload)["id"]) == ("bank_match", 1, "m")


def test_decisions_are_told_and_their_end(database: Database) -> None:
    """With all that was said; a decision that is changed ends, too."""
    hook = add_webhook(database, "decision", sources=("wire",))
    ann = add_person(database, "Ann").person_id
    reason = write(database, reasons.add_reason, "Other story").reason_id
    add(database, flagged("a", "o", sources=("x", "wire")), flagged("b", "p", sources=("x", "y")))
    flags = flag_ids(database)
    first = write(database, decide, flags, ann, "wrong", "see there", NOW_MS, 9_000, reason).review_ids
    second = write(database, decide, flags, ann, "right", "", NOW_MS + 1, 9_000).review_ids
    write(database, undo, second, ann, NOW_MS + 2)
    events = [event for event in events_of(database, "decision") if event["article"] == "a"]
    expected: dict[str, Any] = {
        "schema": "dupwatch.decision/1", "event": 1, "review": first[0], "kind": "flag", "article": "a",
        "version": "aa", "original": "o", "original_version": "aa", "story": 1, "decision": "wrong",
        "reason": "Other story", "note": "see there", "person": "Ann", "standing": False,
        "at": "2026-09-21T14:13:20.000Z", "final_at": "2026-09-21T14:13:29.000Z", "undone": False,
    }  # fmt: skip
    assert events[0] == expected
    told = [(event["review"], event["decision"], event["undone"]) for event in events]
    assert told == [
        (first[0], "wrong", False), (first[0], "wrong", True), (second[0], "right", False), (second[0], "right", True),
    ]  # fmt: skip
    assert len(delivered_to(database, hook)) == 4
    assert len(events_of(database, "decision")) == 4, "the other one is of no source that is wanted"
