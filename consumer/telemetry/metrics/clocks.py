"""Metrics of steps of the machine's clock while the process runs."""

from collections.abc import Mapping
from typing import Final

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Instruments, Measure, MetricGroup, Series
from storage.clock import PROCESS_CLOCK, STEP_S_MIN, SteadyClock

STEPS: Final = Measure(
    "dupwatch_clock_steps_total",
    "counter",
    f"Steps of the machine's clock, of {STEP_S_MIN} seconds or more, that this process noticed and did not follow.",
    "times",
)
AHEAD: Final = Measure(
    "dupwatch_clock_ahead_seconds",
    "gauge",
    "How far steps have moved the machine's clock ahead of this process's clock; negative if it is behind.",
    "seconds",
)
GROUP: Final = MetricGroup("The clock", (STEPS, AHEAD))


class ClockMetrics:
    """The steps of the machine's clock. Each scrape reads them, so there is nothing to listen to."""

    def __init__(self, instruments: Instruments, clock: SteadyClock = PROCESS_CLOCK) -> None:
        def read() -> Mapping[Measure, float | Series]:
            return {STEPS: clock.steps()}

        instruments.add_reader(read)
        instruments.gauge(AHEAD).set_function(clock.ahead_s)

    def listen(self, hooks: Hooks) -> None:
        """Listen to nothing."""
