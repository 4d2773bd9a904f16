"""The metrics of a run: one module for each subject, with descriptions next to the code that counts.

A new counter is a ``Measure`` in such a module, listed in its ``GROUP``. A line in the module's ``REACTIONS`` increases
the counter for an occurrence that some part reports. A count of the cost of judging needs no such line: it is a field
of ``consumer.judge.tally.Tally``, named in the module's ``TALLIED``. Metrics that need a clock, limits or a lock have a
class with ``listen``.
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
