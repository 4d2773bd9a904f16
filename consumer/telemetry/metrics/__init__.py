"""The metrics of a run: one module for each subject, with descriptions and what counts them side by side.

A new counter is a ``Measure`` in such a module, in its ``GROUP``, and a line in its ``listen``.
"""

from consumer.telemetry.metrics.metrics import GROUPS, SOURCES_MAX, Bounds, Metrics
from consumer.telemetry.metrics.outages import RequestFailed
from consumer.telemetry.metrics.run import Build

__all__ = ["GROUPS", "SOURCES_MAX", "Bounds", "Build", "Metrics", "RequestFailed"]
