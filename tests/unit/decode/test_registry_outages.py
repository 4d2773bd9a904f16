"""A registry that is out of reach: the run waits, reports it, and can still be stopped."""

import threading
import time

import pytest

from consumer.decode.schemas.registry import BriefRetry, RegistryUnavailable, waiting_for_registry
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import Metrics
from tests.unit.flickering import Flickering

AWAY = RegistryUnavailable("no route to the registry")


class Monitoring:
    """Metrics and health of a run, and the hooks that both listen to."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.health = Health(60.0, grouped=False)
        self.hooks = Hooks(self.metrics, self.health)


@pytest.fixture
def monitoring() -> Monitoring:
    """The monitoring of a run."""
    return Monitoring()


def unreachable(monitoring: Monitoring) -> float | None:
    """Return the metric of the source."""
    return monitoring.metrics.registry.get_sample_value("dupwatch_unreachable", {"part": "source"})


def test_a_run_waits_and_reports_it(monitoring: Monitoring) -> None:
    """It is not ready meanwhile, and ready again afterwards."""
    flickering, seen = Flickering(2, AWAY), []

    def work() -> int:
        seen.append((monitoring.health.unready_reasons(), unreachable(monitoring)))
        return flickering.call()

    assert waiting_for_registry(monitoring.hooks, StopSignal()).call(work) == 3
    away = (["source: no route to the registry"], 1)
    assert seen == [([], 0), away, away]
    assert (monitoring.health.unready_reasons(), unreachable(monitoring)) == ([], 0)


def test_brokers_and_registry_are_told_apart(monitoring: Monitoring) -> None:
    """When one is back, the other is still reported."""
    monitoring.hooks.report(Outage("source", "brokers", "no broker"))
    monitoring.hooks.report(Outage("source", "registry", "no registry"))
    assert monitoring.health.unready_reasons() == ["source: no broker; no registry"]
    monitoring.hooks.report(Outage("source", "brokers", None))
    assert monitoring.health.unready_reasons() == ["source: no registry"]
    monitoring.hooks.report(Outage("source", "brokers", "no broker"))
    monitoring.hooks.report(Outage("source", "registry", None))
    assert monitoring.health.unready_reasons() == ["source: no broker"]
    monitoring.hooks.report(Outage("source", "brokers", None))
    assert monitoring.health.unready_reasons() == []


def test_the_store_is_unreachable_while_run_or_probe_reports_it(monitoring: Monitoring) -> None:
    """Metrics and readiness agree, and a reason that both report is shown once."""
    monitoring.hooks.report(Outage("store", "probe", "nobody answers"))
    assert (
        monitoring.health.unready_reasons(),
        monitoring.metrics.registry.get_sample_value("dupwatch_unreachable", {"part": "store"}),
    ) == (["store: nobody answers"], 1)
    monitoring.hooks.report(Outage("store", "run", "nobody answers"))
    assert monitoring.health.unready_reasons() == ["store: nobody answers"]
    monitoring.hooks.report(Outage("store", "probe", None))
    assert monitoring.health.unready_reasons() == ["store: nobody answers"]
    monitoring.hooks.report(Outage("store", "run", None))
    assert monitoring.health.unready_reasons() == []


def test_a_stopped_run_does_not_wait(monitoring: Monitoring) -> None:
    """No batch was begun, so nothing is lost."""
    stopping = StopSignal()

    def ask() -> None:
        time.sleep(0.3)
        stopping.requested_by, stopping.requested_at_s = 15, time.monotonic()

    threading.Thread(target=ask).start()
    with pytest.raises(Abandoned, match="the run is stopping"):
        waiting_for_registry(monitoring.hooks, stopping).call(Flickering(10**9, AWAY).call)


def test_a_command_retries_for_a_while() -> None:
    """Then it ends with the error of the registry's client."""
    assert BriefRetry(5, 0.01).call(Flickering(3, AWAY).call) == 4
    with pytest.raises(RegistryUnavailable, match="no route"):
        BriefRetry(0.05, 0.01).call(Flickering(10**9, AWAY).call)
