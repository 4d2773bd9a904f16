"""A check of the schema registry."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from consumer.config.config import Config
from consumer.decode.registry import ConfluentRegistry, SchemaFormat, UnusableSchema
from consumer.doctor.finding import Finding, ok
from consumer.wiring import components

_ANY: Final = 1
"""The id of a schema that need not exist: that it does not is an answer too."""


def check_registry(config: Config, written: SchemaFormat) -> Iterator[Finding]:
    """Ask for a schema as a consumer would. Raises the error that the consumer would get."""
    # A schema in another format is an answer too.
    with suppress(UnusableSchema):
        ConfluentRegistry(components.registry_options(config), written).schema(_ANY)
    yield ok(f"The schema registry at {config.registry.url} answers.")
