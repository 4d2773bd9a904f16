"""Compares the answers that hostile cases state with those of the decoders."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from consumer.config.loading import load_config
from consumer.model.errors import BadRecord
from consumer.sources.kafka_records import record_of
from consumer.wiring.kafka_parts import record_decoder
from tests.chaos.kafka.formats import FORMATS, format_named
from tests.chaos.kafka.hostile_feed import BURST, CODECS, HostileFeed
from tests.chaos.kafka.hostile_values import RECORD_BYTES_MAX, ValueFormat, json_format
from tests.chaos.kafka.known_feed import KnownFeed
from tests.chaos.kafka.made import Made, Transaction

Answer = Callable[[Made], str]
DRAWS = 8
MESSAGES = 500


class Given:
    """A message as the client returns it."""

    def __init__(self, made: Made) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Callable[[], Any]:
        made = self._made
        known: dict[str, Any] = {
            "value": made.value,
            "key": made.key,
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
        decode = record_decoder(load_config(None, given))

        def answer(made: Made) -> str:
            try:
                decode(record_of(Given(made), RECORD_BYTES_MAX))  # type: ignore[arg-type]
            except BadRecord as error:
                return error.reason
            return ""

        yield values, answer


def check(made: Made, answer: Answer) -> None:
    """The decoder gives the message one of the answers it may get."""
    reason = answer(made)
    what = f"{made.case}, {reason or 'an article'}: {made.key!r:.60} {made.value!r:.200}"
    if reason:
        assert made.expected.letter, what
        assert made.expected.reasons is None or reason in made.expected.reasons, what
    else:
        assert made.expected.verdict, what


@pytest.mark.parametrize("name", FORMATS)
def test_expectations_are_those_of_the_decoders(name: str) -> None:
    """Every value is an article or refused for the stated reason; nothing else is raised."""
    chance = random.Random("decoders")
    with answering(name) as (values, answer):
        for case in values.cases:
            for _ in range(DRAWS if case.weight >= 1 else 1):
                check(Made(b"k", case.make(chance), expected=case.expected, case=case.name), answer)
        feed = HostileFeed("decoders", values, [case.name for case in values.cases[1:]])
        for made in islice(feed_of(feed), MESSAGES):
            if not made.aborted:
                check(made, answer)


def feed_of(feed: HostileFeed) -> Iterator[Made]:
    """The messages of this feed alone."""
    while True:
        yield feed.next([])


def test_a_seed_makes_the_same_hostile_messages_again() -> None:
    """A different seed makes different ones."""

    def mixed(seed: str) -> list[Made]:
        feed = KnownFeed(seed, HostileFeed(seed, json_format()), share=0.5)
        return [feed.next() for _ in range(1_000)]

    assert mixed("a") == mixed("a") != mixed("b")


def test_a_feed_has_every_way_of_sending() -> None:
    """Every compression, raw batches, complete transactions, and bursts of large records."""
    feed = HostileFeed("ways", json_format())
    known = [Made(b"known", b"value of a known one", 1, "text")]
    made = [feed.next(known) for _ in range(8_000)]
    assert {message.way.codec for message in made} == set(CODECS)
    assert {message.way.raw for message in made} == {False, True}
    assert {message.way.timestamp_ms for message in made} >= {None, -1, 0, 1, 2**63 - 1}
    lots: defaultdict[int, list[Transaction]] = defaultdict(list)
    for message in made:
        if message.way.transaction is not None:
            lots[message.way.transaction.number].append(message.way.transaction)
    assert {lot[0].aborted for lot in lots.values()} == {False, True}
    whole = list(lots.values())[:-1]
    assert all([message.last for message in lot] == [False] * (len(lot) - 1) + [True] for lot in whole)
    assert all(len({message.aborted for message in lot}) == 1 for lot in whole)
    assert any(message.aborted and (message.key == b"known" or message.value == known[0].value) for message in made)
    assert Counter(message.case for message in made)["burst"] >= BURST
    raw = [message.key for message in made if message.way.raw]
    assert len(set(raw)) == len(raw), "a raw message is known again by its key"
