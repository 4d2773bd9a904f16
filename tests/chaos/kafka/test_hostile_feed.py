"""Compares the answers that hostile cases state with those of the decoders."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from consumer.config.loading import load_config
from consumer.kafka.source.records import record_of
from consumer.model.errors import BadRecord
from consumer.wiring.components import message_decoder
from tests.chaos.kafka.feed_message import FeedMessage, Transaction
from tests.chaos.kafka.formats import FORMATS, format_named
from tests.chaos.kafka.hostile_feed import BURST, CODECS, HostileFeed
from tests.chaos.kafka.hostile_values import RECORD_BYTES_MAX, ValueFormat, json_format
from tests.chaos.kafka.known_feed import KnownFeed
from tests.examples import drawn

Answer = Callable[[FeedMessage], str]
DRAWS = 8
MESSAGES = 500


class Given:
    """A message as the client returns it."""

    def __init__(self, message: FeedMessage) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Callable[[], Any]:
        message = self._message
        known: dict[str, Any] = {
            "value": message.value,
            "key": message.key,
            "topic": "t",
            "headers": [],
            "timestamp": (1, 1_000),
        }
        return lambda: known.get(name, 0)


@contextmanager
def answering(name: str) -> Iterator[tuple[ValueFormat, Answer]]:
    """A format, and a function that gives the reason why a message is refused, or ""."""
    with format_named(name) as values:
        given: dict[str, dict[str, Any]] = {}
        for setting in values.settings[1::2]:
            path, _, value = setting.partition("=")
            section, _, option = path.partition(".")
            given.setdefault(section, {})[option] = value
        decode = message_decoder(load_config(None, given))

        def answer(message: FeedMessage) -> str:
            try:
                decode(record_of(Given(message), RECORD_BYTES_MAX))  # type: ignore[arg-type]
            except BadRecord as error:
                return error.reason
            return ""

        yield values, answer


def check(message: FeedMessage, answer: Answer) -> None:
    """The decoder gives the message one of the answers it may get."""
    reason = answer(message)
    what = f"{message.case}, {reason or 'an article'}: {message.key!r:.60} {message.value!r:.200}"
    if reason:
        assert message.expected.letter, what
        assert message.expected.reasons is None or reason in message.expected.reasons, what
    else:
        assert message.expected.verdict, what


@pytest.mark.parametrize("name", FORMATS)
def test_expectations_are_those_of_the_decoders(name: str) -> None:
    """Every value is an article or refused for the stated reason; nothing else is raised."""
    chance = random.Random("decoders")
    with answering(name) as (values, answer):
        for case in drawn(values.cases, 2):
            for _ in range(DRAWS if case.weight >= 1 else 1):
                check(FeedMessage(b"k", case.make(chance), expected=case.expected, case=case.name), answer)
        feed = HostileFeed("decoders", values, [case.name for case in values.cases[1:]])
        for message in islice(feed_of(feed), MESSAGES):
            if not message.aborted:
                check(message, answer)


def feed_of(feed: HostileFeed) -> Iterator[FeedMessage]:
    """The messages of this feed alone."""
    while True:
        yield feed.next([])


def test_a_seed_makes_the_same_hostile_messages_again() -> None:
    """A different seed makes different ones."""

    def mixed(seed: str) -> list[FeedMessage]:
        feed = KnownFeed(seed, HostileFeed(seed, json_format()), share=0.5)
        return [feed.next() for _ in range(1_000)]

    assert mixed("a") == mixed("a") != mixed("b")


def test_a_feed_has_every_way_of_sending() -> None:
    """Every compression, raw batches, complete transactions, and bursts of large records."""
    feed = HostileFeed("ways", json_format())
    known = [FeedMessage(b"known", b"value of a known one", 1, "text")]
    messages = [feed.next(known) for _ in range(8_000)]
    assert {message.way.codec for message in messages} == set(CODECS)
    assert {message.way.raw for message in messages} == {False, True}
    assert {message.way.timestamp_ms for message in messages} >= {None, -1, 0, 1, 2**63 - 1}
    lots: defaultdict[int, list[Transaction]] = defaultdict(list)
    for message in messages:
        if message.way.transaction is not None:
            lots[message.way.transaction.number].append(message.way.transaction)
    assert {lot[0].aborted for lot in lots.values()} == {False, True}
    whole = list(lots.values())[:-1]
    assert all([message.last for message in lot] == [False] * (len(lot) - 1) + [True] for lot in whole)
    assert all(len({message.aborted for message in lot}) == 1 for lot in whole)
    assert any(message.aborted and (message.key == b"known" or message.value == known[0].value) for message in messages)
    assert Counter(message.case for message in messages)["burst"] >= BURST
    raw = [message.key for message in messages if message.way.raw]
    assert len(set(raw)) == len(raw), "a raw message is known again by its key"
