"""A Kafka client that reads a topic and keeps nothing: what a consumer's memory is compared with.

``python bare_client.py TOPIC COUNT SETTINGS``, with librdkafka's settings as JSON. It says when it has read COUNT
messages, and waits until its standard input ends.
"""

import json
import os
import sys

from confluent_kafka import Consumer


def main() -> None:
    """Poll one message after the other."""
    topic, count, settings = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    parent = os.getppid()
    # A test that is killed takes it along.
    while count and os.getppid() == parent:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            count -= 1
        message = None
    print("read", flush=True)  # noqa: T201  # whoever started it waits for that
    sys.stdin.read()
    consumer.close()


if __name__ == "__main__":
    main()
