"""The formats of values that a chaos run can use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.chaos.kafka.hostile_avro import avro_format
from tests.chaos.kafka.hostile_html import html_format
from tests.chaos.kafka.hostile_protobuf import protobuf_format
from tests.chaos.kafka.hostile_values import ValueFormat, json_format
from tests.registry_server import RegistryServer, serving

FORMATS: Final = ("json", "html", "avro", "protobuf")
_WITHOUT_REGISTRY: Final = {"json": json_format, "html": html_format}
_WITH_REGISTRY: Final = {"avro": avro_format, "protobuf": protobuf_format}


@contextmanager
def format_named(name: str) -> Iterator[ValueFormat]:
    """A format by its name. Its schema registry, if it needs one, runs until the context ends."""
    if name in _WITHOUT_REGISTRY:
        yield _WITHOUT_REGISTRY[name]()
    else:
        with serving(RegistryServer()) as registry:
            yield _WITH_REGISTRY[name](registry)
