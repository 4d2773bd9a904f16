"""Who a consumer is in its group, as its client says."""

import struct

import pytest
from confluent_kafka import Consumer

from consumer.kafka.membership import member_of
from consumer.model.errors import ConfigError


def metadata(generation: int, member_id: bytes) -> bytes:
    """As librdkafka writes them."""
    return b"CGMDv2:" + struct.pack("=i", generation) + b"group\0" + member_id + b"\0\x01"


@pytest.mark.parametrize(
    ("generation", "member_id", "expected"),
    [(0, b"m", b"m"), (7, b"m-1", b"m-1"), (-1, b"", None), (-1, b"m", None), (7, b"", None)],
)
def test_a_member_has_a_generation_and_a_name(generation: int, member_id: bytes, expected: bytes | None) -> None:
    """Without either it is none, or none any more."""
    assert member_of(metadata(generation, member_id)) == expected


def test_a_client_that_never_joined_is_no_member() -> None:
    """What the client itself gives has this layout; another one is refused."""
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "group", "log_level": 0})
    assert member_of(consumer.consumer_group_metadata()) is None
    consumer.close()
    with pytest.raises(ConfigError, match="layout"):
        member_of(b"CGMDv3:")
