"""Bank matches: events about articles that repeat a text which a bank denies.

The events are made from verdicts, so replays give the same bytes. As with verdict events, readers skip unknown members,
and new members are optional.

A *retroactive* match is about an article that was stored before the item was added, so its verdict does not name the
item. Each pair of article and item has its own event, whose bytes do not depend on the other items compared.
"""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import BANK_MATCHES_MAX, BankMention, Outcome, Timestamp, Verdict, VersionName

SCHEMA: Final = "dupwatch.bank-match/1"


class BankMatchEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A bank match; ``docs/use/events.md`` describes the fields. At least one of ``banks`` has the action deny.

    ``retroactive`` is absent if the match was found before the article was stored.
    """

    schema: Literal["dupwatch.bank-match/1"] = SCHEMA
    id: str
    version: VersionName
    outcome: Outcome
    banks: Annotated[tuple[BankMention, ...], msgspec.Meta(min_length=1, max_length=BANK_MATCHES_MAX)]
    arrived_at: Timestamp
    decided_at: Timestamp
    retroactive: Literal[True] | msgspec.UnsetType = msgspec.UNSET


def is_denied(verdict: Verdict) -> bool:
    """Return whether the article repeats a text that a bank denies."""
    return verdict.banks is not msgspec.UNSET and any(mention.action == "deny" for mention in verdict.banks)


def match_of(verdict: Verdict) -> BankMatchEvent | None:
    """Return the event of a verdict, or None for a retraction and for an article that repeats no denied text."""
    if verdict.version is None or verdict.banks is msgspec.UNSET or not is_denied(verdict):
        return None
    return _event(verdict, verdict.version, verdict.banks, msgspec.UNSET)


def bank_match(verdict: Verdict) -> bytes | None:
    """Return the result of ``match_of`` as JSON without a line end, or None if there is no event."""
    match = match_of(verdict)
    return None if match is None else msgspec.json.encode(match)


def retroactive_match(verdict: Verdict, mention: BankMention) -> bytes | None:
    """Return the event about a stored article that repeats a denied item, as JSON without a line end.

    Return None for a retraction, and for a verdict that names the item already.
    """
    known = () if verdict.banks is msgspec.UNSET else verdict.banks
    if verdict.version is None or any((each.bank, each.item) == (mention.bank, mention.item) for each in known):
        return None
    match = _event(verdict, verdict.version, (mention,), True)  # noqa: FBT003  # the only value that the member has
    return msgspec.json.encode(match)


def _event(
    verdict: Verdict,
    version: str,
    banks: tuple[BankMention, ...],
    retroactive: Literal[True] | msgspec.UnsetType,
) -> BankMatchEvent:
    return BankMatchEvent(
        id=verdict.id,
        version=version,
        outcome=verdict.outcome,
        banks=banks,
        arrived_at=verdict.arrived_at,
        decided_at=verdict.decided_at,
        retroactive=retroactive,
    )


def decode_bank_match(data: bytes) -> BankMatchEvent:
    """Decode an event. Raises ``msgspec.DecodeError``, ``UnicodeDecodeError`` or ``RecursionError`` for other bytes."""
    return msgspec.json.decode(data, type=BankMatchEvent)
