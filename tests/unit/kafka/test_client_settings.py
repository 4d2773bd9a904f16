"""What the Kafka clients are told, where a user's settings meet ours."""

from confluent_kafka import Consumer

from consumer.kafka.client_settings import FETCH_BOUNDS, KafkaOptions, consumer_settings


def test_an_answer_of_the_brokers_is_small() -> None:
    """The client unpacks a whole one; who has another bound for that sets it."""
    settings = consumer_settings("127.0.0.1:1", KafkaOptions())
    assert settings["fetch.max.bytes"] == settings["max.partition.fetch.bytes"] == 256 << 10
    own = KafkaOptions(consumer={"fetch.max.bytes": 1 << 20})
    assert consumer_settings("127.0.0.1:1", own)["fetch.max.bytes"] == 1 << 20


def test_what_a_producer_may_send_bounds_no_fetch() -> None:
    """Librdkafka refuses a fetch.max.bytes below message.max.bytes, which ``kafka.client`` sets for both."""
    options = KafkaOptions(client={"message.max.bytes": 32 << 20})
    settings = consumer_settings("127.0.0.1:1", options)
    assert settings["message.max.bytes"] < FETCH_BOUNDS["fetch.max.bytes"]
    Consumer(settings).close()
