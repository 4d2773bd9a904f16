"""Verdict events: from a decision to what is stored and sent."""

from datetime import UTC, datetime

import msgspec

from consumer.judge.decision import Duplicate, Neighbour
from consumer.model.verdict import MATCHES_MAX, SHARED_KEYWORDS_MAX, Match, Released, Verdict, VerdictEvent
from storage.records import ID_HASH_BYTES, Record

_SIMILARITY_DIGITS = 4


def kept_event(record: Record, *, truncated: bool, decided_ms: int) -> VerdictEvent:
    """Return the verdict on a version that repeats nothing."""
    return VerdictEvent.of(
        Verdict(
            id=record.id,
            version=version_name(record.reference),
            outcome="unique",
            cluster=record.id,
            fingerprint=record.fingerprint.hex(),
            scheme=record.scheme,
            truncated=truncated,
            arrived_at=rfc3339(record.time_ms),
            decided_at=rfc3339(decided_ms),
            stamped_at=_stamped_at(record.stamped_ms),
        )
    )


def duplicate_event(duplicate: Duplicate, *, truncated: bool, decided_ms: int) -> VerdictEvent:
    """Return the verdict on a version that repeats another: which one, how far apart they are, and what they share."""
    record, of = duplicate.record, duplicate.of
    return VerdictEvent.of(
        Verdict(
            id=record.id,
            version=version_name(record.reference),
            outcome="duplicate",
            duplicate_of=of.record.id,
            duplicate_of_version=version_name(of.record.reference),
            distance=of.distance,
            similarity=rounded(of.similarity),
            cluster=of.record.id,
            matches=tuple(_match(other) for other in duplicate.matches[:MATCHES_MAX]),
            shared_keywords=shared_keywords(record, of.record)[:SHARED_KEYWORDS_MAX],
            fingerprint=record.fingerprint.hex(),
            scheme=record.scheme,
            truncated=truncated,
            arrived_at=rfc3339(record.time_ms),
            decided_at=rfc3339(decided_ms),
            stamped_at=_stamped_at(record.stamped_ms),
        )
    )


def retracted_event(article_id: str, *, time_ms: int, decided_ms: int, stamped_ms: int | None = None) -> VerdictEvent:
    """Return the verdict on a retraction; ``stamped_ms`` is the time that its message claims, if that differs."""
    return VerdictEvent.of(
        Verdict(
            id=article_id,
            outcome="retracted",
            arrived_at=rfc3339(time_ms),
            decided_at=rfc3339(decided_ms),
            stamped_at=_stamped_at(stamped_ms),
        )
    )


def released_event(flag: Verdict, *, by: str | None, reason: str | None, decided_ms: int) -> VerdictEvent:
    """Return the verdict that undoes a flag. Raises ValueError for a verdict that is not a duplicate."""
    if flag.duplicate_of is None or flag.duplicate_of_version is None:
        raise ValueError(f"{flag.id!r} is {flag.outcome}: there is no flag to be undone")
    return VerdictEvent.of(
        msgspec.structs.replace(
            flag,
            outcome="unique",
            duplicate_of=None,
            duplicate_of_version=None,
            distance=None,
            similarity=None,
            cluster=flag.id,
            matches=(),
            shared_keywords=(),
            decided_at=rfc3339(decided_ms),
            released=Released(
                duplicate_of=flag.duplicate_of,
                duplicate_of_version=flag.duplicate_of_version,
                flagged_at=flag.decided_at,
                by=by,
                reason=reason,
            ),
        )
    )


def shared_keywords(a: Record, b: Record) -> tuple[str, ...]:
    """Return the keywords that both records have, by descending weight in the record where it is lower."""
    weights = dict(a.keywords)
    shared = [(min(weight, weights[word]), word) for word, weight in b.keywords if word in weights]
    return tuple(word for _, word in sorted(shared, key=lambda pair: (-pair[0], pair[1])))


def version_name(reference: bytes) -> str:
    """Return the name of a version in events: its content digest in hex."""
    return reference[ID_HASH_BYTES:].hex()


def rfc3339(time_ms: int) -> str:
    """Return a time in UTC with milliseconds. Raises an error for times that the calendar does not have."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_time(time_ms: int) -> str:
    """Return ``rfc3339`` of a time from outside, or the bare number where the calendar does not have it."""
    try:
        return rfc3339(time_ms)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


def _stamped_at(stamped_ms: int | None) -> str | msgspec.UnsetType:
    return msgspec.UNSET if stamped_ms is None else rfc3339(stamped_ms)


def rounded(similarity: float | None) -> float | None:
    """Round a similarity to four digits, more than its estimate is exact to."""
    return None if similarity is None else round(similarity, _SIMILARITY_DIGITS)


def _match(neighbour: Neighbour) -> Match:
    return Match(
        id=neighbour.record.id,
        version=version_name(neighbour.record.reference),
        distance=neighbour.distance,
        similarity=rounded(neighbour.similarity),
    )
