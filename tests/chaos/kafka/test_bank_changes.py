"""Banks that are changed over HTTP, and three consumers that follow them, over real Kafka and HBase."""

import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pytest

from consumer.model.verdict import BankMention, Verdict, decode_verdict
from consumer.text.timestamps import parse_moment, since_1970_ms
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.kafka import KafkaBroker
from tests.chaos.kafka import answers
from tests.chaos.kafka.bank_answers import FOLLOWED_MS, Claim, Judged, check_banks
from tests.chaos.kafka.bank_changes import BankChanges, BankItems, Size
from tests.chaos.kafka.bank_servers import BankService, ServersAndService
from tests.chaos.kafka.faults import BANK_KINDS, CONSUMERS, bank_plan
from tests.chaos.kafka.feeding import Feeding
from tests.chaos.kafka.known_feed import KnownFeed
from tests.chaos.kafka.servers import OneOfEach
from tests.chaos.kafka.stage import BROKER_SETTINGS, Manner, Stage
from tests.cli.command import run_process, text
from tests.cli.serve.test_banks import ask
from tests.kafka.reading import until
from tests.kafka.running import Running, running
from tests.kafka.topics import Topics, make_topics, read_all, send

pytestmark = pytest.mark.servers

NAMESPACE: Final = "banks"
PARTITIONS: Final = 6
ROUNDS: Final = 5
"""Items that are added and removed, one after the other."""
COPIES_A_PARTITION: Final = 4
"""On average; the client spreads them, so that each consumer has some."""
LOOK_S: Final = 0.02
SIZE: Final = Size(clients=10, batches=4, batch_items=25)
FAULTS: Final = 12
COPIES: Final = 0.8
"""The share of copies in the feed; the rest is that of any chaos."""
RATE: Final = 20.0
LOAD_SEED: Final = os.environ.get("TEST_LOAD_SEED") or secrets.token_hex(4)
CLAIMS_MIN: Final = 100
SOON: Final = ("--set", "service.answer_s=3")
"""Less than the broker is away, so that requests end with an unknown outcome."""
ALL_MATCHES: Final = ("--set", "banks.busy_share=1")

_log = logging.getLogger(__name__)


def with_banks(topics: Topics) -> tuple[str, ...]:
    """Create a bank, so that consumers can start; return their settings."""
    created = run_process("bank", "create", "spam", "--action", "deny", "--banks", topics.sink_url())
    assert created.code == 0, created.err
    return "--set", f"banks.url={topics.sink_url()}", *ALL_MATCHES


class Counts(NamedTuple):
    """How many articles a consumer has judged, and how many of them repeat an item of a bank."""

    judged: float
    matched: float

    @classmethod
    def of(cls, consumer: Running) -> Self:
        """Ask the consumer."""
        return cls(consumer.metric("dupwatch_articles_total"), consumer.metric("dupwatch_bank_matches_total"))


class Followers:
    """Consumers, each with partitions, to which copies of an item are sent until all of them say the same of it."""

    def __init__(self, topics: Topics, consumers: Sequence[Running]) -> None:
        self._topics = topics
        self._consumers = consumers
        self._sent = 0

    def seconds_until(self, item: int, *, named: bool) -> float:
        """Send copies until each consumer has named the item, or has not; return the seconds that it took."""
        began_s = time.monotonic()
        following: set[int] = set()
        while len(following) < len(self._consumers):
            for number, (judged, matched) in enumerate(self._send_copies(item)):
                if judged and matched == (judged if named else 0):
                    following.add(number)
        return time.monotonic() - began_s

    def _send_copies(self, item: int) -> list[Counts]:
        """Send copies, and return how many of them each consumer has judged and matched."""
        before = [Counts.of(consumer) for consumer in self._consumers]
        names = [f"copy {self._sent + number}" for number in range(COPIES_A_PARTITION * self._topics.partitions)]
        self._sent += send(self._topics, [(name, {"body": text(item)}) for name in names])
        while True:
            now = [Counts.of(consumer) for consumer in self._consumers]
            since = [
                Counts(after.judged - earlier.judged, after.matched - earlier.matched)
                for after, earlier in zip(now, before, strict=True)
            ]
            if sum(counts.judged for counts in since) >= len(names):
                return since
            time.sleep(LOOK_S)


