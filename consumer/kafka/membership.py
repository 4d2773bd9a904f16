"""Who a consumer is in its group, as its client's group metadata say.

While the client is between two memberships they name none, and the brokers take a transaction's offsets with such
metadata from anybody (KIP-447 left that door open for older clients): a consumer that was taken for dead could commit
what is others' by now.
"""

import struct
import sys
from typing import Final

from consumer.model.errors import ConfigError

GroupMetadata = bytes
"""What ``Consumer.consumer_group_metadata()`` gives."""

_MAGIC: Final = b"CGMDv2:"
_GENERATION: Final = struct.Struct("<i" if sys.byteorder == "little" else ">i")


def member_of(group_metadata: GroupMetadata) -> bytes | None:
    """The id of the member that they name, None where they name none.

    ``rd_kafka_consumer_group_metadata_write`` lays them out: ``magic | generation (int32 of the machine) | group id, 0
    | member id, 0 | ...``; ConfigError for another layout.
    """
    if not group_metadata.startswith(_MAGIC):
        raise ConfigError("the Kafka client's group metadata have a layout that this version of dupwatch does not know")
    rest = group_metadata[len(_MAGIC) :]
    (generation,) = _GENERATION.unpack_from(rest)
    member_id = rest[_GENERATION.size :].split(b"\0")[1]
    return member_id if generation >= 0 and member_id else None
