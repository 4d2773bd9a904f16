"""Makes releases: sends the event to readers of flags, and the article back to the clean feed if there is one."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.kafka.client_settings import parse_prefix
from consumer.kafka.clients import waiting_for_brokers
from consumer.model.errors import SinkError
from consumer.model.ports import JudgedRecord
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent
from consumer.service.answering import AnsweringSink
from consumer.store_tools.released_record import ReturnObstacle
from consumer.store_tools.releases import (
    Attribution,
    FlagReversal,
    references_in_force,
    releasable_version,
    release_all,
)
from consumer.wiring import feeds
from consumer.wiring.source_records import SourceRecords
from storage.clock import Clock
from storage.interface import Store

FRESH_S: Final = 0.1
"""Versions read longer ago than this are read again before their records are sent: newer versions may have arrived."""
_RELEASE_S: Final = 30.0
NO_RECORD: Final = RawRecord(0, 0, b"", 0, None, None)
"""The record of a release whose article does not return to the clean feed."""

log = logging.getLogger("dupwatch")


def send_release(config: Config, event: VerdictEvent, record: RawRecord | None) -> None:
    """Send the event of a release to the configured sink and, if ``record`` is not None, the record to the clean feed.

    Raises ``SinkError`` if the brokers do not accept them in time.
    """
    url = config.sink.url
    until_s = time.monotonic() + _RELEASE_S

    def proceed() -> None:
        if time.monotonic() > until_s:
            raise SinkError(
                f"{url} did not accept the event within {_RELEASE_S:g} s. The article is released; rerun the command "
                "to send the event"
            )

    opening = replace(feeds.sink_opening(config, feed=url), proceed=proceed)
    kind = sink_of(url)
    kind.check_remote(url, opening)
    sink = kind.open(url, opening).sink
    try:
        with waiting_for_brokers(parse_prefix(url).brokers):
            sink.release(JudgedRecord(record or NO_RECORD, event))
            sink.flush()
    finally:
        sink.close()


class ReleasePlan(NamedTuple):
    """A flag to undo.

    ``clean_record`` is the record for the clean feed, or the obstacle to sending one; None if there is no clean feed.
    """

    reversal: FlagReversal
    clean_record: RawRecord | ReturnObstacle | None

    @property
    def reference(self) -> bytes:
        """The reference of the version."""
        return self.reversal.flagged.reference


@dataclass(frozen=True, slots=True)
class FlagReleaser:
    """A releaser that undoes flags in a store, and sends the events to the sink of a run that uses the same store."""

    store: Store
    sink: AnsweringSink
    clock: Clock

    def release(self, plans: Sequence[ReleasePlan], read_at_s: float) -> list[VerdictEvent]:
        """Undo the flags of different versions, and return the events once the sink has them.

        ``read_at_s`` is the monotonic time at which the versions were read. Articles return to the clean feed if
        possible. Raises ``SinkError``, ``Abandoned`` and the store's errors, after which it may be called again.
        """
        events = release_all(self.store, [plan.reversal for plan in plans], self.clock)
        records = {plan.reference: plan.clean_record for plan in plans if isinstance(plan.clean_record, RawRecord)}
        if time.monotonic() - read_at_s > FRESH_S:
            # Finding the records took a long time.
            current = references_in_force(self.store, list(records))
            records = {reference: record for reference, record in records.items() if reference in current}
        answers = [
            JudgedRecord(records.get(plan.reference) or NO_RECORD, event)
            for plan, event in zip(plans, events, strict=True)
        ]
        self.sink.release_all(answers)
        current = references_in_force(self.store, list(records))
        for plan in plans:
            _warn(plan, is_last=plan.reference in current)
        return events


def _warn(plan: ReleasePlan, *, is_last: bool) -> None:
    """Log why an article does not return to the clean feed, or that it may have returned too late."""
    article_id = plan.reversal.flagged.stored.record.id
    if isinstance(plan.clean_record, ReturnObstacle):
        log.warning("%r was released, but is not sent to the clean feed: %s", article_id, plan.clean_record.reason)
    elif plan.clean_record is not None and not is_last:
        log.warning(
            "A newer version of %r arrived during its release: compare its last message in the clean feed with its "
            "source, and send it again if they differ",
            article_id,
        )


@dataclass(frozen=True, slots=True)
class SingleReleaser:
    """A releaser of one version at a time, for the service."""

    releasing: FlagReleaser
    records: SourceRecords

    def release(self, article_id: str, version: str | None, attribution: Attribution) -> VerdictEvent:
        """Undo the flag of an article's named or latest version; return the event.

        Raises ``ConfigError`` if there is no flag to undo, and the errors of ``FlagReleaser.release``.
        """
        read_at_s = time.monotonic()
        flagged = releasable_version(self.releasing.store, article_id, version)
        plan = ReleasePlan(FlagReversal(flagged, attribution), self.records.record_of(flagged))
        return self.releasing.release([plan], read_at_s)[0]
