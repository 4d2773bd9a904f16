"""Reads events from records of flags and other entries.

Records that can never be read are skipped, counted, and logged up to a limit. Events of a newer version of dupwatch are
not skipped, because their flags would be lost.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from consumer.model.article import Reason
from consumer.model.bank_match import SCHEMA as BANK_MATCH_SCHEMA
from consumer.model.bank_match import BankMatchEvent, decode_bank_match
from consumer.model.flood import FLOOD_SCHEMA
from consumer.model.limits import DecodeLimits
from consumer.model.near_miss import SCHEMA as NEAR_MISS_SCHEMA
from consumer.model.near_miss import NearMiss, decode_near_miss
from consumer.model.record import RawRecord
from consumer.model.story import STORY_SCHEMA
from consumer.model.verdict import SCHEMA, Released, Verdict, decode_verdict
from consumer.reviews.kinds.bank_mentions import denying_items
from consumer.reviews.portable import is_storable_id
from consumer.telemetry.metrics.console import EventSkipped, EventsTaken, SkipReason

log = logging.getLogger("dupwatch")

Event = TypeVar("Event")

BITS_MAX: Final = 128
"""The number of bits of the longest fingerprint."""
SAMPLED_IN_MAX: Final = 1e12
"""More pairs than any feed has. A larger ``sampled_in`` is refused, since it would make sums useless."""

SOURCE_CHARS_MAX: Final = DecodeLimits().source_chars_max
SKIPS_LOGGED_MAX: Final = 10
"""The maximum number of skipped records of a batch that are logged one by one. A wrong file has millions."""
_VERDICT_BEGINS: Final = f'{{"schema":"{SCHEMA}"'.encode()
_ENDED_BEFORE: Final = b'"ended_before"'


PlaceOf = Callable[[RawRecord], str]
"""A function that returns the place of a record, for messages."""


NEWER_EVENT: Final = "newer event"
"""The prefix of the reporter's name in an outage during which an intake waits for an update of the console."""


class NewerEvent(Exception):  # noqa: N818  # named for the event: nothing failed
    """A record is an event of a newer version, which only a newer console can read."""


class _SchemaMember(msgspec.Struct):
    """The member of an event that names its schema."""

    schema: str


class _Form(NamedTuple, Generic[Event]):
    """A kind of event: its name in messages, its schema, and its decoder, which raises ``ValueError``.

    Events of ``ignored_schemas`` are for other readers. They are passed over without a report.
    """

    noun: str
    schema: str
    decode: Callable[[bytes], Event]
    ignored_schemas: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The common beginning of the schemas of all versions."""
        return self.schema.rpartition("/")[0] + "/"


def place_in_topic(record: RawRecord) -> str:
    """Return the place of a record in its topic."""
    return "{} [{}] offset {}".format(*record.known_partition(), record.start)


def read_verdicts(
    records: Sequence[RawRecord], report: Callable[[object], None], place_of: PlaceOf = place_in_topic
) -> list[Verdict]:
    """Return the verdicts in records, in order; report and log skipped records. Raises ``NewerEvent``."""
    return list(_read_events(records, _FLAGS, report, place_of))


def read_near_misses(
    records: Sequence[RawRecord], report: Callable[[object], None], place_of: PlaceOf = place_in_topic
) -> list[NearMiss]:
    """Return the near misses in records, otherwise like ``read_verdicts``."""
    return list(_read_events(records, _NEAR_MISSES, report, place_of))


def read_bank_matches(
    records: Sequence[RawRecord], report: Callable[[object], None], place_of: PlaceOf = place_in_topic
) -> list[BankMatchEvent]:
    """Return the bank matches in records, otherwise like ``read_verdicts``."""
    return list(_read_events(records, _BANK_MATCHES, report, place_of))


def read_repeats_of_ended(
    records: Sequence[RawRecord], report: Callable[[object], None], place_of: PlaceOf = place_in_topic
) -> list[Verdict]:
    """Return the verdicts in records whose articles may repeat an ended article, otherwise like ``read_verdicts``.

    An ended article has been retracted or replaced. Other verdicts, which are most of a feed, are only counted, without
    decoding.
    """
    chosen = [record for record in records if not _repeats_no_ended_article(record)]
    found = list(_read_events(chosen, _FLAGS, report, place_of))
    report(EventsTaken("other", len(records) - len(chosen)))
    return found


def _read_events(
    records: Sequence[RawRecord], form: _Form[Event], report: Callable[[object], None], place_of: PlaceOf
) -> Iterator[Event]:
    skipped: list[tuple[SkipReason, str, RawRecord]] = []
    for record in records:
        reason = _skip_reason(record)
        if reason is not None:
            skipped.append((reason, "", record))
            continue
        try:
            event = form.decode(record.data)
        except (ValueError, RecursionError) as error:
            schema = _schema_of(record)
            if schema.startswith(form.family) and schema != form.schema:
                raise NewerEvent(
                    f"{place_of(record)} is a {schema} event, which this version of dupwatch cannot read"
                ) from error
            if schema not in form.ignored_schemas:
                # Log the cause, because the outer error talks about a store.
                skipped.append(("not_an_event", f": {error.__cause__ or error}", record))
        else:
            yield event
    # Report only after reading all records: a batch with a newer event is read again, and must not be counted twice.
    for number, (reason, detail, record) in enumerate(skipped):
        report(EventSkipped(reason))
        if number < SKIPS_LOGGED_MAX:
            log.warning(
                "%s is skipped: it can never be read as a %s: %s%s", place_of(record), form.noun, reason, detail
            )
    if len(skipped) > SKIPS_LOGGED_MAX:
        count, last = len(skipped) - SKIPS_LOGGED_MAX, place_of(skipped[-1][2])
        log.warning("%d more records up to %s are skipped for similar reasons.", count, last)


def _repeats_no_ended_article(record: RawRecord) -> bool:
    """Return whether a record is a verdict, in this version's form, on an article that repeats no ended article."""
    return record.data.startswith(_VERDICT_BEGINS) and _ENDED_BEFORE not in record.data


