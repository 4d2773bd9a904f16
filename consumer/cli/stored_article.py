"""Articles that commands are given by id, with all that a store has of them."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from consumer.cli.options import id_hash_of
from consumer.judge.events import rfc3339, version_name
from consumer.model.errors import ConfigError
from consumer.store_tools.inspection import latest
from storage.interface import Store
from storage.records import Arrival, Stored, Tombstone

History = Sequence[Stored | Tombstone]
VersionOption = Annotated[
    str | None,
    typer.Option(help="Which of its versions, as events name it; the last when left out.", metavar="HEX"),
]


class StoredArticle(NamedTuple):
    """One version of an article, and all versions and retractions of its id in order of arrival."""

    stored: Stored
    history: History


def stored_article(store: Store, url: str, article_id: str, version: str | None = None) -> StoredArticle:
    """The version that is named, or the last one; ConfigError where there is none such in the store at ``url``."""
    history = store.history(id_hash_of(article_id))
    if version is None:
        one = latest(history)
        if one is not None:
            return StoredArticle(one, history)
        if history:
            when = rfc3339(arrival_of(history[-1]).time_ms)
            raise ConfigError(f"{article_id!r} was retracted {when}, and no version of it is there, in {url}")
        raise ConfigError(f"there is no article {article_id!r} in {url}")
    named = next((one for one in history if version_name(arrival_of(one).reference) == version.lower()), None)
    if isinstance(named, Tombstone):
        raise ConfigError(
            f"{version} of {article_id!r} is a retraction, which has no text; dupwatch show lists its versions"
        )
    if named is None:
        names = ", ".join(version_name(one.record.reference) for one in history if isinstance(one, Stored))
        raise ConfigError(f"{article_id!r} has no version {version} in {url}; it has {names or 'none'}")
    return StoredArticle(named, history)


def arrival_of(one: Stored | Tombstone) -> Arrival:
    """When a version or a retraction came."""
    return one.record.arrival if isinstance(one, Stored) else one.arrival


def how_it_ended(one: Stored, history: History) -> str | None:
    """What ended that a version was in force, and when; None while nothing has."""
    if one.ends_at is None:
        return None
    after = next((other for other in history if arrival_of(other) == one.ends_at), None)
    how = "ended by what came next"
    if after is not None:
        how = "retracted" if isinstance(after, Tombstone) else "replaced by another version"
    return f"{how} {moment(one.ends_at.time_ms, one.ends_at.sequence, one.record.time_ms)}"


def moment(time_ms: int, sequence: int, other_ms: int) -> str:
    """A time; where the other one is the same, as within one run over a file, also the place in the feed."""
    return f"{rfc3339(time_ms)}{f' (record {sequence} of the feed)' if time_ms == other_ms else ''}"
