"""A partition without a leader is asked again. Leaders move when brokers like it, so a client is played here."""

from collections.abc import Callable
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.offset_range import watermarks


class Moving:
    """A client of a partition that has no leader for so many questions; ``code`` says how it is told."""

    def __init__(self, code: int, times: int) -> None:
        self._code = code
        self.left = times

    def get_watermark_offsets(self, place: TopicPartition, timeout: float, *, cached: bool) -> tuple[int, int]:
        """The offsets of partition 7, once it has a leader."""
        assert (place.topic, place.partition, cached) == ("feed", 7, False)
        assert timeout > 0
        if self.left:
            self.left -= 1
            raise KafkaException(KafkaError(self._code))
        return 3, 9


Ask = Callable[[Moving, float], tuple[int, int]]


@pytest.fixture
def ask() -> Ask:
    """Ask for the offsets of partition 7."""
    return lambda client, wait_s: watermarks(cast("Consumer", client), "feed", 7, wait_s)


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE])
def test_a_partition_whose_leader_moves_is_asked_again(ask: Ask, code: int) -> None:
    """Two refusals in a row end nothing."""
    assert ask(Moving(code, 2), 30) == (3, 9)


def test_one_without_a_leader_is_given_up(ask: Ask) -> None:
    """Not asked for ever: the brokers' own words are raised."""
    with pytest.raises(KafkaException):
        ask(Moving(KafkaError.LEADER_NOT_AVAILABLE, 1_000), 0.2)


def test_any_other_error_is_raised_at_once(ask: Ask) -> None:
    """What asking again does not mend is not asked again."""
    client = Moving(KafkaError.TOPIC_AUTHORIZATION_FAILED, 1)
    with pytest.raises(KafkaException):
        ask(client, 30)
    assert client.left == 0
