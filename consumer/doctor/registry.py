"""Whether the schema registry answers who asks it as a consumer does."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from consumer.config.config import Config
from consumer.decode.registry import ConfluentRegistry, SchemaFormat, UnusableSchema
from consumer.doctor.finding import Finding, ok
from consumer.wiring import parts

_ANY: Final = 1
"""The id of a schema that need not be there: that there is none is an answer too."""


def check_registry(config: Config, written: SchemaFormat) -> Iterator[Finding]:
    """Ask for a schema. Raises what a consumer would meet where there is no answer, or a refusal."""
    # A schema of another kind is an answer as well.
    with suppress(UnusableSchema):
        ConfluentRegistry(parts.registry_options(config), written).schema(_ANY)
    yield ok(f"The schema registry at {config.registry.url} answers.")
