"""Decision events: a decision about an entry of the console's queue was made or undone."""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import Timestamp

DECISION_SCHEMA: Final = "dupwatch.decision/1"

Number = Annotated[int, msgspec.Meta(ge=1)]


class DecisionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, or if ``undone`` the end of one; ``docs/use/events.md`` describes the fields.

    It is sent to webhooks at least once. The console assigns the numbers ``event``, ``review`` and ``story``. In a bank
    match the original is the article itself. ``standing`` marks a decision that a standing decision made.
    """

    schema: Literal["dupwatch.decision/1"] = DECISION_SCHEMA
    event: Number
    review: Number
    kind: Literal["flag", "near_miss", "ended_before", "bank_match"]
    article: str
    version: str
    original: str
    original_version: str
    story: Number
    decision: Literal["right", "wrong", "skip"]
    reason: str | None
    note: str
    person: str
    standing: bool
    at: Timestamp
    final_at: Timestamp
    undone: bool


def encode_decision(event: DecisionEvent) -> bytes:
    """Return the event as JSON without a line end; equal events give equal bytes."""
    return msgspec.json.encode(event)
