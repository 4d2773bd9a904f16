"""Webhooks, and what the outbox holds, for the tests of events."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from sqlalchemy import insert, select

from consumer.model.verdict import Verdict
from consumer.reviews.database import Database
from consumer.reviews.flag_events import IntakeCounts, add_events
from consumer.reviews.outbox.arrivals import write_flag_events
from consumer.reviews.outbox.events import EventKind
from consumer.reviews.outbox.story_events import write_growth_events
from consumer.reviews.tables import DELIVERIES, OUTBOX, WEBHOOKS
from tests.unit.reviews.made import NOW_MS, add_person

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"


def valid(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event once its schema has checked it."""
    name = event["schema"].removeprefix("dupwatch.").partition("/")[0]
    Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_bytes())).validate(event)
    return event


def events_of(database: Database, kind: EventKind) -> list[dict[str, Any]]:
    """Return the events of a kind that are in the outbox, in order."""
    query = select(OUTBOX.c.payload).where(OUTBOX.c.kind == kind).order_by(OUTBOX.c.event_id)
    with database.read_connection() as connection:
        return [valid(json.loads(payload)) for payload in connection.execute(query).scalars()]


def causes_of(database: Database) -> list[tuple[str, str, int]]:
    """Return the cause, the original and the copies of each story event, in order."""
    return [(event["cause"], event["original"], event["copies"]) for event in events_of(database, "story")]


def numbers_of(database: Database) -> list[int]:
    """Return the numbers of the events in the outbox."""
    with database.read_connection() as connection:
        return list(connection.execute(select(OUTBOX.c.event_id).order_by(OUTBOX.c.event_id)).scalars())


def add_webhook(database: Database, *kinds: EventKind, sources: tuple[str, ...] = (), name: str = "hook") -> int:
    """Add a webhook that wants these kinds; return its number."""
    person = add_person(database, f"Owner of {name}", "admin")
    values = {
        "name": name,
        "url": "https://hooks.example/",
        "kinds": json.dumps(kinds),
        "sources": json.dumps(sources),
        "secret": "whsec_x",
        "person_id": person.person_id,
        "created_ms": NOW_MS,
    }
    made = insert(WEBHOOKS).values(values).returning(WEBHOOKS.c.webhook_id)
    with database.write_transaction() as connection:
        return int(connection.execute(made).scalar_one())


def delivered_to(database: Database, webhook_id: int) -> list[int]:
    """Return the events that a webhook is still to get."""
    query = select(DELIVERIES.c.event_id).where(DELIVERIES.c.webhook_id == webhook_id).order_by(DELIVERIES.c.event_id)
    with database.read_connection() as connection:
        return list(connection.execute(query).scalars())


def arrived(database: Database, *verdicts: Verdict, now_ms: int = NOW_MS) -> IntakeCounts:
    """Take events in as the console does, as one batch."""
    with database.write_transaction() as connection:
        added = add_events(connection, verdicts)
        write_flag_events(connection, added.new, now_ms)
        write_growth_events(connection, added.grown, now_ms)
        return added
