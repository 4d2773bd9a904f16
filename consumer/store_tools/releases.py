"""Releases: a person decides that a flagged version does not repeat the other, and it counts as kept from then on.

The version's postings are written before it can be read as kept, so that later articles are flagged against it. A crash
in between leaves postings of a duplicate, which no article matches. They are written a second time afterwards, because
a judge that has just answered with the flag may have removed them meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass

from consumer.judge import events
from consumer.model.errors import ConfigError
from consumer.model.verdict import REASON_CHARS_MAX, RELEASED_BY_CHARS_MAX, decode_verdict
from consumer.store_tools.inspection import latest
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Release, Stored, id_hash


class NotFlagged(ConfigError):  # noqa: N818  # named for the version
    """A version has no flag that could be undone."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who releases a version, and why; both may be None. Raises ``ConfigError`` for what is too long or not UTF-8."""

    by: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Check what an event can hold."""
        limits = (("name", self.by, RELEASED_BY_CHARS_MAX), ("reason", self.reason, REASON_CHARS_MAX))
        for what, text, chars_max in limits:
            if text is None:
                continue
            if len(text) > chars_max:
                raise ConfigError(
                    f"the {what} of a release may have at most {chars_max} characters, but this one has {len(text)}"
                )
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ConfigError(f"the {what} of the release is not UTF-8") from error


def releasable(store: Store, article_id: str, version: str | None = None) -> Stored:
    """Return the version of an article to release: the one named in hex, or the latest.

    Raises ``ConfigError`` where the version is not stored, or is not flagged.
    """
    if version is None:
        found = latest(store.history(id_hash(article_id)))
    else:
        try:
            found = store.read([events.reference_in(article_id, version)])[0]
        except ValueError as error:
            raise ConfigError(f"{version!r} is not a version: events name versions by 32 hexadecimal digits") from error
    if found is None:
        which = "" if version is None else f"the version {version} of "
        raise ConfigError(f"{which}{article_id!r} is not in the store: it never arrived, or its window has ended")
    _check(found)
    return found


def planned(stored: Stored, attribution: Attribution, clock: Callable[[], int]) -> Release | None:
    """Return what ``release`` would write now; None where the version is released already.

    Raises ``ConfigError`` where the version is not flagged.
    """
    _check(stored)
    if stored.verdict is None or stored.released_from is not None:
        return None
    flag = decode_verdict(stored.verdict)
    event = events.released_event(flag, by=attribution.by, reason=attribution.reason, decided_ms=clock())
    return Release(stored.record.reference, event.encoded, events.original_of(flag))


def release(store: Store, reference: bytes, attribution: Attribution, clock: Callable[[], int]) -> bytes:
    """Undo the flag of a version; return the event that is its verdict from now on.

    For a version that is released already, the stored event is returned and the postings are written again, so that
    this may be called again after any error. ``clock`` gives the time of the release in milliseconds. Raises
    ``ConfigError`` where the version is not stored or not flagged, and the store's errors.
    """
    stored = store.read([reference])[0]
    if stored is None:
        raise ConfigError(
            f"version {events.version_name(reference)} of that article is not in the store: its window has ended"
        )
    plan = planned(stored, attribution, clock)
    store.add([stored.record])
    event = stored.verdict if plan is None else store.release([plan])[0]
    if event is None:
        raise StoreError(f"{stored.record.id!r} was swept away while it was released")
    store.add([stored.record])
    return event


def is_last(store: Store, reference: bytes) -> bool:
    """Return whether this version is stored and in force: no later version or retraction has arrived."""
    found = store.read([reference])[0]
    return found is not None and found.ends_at is None


def _check(stored: Stored) -> None:
    name = f"{stored.record.id!r}, version {events.version_name(stored.record.reference)},"
    if stored.verdict is None:
        raise NotFlagged(f"{name} is pending: it has no verdict yet that could be undone")
    if stored.released_from is None and decode_verdict(stored.verdict).outcome != "duplicate":
        raise NotFlagged(f"{name} is unique: only a flag can be undone")
