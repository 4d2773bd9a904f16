"""Groups seen from outside: which answers are waited for, and which are final."""

from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicPartition

from consumer.kafka import groups
from consumer.kafka.groups import FILLING_NOTE, CommittedOffset, ConsumerGroup, GroupTopics
from consumer.model.errors import ConfigError, SourceError
from storage.backoff import Backoff

KEY = ("articles", 0)
PASSING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.UNSTABLE_OFFSET_COMMIT)


class Client:
    """A client that answers in turn: errors are raised, offsets are given with a note."""

    def __init__(self, *answers: int | tuple[int, str | None]) -> None:
        self.answers = [*answers]
        self.commits: list[TopicPartition] = []

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """As the client."""
        answer = self._answer()
        offset, note = answer
        return [
            TopicPartition(place.topic, place.partition, offset)
            if note is None
            else TopicPartition(place.topic, place.partition, offset, note)
            for place in asked
        ]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        """As the client."""
        self._answer()
        self.commits += offsets
        return offsets

    def _answer(self) -> tuple[int, str | None]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return answer


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> ConsumerGroup:
    """A group whose clients are the test's to give."""
    monkeypatch.setattr(groups, "_PAUSES", Backoff(0.0, 0.0))
    group: Any = object.__new__(ConsumerGroup)
    group.name, group._brokers = "new", "127.0.0.1:9"
    return group  # type: ignore[no-any-return]


def given(group: ConsumerGroup, *answers: int | tuple[int, str | None]) -> Client:
    """Have the group's clients answer so."""
    client: Any = Client(*answers)
    group._consumer = group._settled_consumer = client
    created: Client = client
    return created


def test_a_coordinator_that_is_not_there_yet_is_waited_for(group: ConsumerGroup) -> None:
    """The first who asks has the topic of offsets made; offsets of an open transaction are to be settled."""
    given(group, *PASSING, (7, "dupwatch migrate: filling"))
    assert group.committed([KEY]) == {KEY: CommittedOffset(7, FILLING_NOTE)}
    client = given(group, *PASSING, (0, None))
    group.commit({KEY: CommittedOffset(7, FILLING_NOTE)})
    assert [(place.offset, place.metadata) for place in client.commits] == [(7, "dupwatch migrate: filling")]


def test_nothing_committed_is_left_out(group: ConsumerGroup) -> None:
    """A negative offset is none, and no note is an empty one."""
    given(group, (-1001, None))
    assert group.committed([KEY]) == {}
    given(group, (0, None))
    assert group.committed([KEY]) == {KEY: CommittedOffset(0)}


def test_waiting_has_an_end(group: ConsumerGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no coordinator comes, and where the brokers will not, that is said."""
    given(group, KafkaError.NOT_COORDINATOR)
    with pytest.raises(SourceError, match="new cannot be read or set"):
        group.committed([KEY], wait_s=0.01)
    monkeypatch.setattr(groups, "SETTLED_WAIT_S", 0.01)
    given(group, KafkaError.UNSTABLE_OFFSET_COMMIT)
    with pytest.raises(SourceError, match="new cannot be read or set"):
        group.committed([KEY], settled=True)
    client = given(group, KafkaError.GROUP_AUTHORIZATION_FAILED, (7, None))
    with pytest.raises(SourceError, match="GROUP_AUTHORIZATION_FAILED"):
        group.committed([KEY])
    assert client.answers == [(7, None)]


def test_who_is_in_a_group_keeps_others_from_setting_its_offsets(group: ConsumerGroup) -> None:
    """Consumers that were started before the switch are told of in words."""
    given(group, KafkaError.UNKNOWN_MEMBER_ID)
    with pytest.raises(ConfigError, match="the group new has running consumers"):
        group.commit({KEY: CommittedOffset(7, FILLING_NOTE)})


class Listed:
    """What an admin client lists; it is its own future, groups and group."""

    def __init__(self, state: ConsumerGroupState | None, *errors: KafkaError) -> None:
        self.errors = errors
        self.group_id = "old"
        self.state = state
        self.valid = [] if state is None else [self]

    def list_consumer_groups(self, request_timeout: float) -> "Listed":
        """As the client."""
        return self

    def result(self) -> "Listed":
        """As a future."""
        return self


@pytest.mark.parametrize(
    ("state", "empty"),
    [
        (None, True),
        (ConsumerGroupState.EMPTY, True),
        (ConsumerGroupState.STABLE, False),
        (ConsumerGroupState.PREPARING_REBALANCING, False),
        (ConsumerGroupState.UNKNOWN, False),
    ],
)
def test_empty_is_what_is_known_to_be(state: ConsumerGroupState | None, *, empty: bool) -> None:
    """Nobody knows the group, or says that nobody is in it; any other state is of a group with members."""
    topics: Any = object.__new__(GroupTopics)
    topics._admin, topics._brokers = Listed(state), "127.0.0.1:9"
    assert topics.is_empty("old") is empty


def test_a_broker_that_does_not_answer_may_have_the_group() -> None:
    """A list that is not whole says nothing of who is not in it."""
    topics: Any = object.__new__(GroupTopics)
    topics._admin, topics._brokers = Listed(None, KafkaError(KafkaError._TIMED_OUT, "broker 2 is down")), "here:9"
    with pytest.raises(SourceError, match=r"broker 2 is down .* every broker of here:9 is running"):
        topics.is_empty("old")
