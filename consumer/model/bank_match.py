"""Bank matches: events about articles that repeat texts which a bank denies.

They are made from verdicts, so a replay has the same bytes. What is said of verdict events holds here, too: readers
skip members that they do not know, and a new member is optional.
"""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import BANK_MATCHES_MAX, BankMention, Outcome, Timestamp, Verdict, VersionName

SCHEMA: Final = "dupwatch.bank-match/1"


class BankMatchEvent(msgspec.Struct, frozen=True, kw_only=True):
    """All fields of the event, which ``docs/formats.md`` describes. ``banks`` has at least one that denies."""

    schema: Literal["dupwatch.bank-match/1"] = SCHEMA
    id: str
    version: VersionName
    outcome: Outcome
    banks: Annotated[tuple[BankMention, ...], msgspec.Meta(min_length=1, max_length=BANK_MATCHES_MAX)]
    arrived_at: Timestamp
    decided_at: Timestamp


def is_denied(verdict: Verdict) -> bool:
    """Return whether an article repeats a text that a bank denies."""
    return verdict.banks is not msgspec.UNSET and any(mention.action == "deny" for mention in verdict.banks)


def bank_match(verdict: Verdict) -> bytes | None:
    """Return the event as JSON without a line end; None where the article repeats no text that a bank denies."""
    if verdict.version is None or verdict.banks is msgspec.UNSET or not is_denied(verdict):
        return None
    return msgspec.json.encode(
        BankMatchEvent(
            id=verdict.id,
            version=verdict.version,
            outcome=verdict.outcome,
            banks=verdict.banks,
            arrived_at=verdict.arrived_at,
            decided_at=verdict.decided_at,
        )
    )


def decode_bank_match(data: bytes) -> BankMatchEvent:
    """Return the event. Raises ``msgspec.DecodeError`` for anything else."""
    return msgspec.json.decode(data, type=BankMatchEvent)
