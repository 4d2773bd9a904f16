"""Metrics of the articles that ``dupwatch serve`` gathers to store them."""

from typing import Final

from consumer.model.submission import InboxChanged, SubmissionAnswered
from consumer.telemetry.metrics.instruments import SECONDS, Measure, MetricGroup, reaction

RECORDS: Final = Measure(
    "dupwatch_inbox_records",
    "gauge",
    "Articles and retractions in unanswered requests; limited by service.inbox_records_max.",
    "records",
)
BYTES: Final = Measure(
    "dupwatch_inbox_bytes",
    "gauge",
    "Bytes of the articles in unanswered requests; limited by service.inbox_bytes_max.",
    "bytes",
)
ANSWERED: Final = Measure(
    "dupwatch_inbox_seconds",
    "histogram",
    "Time from receiving the articles of a request until the sink has their verdicts.",
    "seconds",
    bounds=SECONDS,
)
GROUP: Final = MetricGroup("Articles of requests (dupwatch serve)", (RECORDS, BYTES, ANSWERED))

REACTIONS: Final = (
    reaction(RECORDS, InboxChanged, lambda changed: changed.records),
    reaction(BYTES, InboxChanged, lambda changed: changed.size_bytes),
    reaction(ANSWERED, SubmissionAnswered, lambda answered: answered.seconds),
)
