"""Reads events from records of the topic of flags: nothing is left out without being counted and logged.

A record that can never be read is skipped. One that a newer version of dupwatch could read is not: whoever skipped it
would never see that flag.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from consumer.model.article import Reason
from consumer.model.record import RawRecord
from consumer.model.verdict import SCHEMA, Released, UnreadableEvent, Verdict, decode_verdict
from consumer.telemetry.metrics.console import EventSkipped, SkippedFor

log = logging.getLogger("dupwatch")

_FAMILY: Final = SCHEMA.rpartition("/")[0] + "/"


class NewerEvent(Exception):  # noqa: N818  # named for the event: nothing failed
    """A record is an event of a later version. It is kept in the topic for a console of that version."""


class _Named(msgspec.Struct):
    """The member of an event that names its schema."""

    schema: str


def read_events(records: Sequence[RawRecord], report: Callable[[object], None]) -> list[Verdict]:
    """Return the verdicts of records in their order. Raises ``NewerEvent``; what is skipped is reported and logged."""
    return list(_events(records, report))


def _events(records: Sequence[RawRecord], report: Callable[[object], None]) -> Iterator[Verdict]:
    skipped: list[tuple[SkippedFor, str, RawRecord]] = []
    for record in records:
        reason = _why_not_whole(record)
        if reason is not None:
            skipped.append((reason, "", record))
            continue
        try:
            verdict = decode_verdict(record.data)
            _check_times(verdict)
        except (UnreadableEvent, ValueError) as error:
            _check_schema(record)
            skipped.append(("not_an_event", f": {error}", record))
        else:
            yield verdict
    # Only once all are read: a batch with a newer event is read again, and its records are not skipped twice.
    for reason, detail, record in skipped:
        report(EventSkipped(reason))
        log.warning("%s is skipped, since it can never be read as a flag: %s%s", place_of(record), reason, detail)


def place_of(record: RawRecord) -> str:
    """Return where a record is in its topic."""
    message = record.message
    return "a record" if message is None else f"{message.topic} [{message.partition}] offset {message.offset}"


def _why_not_whole(record: RawRecord) -> SkippedFor | None:
    if record.fault is not None:
        return "unreadable_message" if record.fault.reason == Reason.UNREADABLE_MESSAGE else "too_large"
    if record.message is not None and record.message.null_value:
        return "null_value"
    return None


def _check_times(verdict: Verdict) -> None:
    """Raise ``ValueError`` for a time that looks like one and is none."""
    for text in (verdict.arrived_at, verdict.decided_at):
        datetime.fromisoformat(text)
    if isinstance(verdict.released, Released):
        datetime.fromisoformat(verdict.released.flagged_at)


def _check_schema(record: RawRecord) -> None:
    """Raise ``NewerEvent`` for an event of another version of the schema."""
    try:
        schema = msgspec.json.decode(record.data, type=_Named).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if schema.startswith(_FAMILY) and schema != SCHEMA:
        raise NewerEvent(f"{place_of(record)} is a {schema} event, which this version of dupwatch cannot read")
