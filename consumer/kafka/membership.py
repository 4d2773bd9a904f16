"""Which member of its group a consumer is, as its client's group metadata say.

Between two memberships the metadata name no member, and with such metadata the brokers accept a transaction's offsets
from any client (KIP-447 allows that for older clients): a consumer that was taken for dead could commit offsets of
partitions that others own by now.
"""

import struct
import sys
from typing import Final

from consumer.model.errors import ConfigError

GroupMetadata = bytes
"""What ``Consumer.consumer_group_metadata()`` returns."""

_MAGIC: Final = b"CGMDv2:"
_GENERATION: Final = struct.Struct("<i" if sys.byteorder == "little" else ">i")


def member_of(group_metadata: GroupMetadata) -> bytes | None:
    """Return the id of the member, None between two memberships.

    ``rd_kafka_consumer_group_metadata_write`` defines the layout: ``magic | generation (int32 of the machine) | group
    id, 0 | member id, 0 | ...``. Raises ``ConfigError`` for another layout.
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
