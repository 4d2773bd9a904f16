"""Metrics of webhooks: attempts to deliver events, and events that wait.

What is reported is defined here because ``consumer.console``, which causes it, is above this package.
"""

from typing import Final, Literal, NamedTuple, get_args

from consumer.telemetry.metrics.instruments import Label, Measure, MetricGroup, reaction

DeliveryOutcome = Literal["accepted", "rejected", "unreachable", "refused_address"]

DELIVERIES: Final = Measure(
    "dupwatch_console_webhook_deliveries_total",
    "counter",
    'Attempts to deliver an event to a webhook: accepted, "rejected" by another answer than 2xx, without an answer, or '
    "not sent because an address of its name is not allowed.",
    "attempts",
    (Label("outcome", get_args(DeliveryOutcome)),),
)
OLDEST: Final = Measure(
    "dupwatch_console_webhook_oldest_waiting_seconds",
    "gauge",
    "How long ago the oldest event happened that waits for a webhook that is on; 0 where none waits.",
    "seconds",
)
OFF: Final = Measure(
    "dupwatch_console_webhooks_off",
    "gauge",
    "Webhooks that the console has turned off: their receivers failed for a day, or said that they are gone.",
    "webhooks",
)
GROUP: Final = MetricGroup("Webhooks (dupwatch console)", (DELIVERIES, OLDEST, OFF))


class DeliveryEnded(NamedTuple):
    """An attempt to deliver an event has ended."""

    outcome: DeliveryOutcome


class WebhooksCounted(NamedTuple):
    """How long the oldest event has waited for a webhook that is on, and how many webhooks are off."""

    oldest_s: float
    off: int


REACTIONS: Final = (
    reaction(DELIVERIES, DeliveryEnded, labels=lambda ended: (ended.outcome,)),
    reaction(OLDEST, WebhooksCounted, lambda counted: counted.oldest_s),
    reaction(OFF, WebhooksCounted, lambda counted: counted.off),
)
