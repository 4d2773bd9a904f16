"""The recommended configuration of a sink's topics and of topics of articles, with reasons."""

from collections.abc import Sequence
from typing import Final

from consumer.kafka.topics import (
    BROKER_TIME,
    MESSAGE_BYTES_MAX,
    SOURCE_RETENTION_MS,
    TIMESTAMP_TYPE,
    PlannedTopic,
    SinkTopics,
)
from storage.clock import MS_PER_DAY

_GIB: Final = 1 << 30


def topic_plan(
    topics: SinkTopics, sources: Sequence[str] = (), source_keep_ms: int = SOURCE_RETENTION_MS
) -> list[PlannedTopic]:
    """Return the planned topics of ``sources``, and those of a sink except its topic of banks.

    Source topics keep messages for ``source_keep_ms``, by default long enough to rebuild a lost store.
    """
    return [
        PlannedTopic(
            topics.duplicates_topic,
            _delete_policy_days(30),
            may_compact=False,
            compaction="no: flagging a later version of an article would remove the flag of an earlier one",
        ),
        PlannedTopic(
            topics.verdicts_topic,
            _delete_policy_days(30),
            may_compact=False,
            compaction="no: keys are ids, so only the last verdict of each article would remain",
        ),
        PlannedTopic(
            topics.unique_topic,
            # Articles keep their own times, so without LogAppendTime older ones would be deleted on arrival.
            _delete_policy_days(30) | {"max.message.bytes": str(MESSAGE_BYTES_MAX), TIMESTAMP_TYPE: BROKER_TIME},
            may_compact=True,
            compaction="yes: the last message of an id says whether the article is in the feed, and which version; "
            'except where keys of records are not ids (id_from = "value")',
        ),
        PlannedTopic(
            topics.dead_letters_topic,
            # Dead letters have their records' times, so a time limit would delete those of old records on arrival.
            _delete_policy_days(None) | {"retention.bytes": str(_GIB), "max.message.bytes": str(MESSAGE_BYTES_MAX)},
            may_compact=False,
            compaction="no: a record may be rejected twice, and compaction refuses records without a key",
        ),
        PlannedTopic(
            topics.floods_topic,
            _delete_policy_days(30),
            may_compact=False,
            compaction="no: keys are ids of originals, so a second flood of a story would remove the first",
        ),
        PlannedTopic(
            topics.stories_topic,
            _delete_policy_days(30),
            may_compact=False,
            compaction="no: keys are ids of originals, so only the last event of a story would remain",
        ),
        PlannedTopic(
            topics.near_misses_topic,
            _delete_policy_days(30),
            may_compact=False,
            compaction="no: a later version of an article would remove the near miss of an earlier one",
        ),
        PlannedTopic(
            topics.bank_matches_topic,
            _delete_policy_days(30),
            may_compact=False,
            compaction="no: a later version of an article would remove the match of an earlier one",
        ),
        *(_source_topic(name, source_keep_ms) for name in sources),
    ]


def _source_topic(name: str, keep_ms: int) -> PlannedTopic:
    return PlannedTopic(
        name,
        # With producers' times a copy could be backdated, and pass for the original.
        _delete_policy(keep_ms) | {"max.message.bytes": str(MESSAGE_BYTES_MAX), TIMESTAMP_TYPE: BROKER_TIME},
        may_compact=False,
        compaction="no: a version that is replaced before it is judged would never be judged",
    )


def _delete_policy_days(days: int | None) -> dict[str, str]:
    return _delete_policy(-1 if days is None else days * MS_PER_DAY)


def _delete_policy(keep_ms: int) -> dict[str, str]:
    # The broker keeps the producer's compression instead of compressing again.
    return {"cleanup.policy": "delete", "retention.ms": str(keep_ms), "compression.type": "producer"}
