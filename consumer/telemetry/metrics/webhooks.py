"""Metrics of webhooks: attempts to deliver events, and events that wait.

The occurrences are defined here because ``consumer.console``, which reports them, is above this package.
"""

from typing import Final, Literal, NamedTuple, get_args

from consumer.telemetry.metrics.instruments import Label, Measure, MetricGroup, reaction

DeliveryOutcome = Literal["accepted", "rejected", "unreachable", "refused_address"]

DELIVERIES: Final = Measure(
    "dupwatch_console_webhook_deliveries_total",
    "counter",
    'Attempts to deliver an event to a webhook: "accepted", "rejected" (the status was not 2xx), "unreachable" (no '
    'answer), or "refused_address" (not sent, because its URL is faulty or an address of its host is not allowed).',
    "attempts",
    (Label("outcome", get_args(DeliveryOutcome)),),
)
OLDEST: Final = Measure(
    "dupwatch_console_webhook_oldest_waiting_seconds",
    "gauge",
    "Age of the oldest event that waits for an enabled webhook; 0 if none waits.",
    "seconds",
)
OFF: Final = Measure(
    "dupwatch_console_webhooks_off",
    "gauge",
    "Webhooks that the console has disabled, because their receivers failed for a day, or answered that they are gone.",
    "webhooks",
)
GROUP: Final = MetricGroup("Webhooks (dupwatch console)", (DELIVERIES, OLDEST, OFF))


class DeliveryEnded(NamedTuple):
    """An attempt to deliver an event has ended."""

    outcome: DeliveryOutcome


class WebhooksCounted(NamedTuple):
    """The age of the oldest event that waits for an enabled webhook, and the number of disabled webhooks."""

    oldest_s: float
    off: int


REACTIONS: Final = (
    reaction(DELIVERIES, DeliveryEnded, labels=lambda ended: (ended.outcome,)),
    reaction(OLDEST, WebhooksCounted, lambda counted: counted.oldest_s),
    reaction(OFF, WebhooksCounted, lambda counted: counted.off),
)
