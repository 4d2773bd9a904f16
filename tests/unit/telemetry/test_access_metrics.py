"""Refusals, failures of the token file, and lines of the audit log are counted."""

from prometheus_client import CollectorRegistry

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.access import GROUP, REACTIONS
from consumer.telemetry.metrics.instruments import Instruments, ReactingMetrics
from consumer.web.audit_log import ChangesRecorded, ChangesUnrecorded
from consumer.web.known_tokens import SecretRefused, TokensLoaded, TokensUnreadable
from consumer.web.token import TokenRefusal


def test_what_is_reported_is_counted() -> None:
    """Each occurrence in its metric, refusals by reason; all begin at 0, and no label has a name or a secret."""
    registry = CollectorRegistry()
    hooks = Hooks(ReactingMetrics(Instruments(registry), *REACTIONS))

    def values() -> dict[str, float]:
        return {
            "".join((sample.name, *sample.labels.values())): sample.value
            for family in registry.collect()
            for sample in family.samples
            if not sample.name.endswith("_created")
        }

    assert set(values().values()) == {0}
    assert len(values()) == len(GROUP.measures) + 3
    for occurrence in (
        TokensLoaded(7),
        TokensUnreadable("gone"),
        SecretRefused(TokenRefusal("unknown")),
        SecretRefused(TokenRefusal("expired", "crawler")),
        SecretRefused(TokenRefusal("expired", "wire")),
        ChangesRecorded(3),
        ChangesRecorded(2),
        ChangesUnrecorded(4, "No space left on device"),
    ):
        hooks.report(occurrence)
    assert {name: value for name, value in values().items() if value} == {
        "dupwatch_secrets_refused_totalunknown": 1,
        "dupwatch_secrets_refused_totalexpired": 2,
        "dupwatch_tokens": 7,
        "dupwatch_token_file_failures_total": 1,
        "dupwatch_changes_recorded_total": 5,
        "dupwatch_changes_unrecorded_total": 4,
    }
