"""Steps of the machine's clock in the metrics: each scrape looks for them, whether articles come or not."""

from prometheus_client import CollectorRegistry

from consumer.telemetry.metrics.clocks import ClockMetrics
from consumer.telemetry.metrics.instruments import Instruments
from storage.clock import SteadyClock
from tests.machine_clock import DAY_S, MachineClock


def test_steps_are_counted_and_what_they_add_up_to_is_shown(machine: MachineClock) -> None:
    """Negative where the machine's clock is behind, 0 once it is right again."""
    registry = CollectorRegistry()
    ClockMetrics(Instruments(registry), SteadyClock(machine.wall, machine.boot))

    def scraped() -> tuple[float | None, float | None]:
        names = "dupwatch_clock_steps_total", "dupwatch_clock_ahead_seconds"
        steps, ahead_s = (registry.get_sample_value(name) for name in names)
        return steps, ahead_s

    assert scraped() == (0, 0)
    machine.set_wall(DAY_S)
    assert scraped() == (1, DAY_S)
    machine.set_wall(-3 * DAY_S)
    assert scraped() == (2, -2 * DAY_S)
    machine.set_wall(2 * DAY_S)
    assert scraped() == (3, 0)
