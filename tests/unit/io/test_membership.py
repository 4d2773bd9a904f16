"""Who a consumer is in its group, as its client says."""

import struct

import pytest
from confluent_kafka import Consumer

from consumer.errors import SinkError
from consumer.sinks.membership import is_member


def metadata(generation: int, member_id: bytes) -> bytes:
    """As librdkafka writes them."""
    return b"CGMDv2:" + struct.pack("=i", generation) + b"group\0" + member_id + b"\0\x01"


@pytest.mark.parametrize(
    ("generation", "member_id", "expected"),
    [(0, b"m", True), (7, b"m-1", True), (-1, b"", False), (-1, b"m", False), (7, b"", False)],
)
def test_a_member_has_a_generation_and_a_name(generation: int, member_id: bytes, expected: bool) -> None:  # noqa: FBT001
    """Without either it is none, or none any more."""
    assert is_member(metadata(generation, member_id)) is expected


def test_a_client_that_never_joined_is_no_member() -> None:
    """What the client itself gives has this layout; another one is refused."""
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "group", "log_level": 0})
    assert not is_member(consumer.consumer_group_metadata())
    consumer.close()
    with pytest.raises(SinkError, match="layout"):
        is_member(b"CGMDv3:")
