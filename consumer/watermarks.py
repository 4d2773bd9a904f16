"""Where the partitions of a topic begin and end, asked until somebody answers."""

import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

_MOVING: Final = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""A partition whose leader is being chosen, as those of a new topic are, has one a moment later."""
_AGAIN_S: Final = 0.1


def watermarks(consumer: Consumer, topic: str, partition: int, wait_s: float) -> tuple[int, int]:
    """The first offset that is there, and the one behind the last. Raises KafkaException after ``wait_s``."""
    until_s = time.monotonic() + wait_s
    while True:
        left_s = max(until_s - time.monotonic(), _AGAIN_S)
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=left_s, cached=False)
        except KafkaException as error:
            if error.args[0].code() not in _MOVING or time.monotonic() >= until_s:
                raise
        time.sleep(_AGAIN_S)
