"""Checks the clean feed: it has the record of every kept article as it came, and nothing else."""

import time
from collections import Counter, defaultdict
from typing import Final

from consumer.model.verdict import decode_verdict
from tests.chaos.kafka.answers import TIME_HEADER, UNDECIDED_S, Answers
from tests.chaos.kafka.reading_back import NO_TIME_MS, Found, brief, read_topic
from tests.kafka.topics import Topics

Content = tuple[bytes | None, bytes | None]
"""A key, and a value as ``brief`` gives it."""
_NAMED: Final = 3


def check_clean_feed(topics: Topics, answers: Answers, *, once: bool) -> None:
    """Read the clean feed, waiting for open transactions, and check it; ``once``: nothing is there twice."""
    kept, times_ms = _kept(answers)
    until_s = time.monotonic() + UNDECIDED_S
    while True:
        records = [record for record in read_topic(topics, topics.sink("unique")) if record.value is not None]
        if sum(kept.values()) <= len(records) or time.monotonic() > until_s:
            break
        time.sleep(1)
    check_records(kept, times_ms, records, once=once)


def check_records(
    kept: Counter[Content], times_ms: dict[Content, set[int]], records: list[Found], *, once: bool
) -> None:
    """Compare the records with those of the kept articles: content, count and time."""
    there: Counter[Content] = Counter()
    for record in records:
        content = record.key, brief(record.value)
        there[content] += 1
        if content in kept:
            in_header = {value for name, value in record.headers or () if name == TIME_HEADER}
            sent_ms = times_ms[content]
            in_headers = any(b"%d" % time_ms in in_header for time_ms in sent_ms)
            assert record.timestamp_ms in sent_ms or NO_TIME_MS in sent_ms or in_headers, (
                f"{record.key!r:.80} came at {sent_ms}"
            )
    strange = list(there.keys() - kept.keys())[:_NAMED]
    assert not strange, f"the clean feed has what was not kept: {strange}"
    missing = list((kept - there).keys())[:_NAMED]
    assert not missing, f"the clean feed lacks what was kept: {missing}"
    repeated = list((there - kept).keys())[:_NAMED]
    assert not (once and repeated), f"the clean feed has records more than once: {repeated}"


def _kept(answers: Answers) -> tuple[Counter[Content], dict[Content, set[int]]]:
    kept: Counter[Content] = Counter()
    times_ms: defaultdict[Content, set[int]] = defaultdict(set)
    for origin, events in answers.verdicts.items():
        if decode_verdict(events[0]).outcome == "unique":
            message = answers.messages[origin]
            content = message.key, brief(message.value)
            kept[content] += 1
            times_ms[content].add(answers.times_ms[origin])
    return kept, times_ms
