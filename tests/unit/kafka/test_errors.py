"""What is said of brokers that do not answer, or that refuse."""

import pytest
from confluent_kafka import KafkaError

from consumer.kafka.errors import failure_message


@pytest.mark.parametrize(
    "code", [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._TIMED_OUT]
)
def test_brokers_out_of_reach_are_named(code: int) -> None:
    """With what to check, since the client's own words name no address."""
    message = failure_message("broker:9092", KafkaError(code), "the group was not read")
    assert message.startswith("no broker answers at broker:9092 (")
    assert "dupwatch doctor" in message


def test_refused_credentials_are_not_taken_for_an_outage() -> None:
    """The brokers answer, so their address is right."""
    message = failure_message("broker:9092", KafkaError(KafkaError._AUTHENTICATION), "the group was not read")
    assert message.startswith("the brokers at broker:9092 refuse the credentials: ")
    assert "kafka.secret_files" in message


def test_a_refusal_is_told_in_the_words_of_the_brokers() -> None:
    """They answered: their address is right."""
    message = failure_message(
        "broker:9092", KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), "the group was not read"
    )
    assert message.startswith("the group was not read: ")
    assert "GROUP_AUTHORIZATION_FAILED" in message
