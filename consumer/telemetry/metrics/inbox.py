"""Metrics of the articles that ``dupwatch serve`` gathers to store them."""

from typing import Final

from consumer.model.hooks import Hooks
from consumer.sources.requests import InboxChanged, SubmissionAnswered
from consumer.telemetry.metrics.instruments import SECONDS, Group, Instruments, Measure

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
GROUP: Final = Group("Articles of requests (dupwatch serve)", (RECORDS, BYTES, ANSWERED))


class InboxMetrics:
    """Shows how full the inbox is, and how long answers take. The inbox reports while it is locked."""

    def __init__(self, instruments: Instruments) -> None:
        self._records = instruments.gauge(RECORDS)
        self._bytes = instruments.gauge(BYTES)
        self._answered = instruments.distribution(ANSWERED)

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(InboxChanged, self._changed)
        hooks.on(SubmissionAnswered, lambda answered: self._answered.add((answered.seconds,)))

    def _changed(self, changed: InboxChanged) -> None:
        self._records.set(changed.records)
        self._bytes.set(changed.size_bytes)
