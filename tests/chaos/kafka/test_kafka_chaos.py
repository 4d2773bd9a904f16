"""Everything is killed and stopped at random moments under load, and nothing of what is promised is broken."""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.kafka import KafkaBroker
from tests.chaos.kafka import answers
from tests.chaos.kafka.clean_feed import check_clean_feed
from tests.chaos.kafka.faults import KINDS, Round, in_rebalances, long_plan, short_plan
from tests.chaos.kafka.feeding import Feeding
from tests.chaos.kafka.formats import FORMATS, format_named
from tests.chaos.kafka.hostile_feed import HostileFeed
from tests.chaos.kafka.hostile_values import ValueFormat, json_format
from tests.chaos.kafka.known_feed import KnownFeed
from tests.chaos.kafka.servers import OneOfEach, Servers
from tests.chaos.kafka.stage import BROKER_SETTINGS, Manner, Stage, say
from tests.kafka.memory import ABOVE_BARE_MB_MAX, bare_peak_mb
from tests.kafka.topics import make_topics

pytestmark = pytest.mark.servers

SEED: Final = "CHAOS_SEED"
"""In the environment: what makes a run again, as far as the moments of the machine allow."""
NAMESPACE: Final = "chaos"
BROKER_HEAP_MB: Final = 1_024
"""Room for several requests and answers of 8 MiB at once."""
PARTITIONS: Final = 6
ARTICLES_MIN: Final = 30_000

StartsKafka = Callable[..., KafkaBroker]
StartsHbase = Callable[[str], tuple[Hbase, ThriftGateway]]


class Form(NamedTuple):
    """The size of a run: faults, the least number of messages, and messages a second apart from bursts.

    ``hostile``: which share of the messages is hostile.
    """

    plan: Callable[[str, int], Sequence[Round]]
    faults: int
    messages: int
    rate: float
    hostile: float


