"""A client that polls a topic to its end with the settings of a consumer, and does nothing else.

python -m tests.chaos.kafka.bare_client HOST:PORT TOPIC
"""

import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition

from consumer.clients import KafkaOptions, consumer_settings


def main(address: str, topic: str) -> None:
    """Poll until each partition has said that it ends."""
    settings = consumer_settings(address, KafkaOptions(group="bare-client"))
    consumer = Consumer(settings | {"enable.partition.eof": True, "auto.offset.reset": "earliest"})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    left = set(partitions)
    while left:
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            message.value()
        elif error.code() == KafkaError._PARTITION_EOF:
            left.discard(message.partition())
        else:
            raise SystemExit(error.str())
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
