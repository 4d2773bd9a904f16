"""Questions to brokers without a leader. Real brokers elect one at their own pace, so a fake elects it here."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # its stubs leave it out

from consumer.doctor import brokers
from consumer.doctor.brokers import Brokers


class Electing:
    """An admin client of a cluster with one topic, whose end it refuses to tell this many times.

    How the topic is set it refuses to say too, and answers of brokers only.
    """

    def __init__(self, code: int, times: float) -> None:
        self._code = code
        self._times = times
        self.asked = 0

    def list_topics(self, timeout: float) -> Any:  # noqa: ANN401  # as the client's
        """Return metadata with one topic."""
        metadata = SimpleNamespace(id=1)
        return SimpleNamespace(
            cluster_id="c", brokers={1: metadata}, topics={"articles": SimpleNamespace(partitions={0: metadata})}
        )

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Any]:
        """Return no settings."""
        of_broker = resources[0].restype == ResourceType.BROKER
        return {resources[0]: _answered({}) if of_broker else _refused(self._code)}

    def list_offsets(self, places: Mapping[TopicPartition, Any], request_timeout: float) -> dict[Any, Any]:
        """Refuse, and answer later."""
        self.asked += 1
        if self.asked <= self._times:
            return {place: _refused(self._code) for place in places}
        return {place: _answered(SimpleNamespace(offset=3, timestamp=7)) for place in places}


def _answered(what: Any) -> Future[Any]:  # noqa: ANN401  # whatever a client answers
    answer: Future[Any] = Future()
    answer.set_result(what)
    return answer


def _refused(code: int) -> Future[Any]:
    answer: Future[Any] = Future()
    answer.set_exception(KafkaException(KafkaError(code)))
    return answer


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Electing], Brokers]:
    """Return brokers with this client, after their first answer."""

    def brokers_of(admin: Electing) -> Brokers:
        monkeypatch.setattr(brokers, "new_admin", lambda *_: admin)
        client = Brokers("nowhere:1", {})
        client.cluster()
        return client

    monkeypatch.setattr(brokers, "REQUEST_TIMEOUT_S", 0.5)
    return brokers_of


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE])
def test_a_leader_that_is_being_elected_is_asked_again(asked: Callable[[Electing], Brokers], code: int) -> None:
    """A topic that was created a moment ago is not an error."""
    admin = Electing(code, 2)
    (newest,) = asked(admin).newest_messages(["articles"])
    assert (newest.topic, newest.time_ms) == ("articles", 7)
    assert admin.asked == 3


def test_what_no_leader_ever_answers_is_an_error(asked: Callable[[Electing], Brokers]) -> None:
    """A missing leader is an error after the deadline, any other refusal at once."""
    without = Electing(KafkaError.LEADER_NOT_AVAILABLE, float("inf"))
    with pytest.raises(KafkaException):
        asked(without).newest_messages(["articles"])
    assert without.asked > 2
    refusing = Electing(KafkaError.TOPIC_AUTHORIZATION_FAILED, float("inf"))
    with pytest.raises(KafkaException):
        asked(refusing).newest_messages(["articles"])
    assert refusing.asked == 1


def test_a_topic_that_was_just_deleted_is_not_there(asked: Callable[[Electing], Brokers]) -> None:
    """A deleted topic may still be listed without settings; missing permission to see them is an error."""
    assert asked(Electing(KafkaError.UNKNOWN_TOPIC_OR_PART, 0)).topics(["articles"]) == {}
    with pytest.raises(KafkaException):
        asked(Electing(KafkaError.TOPIC_AUTHORIZATION_FAILED, 0)).topics(["articles"])
