"""Builds verdict events, the form in which decisions are stored and sent."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

import msgspec

from consumer.judge.decision import Duplicate, EndedNeighbour, Neighbour
from consumer.model.verdict import (
    MATCHES_MAX,
    SHARED_KEYWORDS_MAX,
    BankMention,
    EndedBefore,
    Match,
    Part,
    Released,
    SeenBefore,
    Verdict,
    VerdictEvent,
)
from consumer.text.timestamps import rfc3339
from storage.records import DIGEST_BYTES, ID_HASH_BYTES, BankMatch, Record, id_hash

_Value = TypeVar("_Value")
_SIMILARITY_DIGITS = 4
_TIMES_KEPT: Final = 1_024

_written_time = lru_cache(_TIMES_KEPT)(rfc3339)
"""Writes a time. Most times are those of other articles too: a batch is decided in a few milliseconds."""


class Remarks(NamedTuple):
    """Information that a verdict adds without deciding anything."""

    seen_before: SeenBefore | None = None
    parts: tuple[Part, ...] = ()
    ended_before: EndedBefore | None = None


NO_REMARKS: Final = Remarks()


def kept_event(record: Record, *, truncated: bool, decided_ms: int, remarks: Remarks = NO_REMARKS) -> VerdictEvent:
    """Return the verdict on a version that repeats nothing."""
    return VerdictEvent.of(_unique(record, truncated=truncated, decided_ms=decided_ms, remarks=remarks))


def duplicate_event(
    duplicate: Duplicate, *, truncated: bool, decided_ms: int, remarks: Remarks = NO_REMARKS
) -> VerdictEvent:
    """Return the verdict on a version that repeats another: the original, the distance, and what the two share."""
    record, of = duplicate.record, duplicate.of
    return VerdictEvent.of(
        msgspec.structs.replace(
            _unique(record, truncated=truncated, decided_ms=decided_ms, remarks=remarks),
            outcome="duplicate",
            duplicate_of=of.record.id,
            duplicate_of_version=version_name(of.record.reference),
            distance=of.distance,
            similarity=rounded(of.similarity),
            cluster=of.record.id,
            matches=tuple(_match(other) for other in duplicate.matches[:MATCHES_MAX]),
            shared_keywords=shared_keywords(record, of.record)[:SHARED_KEYWORDS_MAX],
            ended_before=msgspec.UNSET,
            source=record.source,
            original_source=of.record.source,
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
    """Return the verdict that undoes a flag and names the same sources.

    Raises ValueError for a verdict that is not a duplicate.
    """
    if flag.duplicate_of is None or flag.duplicate_of_version is None:
        raise ValueError(f"{flag.id!r} is {flag.outcome}: there is no flag to undo")
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


def ended_before(ended: Sequence[EndedNeighbour]) -> EndedBefore | None:
    """Return the most similar of the ended versions, in the form of verdicts; among equals the one that ended last.

    An ended version is near nothing that arrives later, so a text that is retracted and sent again under another id is
    not flagged. This only informs readers. It comes from candidates that are read anyway, before the verdict is
    settled, so all judges of a version return the same bytes.
    """
    if not ended:
        return None
    best = min(ended, key=_ended_preference)
    record = best.neighbour.record
    return EndedBefore(
        id=record.id,
        version=version_name(record.reference),
        ended_at=rfc3339(best.ends_at.time_ms),
        similarity=rounded(best.neighbour.similarity),
    )


def shared_keywords(a: Record, b: Record) -> tuple[str, ...]:
    """Return the keywords that both records have, by descending weight; of the two weights the lower counts."""
    weights = dict(a.keywords)
    shared = sorted((-min(weight, weights[word]), word) for word, weight in b.keywords if word in weights)
    return tuple(word for _, word in shared)


def version_name(reference: bytes) -> str:
    """Return the name of a version in events: its content digest in hex."""
    return reference[ID_HASH_BYTES:].hex()


def reference_in(article_id: str, version: str | None) -> bytes:
    """Return the reference of a version that an event names. Raises ValueError if ``version`` is not a digest."""
    digest = bytes.fromhex(version or "")
    if len(digest) != DIGEST_BYTES:
        raise ValueError(f"{version!r} is not a version; a version is {DIGEST_BYTES} bytes in hex")
    return id_hash(article_id) + digest


def storable_reference(article_id: str, version: str | None) -> bytes | None:
    """Return the reference of a version that an event names, or None if ``version`` is not a digest."""
    try:
        return reference_in(article_id, version)
    except ValueError:
        return None


def original_of(flag: Verdict) -> bytes:
    """Return the reference of the original that a flag names. Raises ValueError for other verdicts."""
    return reference_in(flag.duplicate_of or "", flag.duplicate_of_version)


def _unique(record: Record, *, truncated: bool, decided_ms: int, remarks: Remarks) -> Verdict:
    return Verdict(
        id=record.id,
        version=version_name(record.reference),
        outcome="unique",
        cluster=record.id,
        fingerprint=record.fingerprint.hex(),
        scheme=record.scheme,
        truncated=truncated,
        arrived_at=_written_time(record.time_ms),
        decided_at=_written_time(decided_ms),
        stamped_at=_stamped_at(record.stamped_ms),
        extracted=_unless_none(record.extracted),
        seen_before=_unless_none(remarks.seen_before),
        parts=remarks.parts or msgspec.UNSET,
        ended_before=_unless_none(remarks.ended_before),
        banks=bank_mentions(record) or msgspec.UNSET,
    )


def bank_mentions(record: Record) -> tuple[BankMention, ...]:
    """Return the known texts that an article repeats, as verdicts name them."""
    return () if record.bank_matches is None else mentions_of(record.bank_matches)


def mentions_of(matches: Sequence[BankMatch]) -> tuple[BankMention, ...]:
    """Return bank matches as verdicts name them."""
    return tuple(msgspec.convert(match, BankMention, from_attributes=True) for match in matches)


def _stamped_at(stamped_ms: int | None) -> str | msgspec.UnsetType:
    return msgspec.UNSET if stamped_ms is None else rfc3339(stamped_ms)


def _unless_none(value: _Value | None) -> _Value | msgspec.UnsetType:
    """Return the value, or UNSET for None, so that the event leaves it out."""
    return msgspec.UNSET if value is None else value


def rounded(similarity: float | None) -> float | None:
    """Return a similarity rounded to four digits; its estimate is less exact than that."""
    return None if similarity is None else round(similarity, _SIMILARITY_DIGITS)


def _match(neighbour: Neighbour) -> Match:
    return Match(
        id=neighbour.record.id,
        version=version_name(neighbour.record.reference),
        distance=neighbour.distance,
        similarity=rounded(neighbour.similarity),
    )


def _ended_preference(ended: EndedNeighbour) -> tuple[float, int, int, bytes]:
    """Return a sort key: most similar first, then the latest end, then by reference."""
    neighbour, ends_at = ended
    return (-(neighbour.similarity or 0.0), -ends_at.time_ms, -ends_at.sequence, neighbour.record.reference)
