"""Acts on stored articles that repeat items of banks: undoes flags, and sends events to the readers of topics."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.judge.events import version_name
from consumer.kafka.client_settings import parse_prefix
from consumer.kafka.clients import waiting_for_brokers
from consumer.kafka.opening import topic_sink
from consumer.kafka.sink.topic_sink import KafkaSink
from consumer.model.errors import ConfigError, SinkError
from consumer.model.ports import JudgedRecord
from consumer.model.record import RawRecord, partition_named
from consumer.model.verdict import VerdictEvent
from consumer.service.answering import AnsweringSink
from consumer.store_tools.bank_actions import AllowedFlag, DeniedArticle
from consumer.store_tools.releases import FlagReversal, releasable_versions, release_all
from consumer.wiring.comparable_store import BoundStore
from consumer.wiring.feeds import is_followed, sink_opening
from consumer.wiring.release_run import NO_RECORD, FlagReleaser, ReleasePlan
from consumer.wiring.source_records import SourceRecords
from storage.clock import now_ms
from storage.interface import Store
from storage.records import Origin

SEND_S: Final = 30.0
"""The time limit for brokers to accept the events of a batch."""


@dataclass(slots=True)
class TopicEventWriter:
    """A writer of events about stored articles to topics. The brokers have to accept each batch within ``SEND_S``."""

    sink: KafkaSink
    deadline: "_BrokerDeadline"

    @classmethod
    @contextmanager
    def opened(cls, config: Config) -> Iterator[Self]:
        """Open the topics of the sink. Raises ``ConfigError`` if the sink has no topics, or if they do not exist."""
        url = config.sink.url
        if not is_followed(config):
            raise ConfigError(
                f"events about stored articles go to topics, but sink.url is {url}: add --sink kafka://HOST:PORT/PREFIX"
            )
        deadline = _BrokerDeadline(url)
        opening = replace(sink_opening(config, feed=url), proceed=deadline.proceed)
        sink_of(url).check_remote(url, opening)
        with closing(topic_sink(url, opening)) as sink:
            yield cls(sink, deadline)

    @contextmanager
    def batch(self) -> Iterator[KafkaSink]:
        """Yield the sink for a batch, then flush it. Raises ``SinkError`` if brokers do not accept it in time."""
        self.deadline.begin()
        with waiting_for_brokers(parse_prefix(self.deadline.url).brokers):
            yield self.sink
            self.sink.flush()


class _BrokerDeadline:
    """The deadline of a wait for brokers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._until_s = 0.0

    def begin(self) -> None:
        self._until_s = time.monotonic() + SEND_S

    def proceed(self) -> None:
        if time.monotonic() > self._until_s:
            raise SinkError(
                f"{self.url} did not accept an event within {SEND_S:g} s. Rerun the command, which sends the same "
                "events again"
            )


class ReleasedFlags(NamedTuple):
    """The new verdicts as events; ``again`` counts the articles that had been released before."""

    events: Sequence[VerdictEvent]
    again: int


@dataclass(frozen=True, slots=True)
class BankReleases:
    """Releases of flagged articles that repeat allowed texts, made in the same way as by ``dupwatch release``.

    ``events`` is None if the sink has no readers of releases.
    """

    store: Store
    events: TopicEventWriter | None
    records: SourceRecords

    @classmethod
    @contextmanager
    def opened(cls, opened: BoundStore) -> Iterator[Self]:
        """Open the topics of the sink, if it has any, for a store that is open for writing."""
        with ExitStack() as resources:
            followed = is_followed(opened.config)
            events = resources.enter_context(TopicEventWriter.opened(opened.config)) if followed else None
            yield cls(opened.compared.store, events, resources.enter_context(closing(SourceRecords(opened.config))))

    def release(self, flags: Sequence[AllowedFlag]) -> "ReleasedFlags":
        """Undo these flags, and send the events to readers.

        The event of an article that had been released before is sent again. Versions that were retracted, replaced or
        swept since they were read are left out. Raises ``SinkError`` and the store's errors, after which it may be
        called again.
        """
        read_at_s = time.monotonic()
        names = [(flag.stored.record.id, version_name(flag.stored.record.reference)) for flag in flags]
        reversals = [
            FlagReversal(flagged, flag.attribution)
            for flag, flagged in zip(flags, releasable_versions(self.store, names), strict=True)
            if not isinstance(flagged, ConfigError) and flagged.stored.ends_at is None
        ]
        again = sum(reversal.flagged.stored.released_from is not None for reversal in reversals)
        if not reversals:
            return ReleasedFlags((), again)
        if self.events is None:
            return ReleasedFlags(release_all(self.store, reversals, now_ms), again)
        plans = [ReleasePlan(reversal, self.records.record_of(reversal.flagged)) for reversal in reversals]
        with self.events.batch() as sink:
            released = FlagReleaser(self.store, AnsweringSink(sink), now_ms).release(plans, read_at_s)
        return ReleasedFlags(released, again)


def report_denied(events: TopicEventWriter, articles: Sequence[DeniedArticle]) -> None:
    """Send an event about each of these articles. Raises ``SinkError``."""
    if not articles:
        return
    with events.batch() as sink:
        for article in articles:
            record = _record_at(article.stored.record.origin)
            sink.report_match(JudgedRecord(record, article.event), article.mention, article.match)


def _record_at(origin: Origin | None) -> RawRecord:
    """Return a record with only the position of this origin in a topic; ``NO_RECORD`` for any other origin."""
    partition = None if origin is None else partition_named(origin.feed)
    if origin is None or partition is None or origin.sequence is None:
        return NO_RECORD
    return replace(NO_RECORD, start=origin.sequence, partition=partition)
