"""Writes events of what has come in into the outbox: flags and bank matches."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection

from consumer.model.bank_match import BankMatchEvent
from consumer.model.verdict import Verdict, encode
from consumer.reviews.kinds.side_entries import NewMatch, bank_matches_added
from consumer.reviews.outbox.events import NewEvent, append, is_wanted


def tell_of_flags(connection: Connection, new: Sequence[tuple[Verdict, int]], now_ms: int) -> None:
    """Write events of new flags, given with their stories. Whoever calls this holds ``Lock.FLAGS`` if there are any."""
    if new and is_wanted(connection, "flag"):
        append(connection, [_flag(verdict, story_id) for verdict, story_id in new], now_ms)


def tell_of_bank_matches(connection: Connection, matches: Sequence[NewMatch], now_ms: int) -> None:
    """Write events of new bank matches. Whoever calls this holds ``Lock.FLAGS`` if there are any."""
    if matches and is_wanted(connection, "bank_match"):
        append(connection, [_bank_match(match) for match in matches], now_ms)


def take_in_bank_matches(connection: Connection, events: Sequence[BankMatchEvent], now_ms: int) -> int:
    """Store bank matches, write events of those that are new, and return how many entries are."""
    added = bank_matches_added(connection, events)
    tell_of_bank_matches(connection, added.new, now_ms)
    return added.entries


def _flag(verdict: Verdict, story_id: int) -> NewEvent:
    sources = frozenset(name for name in (verdict.source, verdict.original_source) if isinstance(name, str) and name)
    return NewEvent("flag", story_id, sources, lambda _: encode(verdict))


def _bank_match(match: NewMatch) -> NewEvent:
    # It names no source.
    return NewEvent("bank_match", match.story_id, frozenset(), lambda _: msgspec.json.encode(match.event))
