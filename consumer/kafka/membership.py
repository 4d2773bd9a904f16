"""The id of a consumer as a member of its group, read from its client's group metadata.

Between two memberships the metadata name no member. With such metadata the brokers accept a transaction's offsets from
any client (KIP-447 allows that for older clients), so an expelled consumer could commit offsets of partitions that now
belong to others.
"""

import struct
import sys
from typing import Final

from consumer.model.errors import ConfigError

GroupMetadata = bytes
"""The result of ``Consumer.consumer_group_metadata()``."""

_MAGIC: Final = b"CGMDv2:"
_GENERATION: Final = struct.Struct("<i" if sys.byteorder == "little" else ">i")


def member_of(group_metadata: GroupMetadata) -> bytes | None:
    """Return the id of the member, or None between two memberships.

    ``rd_kafka_consumer_group_metadata_write`` defines the layout: ``magic | generation (int32 in the machine's byte
    order) | group id, 0 | member id, 0 | ...``. Raises ``ConfigError`` for another layout.
    """
    if not group_metadata.startswith(_MAGIC):
        raise ConfigError(
            "this version of dupwatch does not know the layout of the Kafka client's group metadata; install another"
            " version of confluent-kafka"
        )
    rest = group_metadata[len(_MAGIC) :]
    (generation,) = _GENERATION.unpack_from(rest)
    member_id = rest[_GENERATION.size :].split(b"\0")[1]
    return member_id if generation >= 0 and member_id else None
