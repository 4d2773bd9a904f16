"""A Kafka cluster in this process: librdkafka's own mock cluster, to try dupwatch without any server.

It speaks Kafka's protocol on ports of 127.0.0.1, so that other clients can connect to it. Tested: groups with
cooperative rebalancing, idempotent producers, transactions, commits and watermarks. Not supported:
``offsets_for_times`` (it returns the end), settings of topics, and admin requests that need a controller. A request for
the metadata of a topic creates the topic with four partitions. All messages are in memory, and are lost when
``mock_cluster`` ends.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaException

from consumer.kafka.clients import new_producer
from consumer.model.errors import SourceError

BROKER_COUNT: Final = 1
ID_PREFIX: Final = "mockCluster"
"""The id of every mock cluster of librdkafka begins with this."""
_REQUEST_TIMEOUT_S: Final = 10.0


@contextmanager
def mock_cluster(topics: Sequence[str]) -> Iterator[str]:
    """Run a cluster with these topics; yield its address, "host:port", for other clients. Raises ``SourceError``."""
    # The cluster lives as long as the client that created it.
    owner = new_producer({"test.mock.num.brokers": BROKER_COUNT, "log_level": 3})
    try:
        brokers = owner.list_topics(timeout=_REQUEST_TIMEOUT_S).brokers.values()
        for topic in topics:
            owner.list_topics(topic, timeout=_REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise SourceError(f"the mock cluster does not answer: {error.args[0].str()}") from error
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner
