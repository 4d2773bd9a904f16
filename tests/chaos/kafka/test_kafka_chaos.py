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
from tests.chaos.kafka.faults import KINDS, Round, in_rebalances, long_plan, short_plan
from tests.chaos.kafka.feeding import Feeding
from tests.chaos.kafka.known_feed import KnownFeed
from tests.chaos.kafka.stage import BROKER_SETTINGS, Manner, Servers, Stage, say
from tests.kafka.topics import make_topics

pytestmark = pytest.mark.servers

SEED: Final = "CHAOS_SEED"
"""In the environment: what makes a run again, as far as the moments of the machine allow."""
NAMESPACE: Final = "chaos"
PARTITIONS: Final = 6
ARTICLES_MIN: Final = 30_000

StartsKafka = Callable[..., KafkaBroker]
StartsHbase = Callable[[str], tuple[Hbase, ThriftGateway]]


class Form(NamedTuple):
    """How much of it: so many faults, messages at least, and messages a second beside those before each fault."""

    plan: Callable[[str, int], Sequence[Round]]
    faults: int
    messages: int
    rate: float


SHORT: Final = Form(short_plan, faults=6, messages=2_000, rate=25)
# Some of the messages are no articles.
LONG: Final = Form(long_plan, faults=40, messages=32_000, rate=80)
MANNERS: Final = tuple(
    Manner(once=once, **more) for more in ({}, {"static": True}, {"new_protocol": True}) for once in (False, True)
)


@pytest.fixture
def servers(own_kafka: StartsKafka, own_hbase: StartsHbase) -> Servers:
    """Servers of the test's own, started at the same time."""
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(own_kafka, BROKER_SETTINGS)
        hbase, gateway = own_hbase(NAMESPACE)
        return Servers(starting.result(), hbase, gateway)


@contextmanager
def seeded() -> Iterator[str]:
    """The seed of the run, which is said at its beginning and wherever it fails."""
    seed = os.environ.get(SEED) or str(random.SystemRandom().randrange(10**9))
    say(f"{SEED}={seed}")
    try:
        yield seed
    except BaseException as failure:
        failure.add_note(f"{SEED}={seed}")
        raise


def run(form: Form, seed: str, servers: Servers, manner: Manner, folder: Path) -> Stage:
    """Play the form's plan over a feed, and check what is left; says its line of the ledger in docs/chaos.md."""
    topics = make_topics(servers.broker.address, PARTITIONS)
    logs = folder / "consumers"
    logs.mkdir()
    store_url = f"hbase://{servers.gateway.address}/{NAMESPACE}"
    with (
        Feeding(topics, KnownFeed(seed), form.rate) as feeding,
        Stage(servers, topics, feeding, store_url, logs, manner) as stage,
    ):
        plan = form.plan(seed, form.faults)
        for faults in in_rebalances(plan, seed) if manner.static else plan:
            stage.play(faults)
        stage.finish(form.messages)
    lasted_s = time.monotonic() - stage.began_s
    counts = answers.check(topics, feeding.feed.made, store_url, once=manner.once)
    cells = (
        f"{datetime.now(UTC):%Y-%m-%d}",
        str(manner),
        seed,
        f"{len(stage.struck)} in {lasted_s:.0f} s",
        f"{min(one.lag for one in stage.struck):,}",
        f"{counts.messages:,} = {counts.verdicts:,} + {counts.letters:,}",
        f"{counts.repeated:,}",
        f"{counts.kept:,} + {counts.duplicates:,}",
        f"{stage.logged('was given up')}",
        f"{stage.logged('Lost: ')} + {stage.logged('Another client joins')}",
        f"{len(stage.ended_by_themselves)}",
    )
    say(f"| {' | '.join(cells)} |")
    return stage


def test_a_short_chaos(servers: Servers, tmp_path: Path) -> None:
    """Six faults, of each kind that is named first one at least, and all that is promised holds.

    Which way of delivery it is follows from the seed: both at every run of the tests would take two minutes more.
    """
    with seeded() as seed:
        manner = Manner(once=random.Random(seed).choice([False, True]))
        stage = run(SHORT, seed, servers, manner, tmp_path)
        assert len(stage.struck) == SHORT.faults
        assert all(one.lag > 0 for one in stage.struck)


@pytest.mark.parametrize("manner", MANNERS, ids=lambda manner: str(manner).replace(", ", "-").replace(" ", "-"))
@pytest.mark.chaos
@pytest.mark.timeout(1_500)
def test_a_long_chaos(servers: Servers, tmp_path: Path, manner: Manner) -> None:
    """Forty faults, each kind five times, some of them at once, over 30,000 articles and more."""
    with seeded() as seed:
        stage = run(LONG, seed, servers, manner, tmp_path)
        assert len(stage.struck) >= LONG.faults
        assert {one.fault.kind for one in stage.struck} == set(KINDS)
        assert all(one.lag > 0 for one in stage.struck)
        articles = sum(made.value is not None and not made.poison for made in stage.feeding.feed.made)
        assert articles >= ARTICLES_MIN
