"""Articles that are named by id, with their history in the store."""

from collections.abc import Sequence
from typing import NamedTuple

from consumer.judge.events import version_name
from consumer.model.errors import ConfigError
from consumer.store_tools.inspection import latest
from consumer.text.timestamps import rfc3339
from storage.interface import Store
from storage.records import Arrival, Stored, Tombstone, id_hash

History = Sequence[Stored | Tombstone]


class StoredArticle(NamedTuple):
    """One version of an article, and all versions and retractions of its id in order of arrival."""

    stored: Stored
    history: History


def stored_article(store: Store, url: str, article_id: str, version: str | None = None) -> StoredArticle:
    """Return the named version, or the latest. Raises ``ConfigError`` if the store at ``url`` does not have it."""
    history = store.history(id_hash_of(article_id))
    if version is None:
        latest_version = latest(history)
        if latest_version is not None:
            return StoredArticle(latest_version, history)
        if history:
            when = rfc3339(arrival_of(history[-1]).time_ms)
            raise ConfigError(f"{article_id!r} was retracted at {when} and has no version in {url}")
        raise ConfigError(f"no article {article_id!r} in {url}")
    named = next((entry for entry in history if version_name(arrival_of(entry).reference) == version.lower()), None)
    if isinstance(named, Tombstone):
        raise ConfigError(
            f"{version} of {article_id!r} is a retraction and has no text; dupwatch show lists the versions"
        )
    if named is None:
        names = ", ".join(version_name(entry.record.reference) for entry in history if isinstance(entry, Stored))
        raise ConfigError(f"{article_id!r} has no version {version} in {url}; its versions: {names or 'none'}")
    return StoredArticle(named, history)


def arrival_of(entry: Stored | Tombstone) -> Arrival:
    """Return the arrival of a version or a retraction."""
    return entry.record.arrival if isinstance(entry, Stored) else entry.arrival


def how_it_ended(version: Stored, history: History) -> str | None:
    """Return how and when a version ceased to be in force; None if it is still in force."""
    if version.ends_at is None:
        return None
    following = next((entry for entry in history if arrival_of(entry) == version.ends_at), None)
    how = "superseded"
    if following is not None:
        how = "retracted" if isinstance(following, Tombstone) else "replaced by another version"
    return f"{how} {moment(version.ends_at.time_ms, version.ends_at.sequence, version.record.time_ms)}"


def moment(time_ms: int, sequence: int, other_ms: int) -> str:
    """Return a time; if it equals the other one, as in one run over a file, add the record's place in the feed."""
    return f"{rfc3339(time_ms)}{f' (record {sequence} of the feed)' if time_ms == other_ms else ''}"


def id_hash_of(article_id: str) -> bytes:
    """Return the hash of an id that a person gave. Raises ``ConfigError`` if the id is not UTF-8."""
    try:
        return id_hash(article_id)
    except UnicodeEncodeError as error:
        raise ConfigError(f"invalid id {article_id!r}: not UTF-8") from error
