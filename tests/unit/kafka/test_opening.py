"""Topics as sinks of runs: what shares a client."""

from dataclasses import replace

import pytest

from consumer.kafka.client_settings import TopicsOptions
from consumer.kafka.opening import open_sink, topic_sink
from consumer.pipeline.feed_kind import SinkArguments

URL = "kafka://127.0.0.1:1/judged"


@pytest.mark.parametrize("transactional", [False, True])
def test_dead_letters_share_the_client_of_the_verdicts(*, transactional: bool) -> None:
    """So they are in its transactions, which the journal of the source commits."""
    opened = open_sink(URL, replace(SinkArguments(own=(TopicsOptions(),)), transactional=transactional))
    outbox = vars(opened.sink)["outbox"]
    assert vars(opened.dead_letters())["outbox"] is outbox
    assert opened.transactions is (outbox if transactional else None)
    opened.sink.close()


def test_the_topics_are_those_of_one_prefix() -> None:
    """Those that are asked for."""
    options = TopicsOptions(unique=True)
    sink = topic_sink(URL, SinkArguments(own=(options,), emit="duplicates"))
    topics = vars(sink)["_messages"].topics
    assert topics.written_topics == ["judged.duplicates", "judged.dead-letters", "judged.unique"]
    sink.close()
