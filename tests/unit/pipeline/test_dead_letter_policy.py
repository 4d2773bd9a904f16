"""The policy of dead letters: how it names the place of a bad record."""

from consumer.files.sinks import NullSink
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.record import Partition, RawRecord
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy

FAULT = BadRecord(Reason.INVALID_JSON, "the record is not JSON")


def record(partition: Partition | None) -> RawRecord:
    """The third record of a feed."""
    return RawRecord(3, 40, b"{", 1, None, None, partition=partition)


def test_a_dead_letter_names_the_file_or_the_partition() -> None:
    """So that the record can be found again."""
    policy = DeadLetterPolicy("feed.jsonl", NullSink())
    assert policy.reject(record(None), FAULT).letter.position.source == "feed.jsonl"
    assert policy.reject(record(("articles", 2)), FAULT).letter.position.source == "articles[2]"