SHORT: Final = Form(short_plan, faults=3, messages=600, rate=25, hostile=0.15)
# Some of the messages are no articles.
LONG: Final = Form(long_plan, faults=40, messages=32_000, rate=80, hostile=0.03)
HOSTILE: Final = Form(short_plan, faults=10, messages=26_500, rate=100, hostile=0.5)
"""Once for each format of values: over 100,000 messages that are committed, and some thousands that are not."""
WITHOUT: Final = "CHAOS_WITHOUT"
"""In the environment: hostile cases to leave out, with commas between them, to find out which one does harm."""
_LARGE: Final = {"max.message.bytes": str(16 << 20), "retention.ms": "-1"}
_ANY_TIME: Final = dict.fromkeys(
    ("segment.ms", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"), str(2**63 - 1)
)
"""The source takes every time; the topics of the sink refuse some, as they do by default."""
MANNERS: Final = tuple(
    Manner(once=once, **more) for more in ({}, {"static": True}, {"new_protocol": True}) for once in (False, True)
)


@pytest.fixture
def servers(own_kafka: StartsKafka, own_hbase: StartsHbase) -> Servers:
    """Servers of the test's own, started at the same time."""
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(own_kafka, BROKER_SETTINGS, heap_mb=BROKER_HEAP_MB)
        hbase, gateway = own_hbase(NAMESPACE)
        return OneOfEach(starting.result(), hbase, gateway)


@contextmanager
def seeded() -> Iterator[str]:
    """The seed of the run, which is printed at its beginning and with each failure."""
    seed = os.environ.get(SEED) or str(random.SystemRandom().randrange(10**9))
    say(f"{SEED}={seed}")
    try:
        yield seed
    except BaseException as failure:
        failure.add_note(f"{SEED}={seed}")
        raise


def run(form: Form, seed: str, servers: Servers, manner: Manner, values: ValueFormat, folder: Path) -> Stage:
    """Play the form's plan over a feed, check the results, and print a line for docs/contributing/chaos.md."""
    topics = make_topics(servers.address, PARTITIONS, _LARGE | _ANY_TIME, _LARGE, servers.replicas)
    logs = folder / "consumers"
    logs.mkdir()
    store_url = f"hbase://{servers.gateway.address}/{NAMESPACE}"
    hostile = HostileFeed(seed, values, os.environ.get(WITHOUT, "").split(","))
    feed = KnownFeed(seed, hostile, form.hostile, values.write)
    with (
        Feeding(topics, feed, form.rate) as feeding,
        Stage(servers, topics, feeding, store_url, logs, manner, values.settings) as stage,
    ):
        plan = form.plan(seed, form.faults)
        for faults in in_rebalances(plan, seed) if manner.static else plan:
            stage.play(faults)
        stage.finish(form.messages)
    lasted_s = time.monotonic() - stage.began_s
    found = answers.read_answers(topics, feed.messages)
    counts = answers.check(found, store_url, once=manner.once)
    check_clean_feed(topics, found, once=manner.once)
    above_mb = max(stage.memory.peaks_mb.values()) - bare_peak_mb(topics, len(found.messages))
    say(_line(stage, counts, f"{manner}, {values.name}", seed, lasted_s, above_mb))
    assert above_mb <= ABOVE_BARE_MB_MAX, f"a consumer took {above_mb:.0f} MB more than a bare client"
    return stage


def _line(stage: Stage, counts: answers.Counts, manner: str, seed: str, lasted_s: float, above_mb: float) -> str:
    """The run's row of the ledger; ``above_mb`` is the largest consumer's memory beyond a bare client's."""
    cells = (
        manner,
        seed,
        f"{len(stage.struck)} in {lasted_s:.0f} s",
        f"{min((strike.lag for strike in stage.struck), default=0):,}",
        f"{counts.messages:,} = {counts.verdicts:,} + {counts.letters:,}",
        f"{counts.repeated:,}",
        f"{counts.kept:,} + {counts.duplicates:,}",
        f"{stage.logged('was given up')}",
        f"{stage.logged('Lost: ')} + {stage.logged('Another client joins')}",
    )
    hostile = sum(bool(message.case) for message in stage.feeding.feed.messages)
    return (
        f"| {' | '.join(cells)} |\n"
        f"{datetime.now(UTC):%Y-%m-%d}: {hostile:,} hostile messages, {above_mb:.0f} MB above a bare client, "
        f"{len(stage.servers.ended_by_themselves)} servers restarted"
    )


@pytest.mark.timeout(480)
def test_a_short_chaos(servers: Servers, tmp_path: Path) -> None:
    """Three faults of different kinds, and all that is promised holds.

    The seed decides which kinds, which delivery and which format of values: all of them in every run of the tests would
    take minutes more.
    """
    with seeded() as seed:
        chance = random.Random(seed)
        manner = Manner(once=chance.choice([False, True]))
        with format_named(chance.choice(FORMATS)) as values:
            stage = run(SHORT, seed, servers, manner, values, tmp_path)
        assert len(stage.struck) == SHORT.faults
        assert all(strike.lag > 0 for strike in stage.struck)


@pytest.mark.parametrize("manner", MANNERS, ids=lambda manner: str(manner).replace(", ", "-").replace(" ", "-"))
@pytest.mark.chaos
@pytest.mark.timeout(1_500)
def test_a_long_chaos(servers: Servers, tmp_path: Path, manner: Manner) -> None:
    """Forty faults, each kind five times, some of them at once, over 30,000 articles and more."""
    with seeded() as seed:
        stage = run(LONG, seed, servers, manner, json_format(), tmp_path)
        assert len(stage.struck) >= LONG.faults
        assert {strike.fault.kind for strike in stage.struck} == set(KINDS)
        assert all(strike.lag > 0 for strike in stage.struck)
        articles = sum(
            message.value is not None and message.expected.verdict for message in stage.feeding.feed.messages
        )
        assert articles >= ARTICLES_MIN


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.chaos
@pytest.mark.timeout(1_500)
def test_hostile_messages(servers: Servers, tmp_path: Path, name: str) -> None:
    """Half of the feed is hostile: one answer each under faults, bounded memory, and no consumer ends by itself."""
    with seeded() as seed, format_named(name) as values:
        manner = Manner(once=FORMATS.index(name) % 2 == 1)
        stage = run(HOSTILE, f"{seed} {name}", servers, manner, values, tmp_path)
        assert len(stage.struck) == HOSTILE.faults
