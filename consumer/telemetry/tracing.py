"""Tracing, if enabled. Only then is OpenTelemetry loaded, which takes a third of a second."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from consumer.config.sections.telemetry import TracingSection
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.model.program_version import program_version
from consumer.telemetry.trace_context import TracedFeed
from consumer.text.install_advice import install_command

_PACKAGE = "opentelemetry"


@contextmanager
def traced(section: TracingSection, feed: TracedFeed, hooks: Hooks) -> Iterator[None]:
    """If tracing is enabled, make spans of batches and requests while the context is open. Then send the last spans.

    Raises ``ConfigError`` if tracing is enabled and its packages are not installed.
    """
    if not section.enabled:
        yield
        return
    try:
        spans: Any = import_module("consumer.telemetry.spans")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != _PACKAGE:
            raise
        raise ConfigError(
            f"tracing.enabled needs {error.name}, which is not installed. Install it with:\n"
            f"{install_command('tracing')}"
        ) from error
    tracing = spans.tracing_to(section.endpoint, feed, program_version(), section.links_max)
    try:
        tracing.spans.listen(hooks)
        tracing.requests.listen(hooks)
        yield
    finally:
        tracing.close(section.close_s)
