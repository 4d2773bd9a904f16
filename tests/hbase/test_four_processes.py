"""Four processes, each with half of a feed, so that each article comes to two; servers are killed in the middle."""

import logging
import os
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import pytest

from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.server import Server
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.store import HbaseStore
from storage.postings import PostingRow
from storage.records import Record, Version
from tests.chaos.judging import count_of_answered, dealt, judge_together
from tests.chaos.near_articles import near_chain, near_group, shuffled
from tests.chaos.test_two_processes import check, is_kept, lost
from tests.hbase.kills import Kill, with_kills

pytestmark = pytest.mark.servers

PROCESSES = 4
DEADLINE_S = 120.0
"""Longer than a server is down, so that the run goes on by itself."""
LATE_MAX_S = 0.02
"""Longer than a question to HBase takes, so that a process may ask several while another one waits."""
NAMESPACE = "four"
GROUP_MAX = 6
CHAIN_SIZES = (3, 4, 5)
SHORT_SEED: Final = "overlapping halves"
LOAD_SEED: Final = os.environ.get("TEST_LOAD_SEED") or secrets.token_hex(4)
"""Another one for each long run, which prints it; given again it is the same feed, and the same moments for kills."""

_log = logging.getLogger(__name__)

Group = list[Version]
Servers = tuple[Hbase, ThriftGateway]


class Size(NamedTuple):
    """How long a run is, how many groups of a feed are judged at once, and how often each server is killed."""

    articles: int
    groups_a_step: int
    kills: int


SHORT = Size(articles=800, groups_a_step=8, kills=1)
FULL = Size(articles=20_000, groups_a_step=16, kills=4)
SIZES = [
    pytest.param(SHORT, id="short"),
    pytest.param(FULL, id="full", marks=[pytest.mark.load, pytest.mark.timeout(600)]),
]


def groups_of(articles: int, seed: str) -> list[Group]:
    """Groups that are all near each other, chains that are not, and single articles, in the order of a feed."""
    chance = random.Random(seed)

    def made() -> Iterator[Group]:
        first = 0
        while first < articles:
            name = f"group {first}"
            if chance.random() < 0.3:  # the share of chains
                group = near_chain(chance, name, chance.choice(CHAIN_SIZES), first)
            else:
                group = near_group(chance, name, chance.randint(1, GROUP_MAX), first)
            first += len(group)
            yield shuffled(group, chance)

    return list(made())


def halves(groups: list[Group], groups_a_step: int) -> list[list[list[Version]]]:
    """The feed cut into quarters, members of a group in different ones: A and B, B and C, C and D, D and A."""
    quarters = dealt(groups, PROCESSES, groups_a_step)
    following = quarters[1:] + quarters[:1]
    return [[a + b for a, b in zip(*both, strict=True)] for both in zip(quarters, following, strict=True)]


class Straggling(HbaseStore):
    """A store at which processes are late by chance, before they post and before they settle: so they overtake."""

    def add(self, records: Sequence[Record]) -> None:
        """Wait, and add."""
        time.sleep(random.uniform(0, LATE_MAX_S))
        super().add(records)

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Look up, and wait."""
        rows = super().look_up(keys, bytes_max)
        time.sleep(random.uniform(0, LATE_MAX_S))
        return rows


def open_patient(url: str) -> HbaseStore:
    """The store that all processes share, whose calls outlast a server that is restarted."""
    return HbaseStore.open(parse_place(url), HbaseOptions(deadline_s=DEADLINE_S))


def open_straggling(url: str) -> HbaseStore:
    """The same for a process that is to judge."""
    return Straggling.open(parse_place(url), HbaseOptions(deadline_s=DEADLINE_S))


def url_of(address: str, namespace: str) -> str:
    """The name of the store behind a gateway."""
    return f"hbase://{address}/{namespace}"


def judge_halves(url: str, size: Size, servers: Sequence[Server]) -> None:
    """Judge a feed by four processes, kill these servers meanwhile, and check all that is promised of the store."""
    seed = SHORT_SEED if size == SHORT else LOAD_SEED
    groups = groups_of(size.articles, seed)
    shares = halves(groups, size.groups_a_step)
    batches = PROCESSES * len(shares[0])
    _log.info("seed %s: %d articles in %d groups, %d batches", seed, sum(map(len, groups)), len(groups), batches)
    answered = count_of_answered()
    began_s = time.monotonic()
    work = partial(judge_together, partial(open_straggling, url), shares, answered)
    judged, kills = with_kills(work, servers, answered, batches, seed)
    took_s = time.monotonic() - began_s
    verdicts = check(partial(open_patient, url), groups, judged)
    kept = sum(map(is_kept, verdicts.values()))
    _log.info("judged in %.1f s: %d kept, %d lost compare-and-sets", took_s, kept, lost(judged))
    for kill in kills:
        _log.info("%s killed after %d batches, back after %.1f s", kill.name, kill.answered_before, kill.down_s)
    assert answered.value == batches
    assert all(len(result.answers) > size.articles * 2 // 5 for result in judged)
    assert len(groups) <= kept < size.articles // 2
    assert lost(judged) > 0
    check_kills(kills, batches)


def check_kills(kills: Sequence[Kill], batches: int) -> None:
    """Each came while judging was under way: nothing went on without the server, and more than that did after it."""
    moments = [PROCESSES, *(kill.answered_before for kill in kills), batches]
    assert all(later - earlier > PROCESSES for earlier, later in pairwise(moments))
    assert all(kill.answered_meanwhile <= PROCESSES for kill in kills)


@pytest.mark.parametrize("size", SIZES)
def test_of_overlapping_halves_what_must_be_is_kept(hbase_address: str, hbase_namespace: str, size: Size) -> None:
    """Each article comes to two processes, its like to others: never both kept, never none, no verdict changes."""
    judge_halves(url_of(hbase_address, hbase_namespace), size, [])


@pytest.mark.load
@pytest.mark.parametrize("size", SIZES)
def test_servers_that_are_killed_change_no_promise(own_hbase: Callable[[str], Servers], size: Size) -> None:
    """Gateway and HBase are killed with -9 and restarted in turn: the run resumes by itself, and nothing is lost."""
    hbase, gateway = own_hbase(NAMESPACE)
    judge_halves(url_of(gateway.address, NAMESPACE), size, [gateway, hbase] * size.kills)