@pytest.mark.load
@pytest.mark.timeout(300)
def test_three_consumers_follow_a_change_over_http_within_ten_seconds(
    kafka_address: str, hbase_address: str, hbase_namespace: str, tmp_path: Path
) -> None:
    """An item is found by each of them, and no longer once it is removed."""
    topics, store = make_topics(kafka_address, PARTITIONS), f"hbase://{hbase_address}/{hbase_namespace}"
    settings = with_banks(topics)
    with BankService(topics, store, tmp_path) as service, ExitStack() as stack:
        consumers = [stack.enter_context(running(topics, store, tmp_path, *settings)) for _ in range(CONSUMERS)]
        for consumer in consumers:
            consumer.wait_ready()
        until(lambda: all(consumer.metric("dupwatch_assigned_partitions") for consumer in consumers))
        followers = Followers(topics, consumers)
        for number in range(ROUNDS):
            item = {"item": f"item-{number}", "text": text(number)}
            assert ask(service.process, "POST", "spam/items", {"items": [item]}).status == 200
            found_s = followers.seconds_until(number, named=True)
            assert service.process.ask("DELETE", f"/v1/banks/spam/items/item-{number}").status == 200
            gone_s = followers.seconds_until(number, named=False)
            _log.info("item %d: found by all after %.1f s, by none %.1f s after its removal", number, found_s, gone_s)
            assert max(found_s, gone_s) * 1000 < FOLLOWED_MS
        for consumer in consumers:
            assert consumer.stop() == 0, consumer.log.read_text()


@pytest.mark.load
@pytest.mark.timeout(900)
def test_no_kill_makes_a_verdict_name_what_its_bank_did_not_have(
    own_kafka: Callable[..., KafkaBroker], own_hbase: Callable[[str], tuple[Hbase, ThriftGateway]], tmp_path: Path
) -> None:
    """1,000 items are added and removed while consumers, the service and the broker are killed in a random order."""
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(own_kafka, BROKER_SETTINGS)
        hbase, gateway = own_hbase(NAMESPACE)
        broker = starting.result()
    topics, store = make_topics(broker.address, PARTITIONS), f"hbase://{gateway.address}/{NAMESPACE}"
    settings, items = with_banks(topics), BankItems(LOAD_SEED, SIZE)
    feed, logs = KnownFeed(LOAD_SEED, items, COPIES), tmp_path / "consumers"
    logs.mkdir()
    began_s = time.monotonic()
    with (
        BankService(topics, store, tmp_path, *SOON) as service,
        BankChanges(lambda: service.process, items, SIZE, LOAD_SEED) as changes,
        Feeding(topics, feed, RATE) as feeding,
    ):
        servers = ServersAndService(OneOfEach(broker, hbase, gateway), service)
        with Stage(servers, topics, feeding, store, logs, Manner(once=False), settings) as stage:
            plan = bank_plan(LOAD_SEED, FAULTS)
            for number, faults in enumerate(plan, 1):
                stage.play(faults)
                changes.check()
                changes.allow(1 + number * SIZE.batches // len(plan))
            changes.finish()
            # All were removed.
            assert {bank["items"] for bank in service.process.get("/v1/banks").json["banks"]} == {0}
            stage.finish(len(feed.messages))
    found = answers.read_answers(topics, feed.messages)
    counts = answers.check(found, store, once=False)
    checked = check_banks(_judged(found, items), changes.lives, servers.outages)
    assert not checked.wrong, f"{len(checked.wrong)} of {counts.verdicts} verdicts are wrong: {checked.wrong[:5]}"
    assert all(checked.claims[claim] >= CLAIMS_MIN for claim in Claim), checked.claims
    assert sum(life.removed is not None for life in changes.lives.values()) == SIZE.items
    _check_events(topics, found)
    _log.info(
        "seed %s: %d items in %.0f s, %d kills, %d messages = %d verdicts + %d dead letters, %d again, items of "
        "copies: %s, requests by their ends: %s",
        LOAD_SEED, len(changes.lives), time.monotonic() - began_s, len(stage.struck), counts.messages, counts.verdicts,
        counts.letters, counts.repeated, {str(claim): checked.claims[claim] for claim in Claim},
        dict(sorted(changes.ends.items())),
    )  # fmt: skip
    assert {strike.fault.kind for strike in stage.struck} == set(BANK_KINDS)


def _judged(found: answers.Answers, items: BankItems) -> Iterable[Judged]:
    """Yield what the verdict on each message says of banks."""
    for origin, events in found.verdicts.items():
        verdict = decode_verdict(events[0])
        yield Judged(
            verdict.id,
            since_1970_ms(parse_moment(verdict.arrived_at)),
            since_1970_ms(parse_moment(verdict.decided_at)),
            items.copied(found.messages[origin]),
            frozenset((mention.bank, mention.item) for mention in _banks(verdict)),
        )


def _banks(verdict: Verdict) -> Sequence[BankMention]:
    return verdict.banks if isinstance(verdict.banks, tuple) else ()


def _check_events(topics: Topics, found: answers.Answers) -> None:
    """A bank match was sent of each verdict that names an item, and says the same."""
    verdicts = [json.loads(events[0]) for events in found.verdicts.values()]
    expected = {_match(verdict) for verdict in verdicts if "banks" in verdict}
    assert {_match(event.content) for event in read_all(topics, topics.sink("bank-matches"))} == expected


def _match(event: Mapping[str, Any]) -> tuple[str, str, str]:
    return event["id"], event["version"], json.dumps(event["banks"])
