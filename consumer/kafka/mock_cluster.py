"""A Kafka cluster within this process: librdkafka's own mock cluster, for a first try without any server.

It speaks Kafka's protocol on ports of 127.0.0.1, so that other clients can be pointed at it. Tried: groups with
cooperative rebalancing, idempotent producers, transactions, commits and watermarks. Not there: ``offsets_for_times``
(it says "the end"), the settings of topics, and topics made by an admin client. A topic comes into being when its
metadata is asked for, with four partitions; all of it is held in memory and gone with the process.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaException, Producer

from consumer.kafka.client_log import client_log
from consumer.model.errors import SourceError

BROKERS: Final = 1
_ASK_S: Final = 10.0


@contextmanager
def mock_cluster(topics: Sequence[str]) -> Iterator[str]:
    """Run a cluster that has these topics; gives its address, "host:port", as other clients are told it."""
    # The cluster lives as long as the client that it was asked of.
    owner = Producer({"test.mock.num.brokers": BROKERS, "logger": client_log, "log_level": 3})
    try:
        brokers = owner.list_topics(timeout=_ASK_S).brokers.values()
        for topic in topics:
            owner.list_topics(topic, timeout=_ASK_S)
    except KafkaException as error:
        raise SourceError(f"the mock cluster does not answer: {error.args[0].str()}") from error
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner
