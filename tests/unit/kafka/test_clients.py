"""What a client refuses is an error of the configuration; what brokers refuse is an error of who asked."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from consumer.kafka.clients import broker_request, new_admin, new_consumer, new_producer
from consumer.model.errors import ConfigError, SinkError, SourceError


@pytest.mark.parametrize(
    ("create", "sections"),
    [
        (new_consumer, "[kafka.client] or [kafka.consumer]"),
        (new_producer, "[kafka.client] or [kafka.producer]"),
        (new_admin, "[kafka.client]"),
    ],
)
@pytest.mark.parametrize(
    ("settings", "why"),
    [({"no.such": "1"}, r'No such configuration property: "no\.such"'), ({"stats_cb": 3}, "stats_cb")],
)
def test_refused_settings_are_an_error_of_the_configuration(
    create: Callable[[Mapping[str, Any]], object], sections: str, settings: Mapping[str, Any], why: str
) -> None:
    """In one wording for every client, whether the library or its binding refuses them."""
    message = rf"^kafka: the client rejects its settings: .*{why}.*; correct {re.escape(sections)}$"
    with pytest.raises(ConfigError, match=message):
        create({"group.id": "none", **settings})


def test_what_brokers_refuse_is_raised_as_the_caller_says() -> None:
    """With what was asked; brokers that do not answer have a sentence of their own."""
    refusal = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(SinkError, match=r"^the topics cannot be listed: .*authorization"):  # noqa: SIM117
        with broker_request("host:1", "the topics cannot be listed", SinkError):
            raise refusal
    silence = KafkaException(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(SourceError, match=r"^no broker answers at host:1"), broker_request("host:1", "unused"):
        raise silence
