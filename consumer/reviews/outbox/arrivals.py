"""Writes events of new flags and bank matches into the outbox."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection

from consumer.model.bank_match import BankMatchEvent
from consumer.model.verdict import Verdict, encode
from consumer.reviews.kinds.side_entries import NewMatch, store_bank_matches
from consumer.reviews.outbox.events import NewEvent, append, is_wanted


def write_flag_events(connection: Connection, new: Sequence[tuple[Verdict, int]], now_ms: int) -> None:
    """Write events of new flags, given with their stories. If there are any, the caller must hold ``Lock.FLAGS``."""
    if new and is_wanted(connection, "flag"):
        append(connection, [_flag(verdict, story_id) for verdict, story_id in new], now_ms)


def write_bank_match_events(connection: Connection, matches: Sequence[NewMatch], now_ms: int) -> None:
    """Write events of new bank matches. If there are any, the caller must hold ``Lock.FLAGS``."""
    if matches and is_wanted(connection, "bank_match"):
        append(connection, [_bank_match(match) for match in matches], now_ms)


def take_in_bank_matches(connection: Connection, events: Sequence[BankMatchEvent], now_ms: int) -> int:
    """Store bank matches, write events of new ones, and return the number of new entries."""
    added = store_bank_matches(connection, events)
    write_bank_match_events(connection, added.new, now_ms)
    return added.entries


def _flag(verdict: Verdict, story_id: int) -> NewEvent:
    sources = frozenset(name for name in (verdict.source, verdict.original_source) if isinstance(name, str) and name)
    return NewEvent("flag", story_id, sources, lambda _: encode(verdict))


def _bank_match(match: NewMatch) -> NewEvent:
    # A bank match names no source.
    return NewEvent("bank_match", match.story_id, frozenset(), lambda _: msgspec.json.encode(match.event))