def _skip_reason(record: RawRecord) -> SkipReason | None:
    if record.fault is not None:
        return "unreadable_message" if record.fault.reason == Reason.UNREADABLE_MESSAGE else "too_large"
    if record.is_null:
        return "null_value"
    return None


def _verdict(data: bytes) -> Verdict:
    verdict = decode_verdict(data)
    times = [verdict.arrived_at, verdict.decided_at]
    if isinstance(verdict.released, Released):
        times.append(verdict.released.flagged_at)
    _check_times(*times)
    _check_distance(verdict.distance)
    _check_sources(verdict.source, verdict.original_source)
    return verdict


def _near_miss(data: bytes) -> NearMiss:
    near_miss = decode_near_miss(data)
    _check_times(near_miss.arrived_at, near_miss.decided_at)
    _check_distance(near_miss.distance)
    if near_miss.sampled_in > SAMPLED_IN_MAX:
        raise ValueError(f"sampled_in is more than {SAMPLED_IN_MAX:g}")
    copy, original = (near_miss.id, near_miss.version), (near_miss.original, near_miss.original_version)
    if not all(map(is_storable_id, (*copy, *original))):
        raise ValueError("it has an id or a version that no store can hold")
    if copy == original:
        raise ValueError("both of its versions are the same")
    _check_sources(near_miss.source, near_miss.original_source)
    return near_miss


def _bank_match(data: bytes) -> BankMatchEvent:
    match = decode_bank_match(data)
    _check_times(match.arrived_at, match.decided_at)
    if not all(map(is_storable_id, (match.id, match.version))) or not denying_items(match.banks):
        raise ValueError("it has an id, a version or an item that no store or bank can hold")
    return match


_FLAGS: Final = _Form("flag", SCHEMA, _verdict, (FLOOD_SCHEMA, STORY_SCHEMA))
_NEAR_MISSES: Final = _Form("near miss", NEAR_MISS_SCHEMA, _near_miss)
_BANK_MATCHES: Final = _Form("bank match", BANK_MATCH_SCHEMA, _bank_match)


def _check_times(*times: str) -> None:
    """Raise ``ValueError`` for an impossible time in the right format."""
    for text in times:
        datetime.fromisoformat(text)


def _check_distance(distance: int | None) -> None:
    """Raise ``ValueError`` for an impossible distance, since the database may not be able to hold it."""
    if distance is not None and distance > BITS_MAX:
        raise ValueError(f"its distance is more than {BITS_MAX} bits")


def _check_sources(*sources: str | msgspec.UnsetType) -> None:
    """Raise ``ValueError`` for a source that is too long: an index of the database may refuse it."""
    for source in sources:
        if isinstance(source, str) and len(source) > SOURCE_CHARS_MAX:
            raise ValueError(f"its source, or the original's, has more than {SOURCE_CHARS_MAX} characters")


def _schema_of(record: RawRecord) -> str:
    """Return the schema that a record names, or "" if it names none."""
    try:
        return msgspec.json.decode(record.data, type=_SchemaMember).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
