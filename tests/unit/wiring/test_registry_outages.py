"""A registry that is out of reach: waited for, told to those who watch, and no reason not to end."""

import threading
import time

import pytest

from consumer.decode.registry import RegistryUnavailable
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import Build, Metrics
from consumer.wiring.registry_outages import Briefly, waiting_for_registry
from tests.unit.flickering import Flickering

AWAY = RegistryUnavailable("no route to the registry")


class Monitoring:
    """Metrics and health of a run, and the hooks that both listen to."""

    def __init__(self) -> None:
        self.metrics = Metrics(Build("0", "s/1", "4x16"))
        self.health = Health(60.0, grouped=False)
        self.hooks = Hooks(self.metrics, self.health)


@pytest.fixture
def monitoring() -> Monitoring:
    """Of a run."""
    return Monitoring()


def unreachable(monitoring: Monitoring) -> float | None:
    """What the metric says of the source."""
    return monitoring.metrics.registry.get_sample_value("dupwatch_unreachable", {"part": "source"})


def test_a_run_waits_and_says_so(monitoring: Monitoring) -> None:
    """It is not ready meanwhile, and is again afterwards."""
    flickering, seen = Flickering(2, AWAY), []

    def work() -> int:
        seen.append((monitoring.health.reasons(), unreachable(monitoring)))
        return flickering.call()

    assert waiting_for_registry(monitoring.hooks, Stopping()).call(work) == 3
    away = (["source: no route to the registry"], 1)
    assert seen == [([], 0), away, away]
    assert (monitoring.health.reasons(), unreachable(monitoring)) == ([], 0)


def test_brokers_and_registry_are_told_apart(monitoring: Monitoring) -> None:
    """The one coming back does not hide that the other is away."""
    monitoring.hooks.report(Outage("source", "brokers", "no broker"))
    monitoring.hooks.report(Outage("source", "registry", "no registry"))
    assert monitoring.health.reasons() == ["source: no broker; no registry"]
    monitoring.hooks.report(Outage("source", "brokers", None))
    assert monitoring.health.reasons() == ["source: no registry"]
    monitoring.hooks.report(Outage("source", "brokers", "no broker"))
    monitoring.hooks.report(Outage("source", "registry", None))
    assert monitoring.health.reasons() == ["source: no broker"]
    monitoring.hooks.report(Outage("source", "brokers", None))
    assert monitoring.health.reasons() == []


def test_the_store_is_in_trouble_while_run_or_probe_says_so(monitoring: Monitoring) -> None:
    """Metrics and readiness say the same, and what both say is said once."""
    monitoring.hooks.report(Outage("store", "probe", "nobody answers"))
    assert (
        monitoring.health.reasons(),
        monitoring.metrics.registry.get_sample_value("dupwatch_unreachable", {"part": "store"}),
    ) == (["store: nobody answers"], 1)
    monitoring.hooks.report(Outage("store", "run", "nobody answers"))
    assert monitoring.health.reasons() == ["store: nobody answers"]
    monitoring.hooks.report(Outage("store", "probe", None))
    assert monitoring.health.reasons() == ["store: nobody answers"]
    monitoring.hooks.report(Outage("store", "run", None))
    assert monitoring.health.reasons() == []


def test_a_run_that_is_to_stop_waits_no_longer(monitoring: Monitoring) -> None:
    """Nothing was begun, so that nothing is lost."""
    stopping = Stopping()

    def ask() -> None:
        time.sleep(0.3)
        stopping.asked_by, stopping.asked_at_s = 15, time.monotonic()

    threading.Thread(target=ask).start()
    with pytest.raises(Abandoned, match="the run is to stop"):
        waiting_for_registry(monitoring.hooks, stopping).call(Flickering(10**9, AWAY).call)


def test_a_command_asks_again_for_a_while() -> None:
    """And ends then, with what the registry's client said."""
    assert Briefly(5, 0.01).call(Flickering(3, AWAY).call) == 4
    with pytest.raises(RegistryUnavailable, match="no route"):
        Briefly(0.05, 0.01).call(Flickering(10**9, AWAY).call)
