"""Releases: a person decides that a flagged version does not repeat its original. The version is kept from then on.

The version's postings are written before the version becomes kept, so that later articles are flagged against it. A
crash in between leaves postings of a duplicate, which no article matches. The postings are written again afterwards,
because a judge that has just answered with the flag may have removed them in the meantime.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from consumer.judge import events
from consumer.model.errors import ConfigError
from consumer.model.verdict import (
    REASON_CHARS_MAX,
    RELEASED_BY_CHARS_MAX,
    Verdict,
    VerdictEvent,
    decode_verdict,
)
from consumer.store_tools.inspection import latest_version
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Release, StoredVersion, id_hash


class NotFlagged(ConfigError):  # noqa: N818  # named for the version
    """A version has no flag to undo."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who releases a version, and why. Raises ``ConfigError`` for texts that are too long or not UTF-8."""

    by: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Check that an event can hold the texts."""
        limits = (("name", self.by, RELEASED_BY_CHARS_MAX), ("reason", self.reason, REASON_CHARS_MAX))
        for what, text, chars_max in limits:
            if text is None:
                continue
            if len(text) > chars_max:
                raise ConfigError(f"the {what} of the release has {len(text)} characters; use at most {chars_max}")
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ConfigError(f"the {what} of the release is not UTF-8") from error


class FlaggedVersion(NamedTuple):
    """A version that was flagged or already released when it was read, with its decoded verdict."""

    stored: StoredVersion
    verdict: Verdict

    @property
    def reference(self) -> bytes:
        """The reference of the version."""
        return self.stored.record.reference


class FlagReversal(NamedTuple):
    """A flag to undo, who undoes it, and why."""

    flagged: FlaggedVersion
    attribution: Attribution


def releasable_version(store: Store, article_id: str, version: str | None = None) -> FlaggedVersion:
    """Read the version of an article to release: the one named in hex, or the latest.

    Raises ``ConfigError`` if the name is invalid, or the version is not stored or was never flagged.
    """
    if version is None:
        found = latest_version(store.history(id_hash(article_id)))
        if found is None:
            raise ConfigError(f"{article_id!r} is not in the store: it never arrived, or its window has ended")
        return _flagged_version(found)
    (read,) = releasable_versions(store, [(article_id, version)])
    if isinstance(read, ConfigError):
        raise read
    return read


def releasable_versions(store: Store, names: Sequence[tuple[str, str]]) -> list[FlaggedVersion | ConfigError]:
    """Read versions to release, each by its article's id and its name in hex, in one call of the store.

    Returns an error in place of a version that is not stored, was never flagged, or has an invalid name.
    """
    references = [_reference(*name) for name in names]
    distinct = list(dict.fromkeys(each for each in references if isinstance(each, bytes)))
    read = dict(zip(distinct, store.read(distinct), strict=True)) if distinct else {}
    return [
        reference if isinstance(reference, ConfigError) else _read_flagged(read[reference], *name)
        for name, reference in zip(names, references, strict=True)
    ]


def read_flagged(store: Store, reference: bytes) -> FlaggedVersion:
    """Read a version to release. Raises ``ConfigError`` if it is not stored, or was never flagged."""
    stored = store.read([reference])[0]
    if stored is None:
        raise ConfigError(
            f"version {events.version_name(reference)} of that article is not in the store: its window has ended"
        )
    return _flagged_version(stored)


def preview_release(flagged: FlaggedVersion, attribution: Attribution, clock: Callable[[], int]) -> VerdictEvent:
    """Return the event that ``release`` would write now, or the stored one if the version is already released."""
    stored, verdict = flagged
    if stored.verdict is not None and stored.released_from is not None:
        return VerdictEvent(stored.verdict, verdict)
    return events.released_event(verdict, by=attribution.by, reason=attribution.reason, decided_ms=clock())


def release(store: Store, flagged: FlaggedVersion, attribution: Attribution, clock: Callable[[], int]) -> VerdictEvent:
    """Undo the flag of one version like ``release_all``. Return its new verdict."""
    return release_all(store, [FlagReversal(flagged, attribution)], clock)[0]


def release_all(store: Store, reversals: Sequence[FlagReversal], clock: Callable[[], int]) -> list[VerdictEvent]:
    """Undo the flags of different versions. Return their new verdicts, in order.

    For a version that is already released, return the stored event and write the postings again, so that the call may
    be repeated after any error. ``clock`` returns the time of a release in milliseconds. Raises the store's errors.
    After an error some versions may be released, but none in a store that can write all changes at once.
    """
    records = [reversal.flagged.stored.record for reversal in reversals]
    planned_events = [preview_release(*reversal, clock) for reversal in reversals]

    def write() -> list[bytes]:
        store.add(records)
        written = _write_releases(store, reversals, planned_events)
        store.add(records)
        return written

    return [
        # Another process may have released the version first.
        event if stored == event.encoded else VerdictEvent.read(stored)
        for event, stored in zip(planned_events, store.together(write), strict=True)
    ]


def references_in_force(store: Store, references: Sequence[bytes]) -> frozenset[bytes]:
    """Return the references among these whose versions are stored and in force."""
    read = store.read(references) if references else []
    return frozenset(stored.record.reference for stored in read if stored is not None and stored.ends_at is None)


def _write_releases(
    store: Store, reversals: Sequence[FlagReversal], planned_events: Sequence[VerdictEvent]
) -> list[bytes]:
    """Write the releases of versions that are not released yet. Return the stored events of all versions.

    Raises ``StoreError`` if a version was deleted in the meantime.
    """
    releases = {
        flagged.reference: Release(flagged.reference, event.encoded, events.original_of(flagged.verdict))
        for (flagged, _), event in zip(reversals, planned_events, strict=True)
        if flagged.stored.released_from is None
    }
    stored = dict(zip(releases, store.release(list(releases.values())), strict=True)) if releases else {}
    swept = [flagged.stored.record.id for flagged, _ in reversals if stored.get(flagged.reference, b"") is None]
    if swept:
        raise StoreError(f"{swept[0]!r} was deleted during its release, because its window has ended")
    return [
        stored.get(flagged.reference) or event.encoded
        for (flagged, _), event in zip(reversals, planned_events, strict=True)
    ]


def _reference(article_id: str, version: str) -> bytes | ConfigError:
    return events.storable_reference(article_id, version) or ConfigError(
        f"{version!r} is not a version: versions in events have 32 hexadecimal digits"
    )


def _read_flagged(stored: StoredVersion | None, article_id: str, version: str) -> FlaggedVersion | ConfigError:
    if stored is None:
        return ConfigError(
            f"the version {version} of {article_id!r} is not in the store: it never arrived, or its window has ended"
        )
    try:
        return _flagged_version(stored)
    except ConfigError as error:
        return error


def _flagged_version(stored: StoredVersion) -> FlaggedVersion:
    """Decode the verdict of a version. Raises ``NotFlagged`` if the version is pending, or was never flagged."""
    name = f"{stored.record.id!r}, version {events.version_name(stored.record.reference)},"
    if stored.verdict is None:
        raise NotFlagged(f"{name} is pending: it has no verdict to undo yet")
    verdict = decode_verdict(stored.verdict)
    if stored.released_from is None and verdict.outcome != "duplicate":
        raise NotFlagged(f"{name} is unique: only a flag can be undone")
    return FlaggedVersion(stored, verdict)
