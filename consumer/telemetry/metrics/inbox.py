"""Metrics of the articles that ``dupwatch serve`` gathers to store them."""

from typing import Final

from consumer.model.submission import InboxChanged, SubmissionAnswered
from consumer.telemetry.metrics.instruments import SECONDS, Measure, MetricGroup, reaction

RECORDS: Final = Measure(
    "dupwatch_inbox_records",
    "gauge",
    "Articles and retractions of requests that are not answered yet; service.inbox_records_max is the most.",
    "records",
)
BYTES: Final = Measure(
    "dupwatch_inbox_bytes", "gauge", "Bytes of these articles; service.inbox_bytes_max is the most.", "bytes"
)
ANSWERED: Final = Measure(
    "dupwatch_inbox_seconds",
    "histogram",
    "From the moment when the articles of a request are gathered until the sink has their verdicts.",
    "seconds",
    bounds=SECONDS,
)
GROUP: Final = MetricGroup("Articles of requests (dupwatch serve)", (RECORDS, BYTES, ANSWERED))

REACTIONS: Final = (
    reaction(RECORDS, InboxChanged, lambda changed: changed.records),
    reaction(BYTES, InboxChanged, lambda changed: changed.size_bytes),
    reaction(ANSWERED, SubmissionAnswered, lambda answered: answered.seconds),
)
