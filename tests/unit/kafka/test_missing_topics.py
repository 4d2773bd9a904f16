"""Topics that a client doubts are looked for until they are found, or missing for good."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from consumer.kafka import errors
from consumer.kafka.errors import MissingTopics
from consumer.model.errors import SourceError

BROKERS = "broker:9092"


class Cluster:
    """A client that knows some topics, and which were looked for."""

    def __init__(self, *topics: str) -> None:
        self.topics = set(topics)
        self.asked: list[str] = []

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        """Metadata of the topic; a client waits this long for it at most."""
        assert timeout > 0
        self.asked.append(topic)
        error = None if topic in self.topics else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error)})


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "RETRY_PAUSE_S", 0.0)


def look(missing: MissingTopics, cluster: Cluster, times: int) -> None:
    """Look for what is in doubt, as the turns of a client thread do."""
    for _ in range(times):
        missing.check(cluster)  # type: ignore[arg-type]  # all of a consumer that it needs


def test_a_topic_that_was_found_is_not_looked_for_again() -> None:
    """Metadata of a topic costs a request; one that is there is in doubt once, and again when the client says so."""
    cluster = Cluster("articles")
    missing = MissingTopics(["articles"], BROKERS)
    look(missing, cluster, 3)
    assert cluster.asked == ["articles"]
    missing.suspect("articles")
    look(missing, cluster, 3)
    assert cluster.asked == ["articles"] * 2


def test_a_topic_that_stays_missing_ends_the_run() -> None:
    """A topic that was just made may take a moment, so it is looked for several times; other topics do not matter."""
    cluster = Cluster("articles")
    missing = MissingTopics(["articles", "retracted"], BROKERS)
    look(missing, cluster, errors._MISSES_MAX - 1)
    with pytest.raises(SourceError, match="retracted"):
        look(missing, cluster, 1)
    assert cluster.asked.count("articles") == 1


def test_a_doubt_about_a_topic_of_others_is_about_all_of_ours() -> None:
    """The client does not always name the topic that it misses."""
    cluster = Cluster("articles", "retracted")
    missing = MissingTopics(["articles", "retracted"], BROKERS)
    look(missing, cluster, 1)
    missing.suspect("")
    look(missing, cluster, 1)
    assert cluster.asked == ["articles", "retracted"] * 2
