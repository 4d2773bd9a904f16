"""The metrics of a run: one module for each subject, with descriptions and what counts them side by side.

A new counter is a ``Measure`` in such a module, in its ``GROUP``. What increases it is a line in its ``REACTIONS`` for
an occurrence that some part reports, or, for the cost of judging, a field of ``consumer.judge.tally.Tally`` that the
module's ``TALLIED`` names. A class with ``listen`` is for metrics that need a clock, limits or a lock.
"""

from consumer.telemetry.metrics.metrics import (
    GROUPS,
    SOURCES_MAX,
    Bounds,
    ConsoleMetrics,
    Metrics,
    MetricSet,
    ServiceMetrics,
)
from consumer.telemetry.metrics.run import Build

__all__ = [
    "GROUPS",
    "SOURCES_MAX",
    "Bounds",
    "Build",
    "ConsoleMetrics",
    "MetricSet",
    "Metrics",
    "ServiceMetrics",
]
