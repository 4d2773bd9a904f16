"""Processes that judge into one HBase: never both kept, never none, whatever happens to the gateway meanwhile."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from deploy.local.hbase import ThriftGateway
from storage.hbase import parse_place
from storage.hbase.store import HbaseStore
from storage.postings import PostingRow
from storage.records import Version
from tests.chaos.judging import OVERLAP_S, dealt, judge_together
from tests.chaos.near_articles import near_group
from tests.chaos.test_two_processes import check, is_kept, lost

pytestmark = pytest.mark.servers

PAIRS = 400
PAIRS_A_STEP = 8


class GivingWay(HbaseStore):
    """A store in which a process that has looked up lets the others look up before it settles."""

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Look up, and give way."""
        rows = super().look_up(keys, bytes_max)
        time.sleep(OVERLAP_S)
        return rows


def open_hbase(url: str) -> HbaseStore:
    """The store that all processes share."""
    return GivingWay.open(parse_place(url))


def pairs_of(seed: str) -> list[Sequence[Version]]:
    """Pairs of near articles, one half of each for each process."""
    chance = random.Random(seed)
    return [near_group(chance, f"pair {number}", 2, 2 * number) for number in range(PAIRS)]


def test_of_each_pair_that_comes_to_two_processes_at_once_one_is_kept(hbase_address: str, hbase_namespace: str) -> None:
    """In step, so that compare-and-sets are lost; every verdict is what is stored, and repeats."""
    pairs = pairs_of("hbase pairs")
    opens = partial(open_hbase, f"hbase://{hbase_address}/{hbase_namespace}")
    judged = judge_together(opens, dealt(pairs, 2, PAIRS_A_STEP))
    verdicts = check(opens, pairs, judged)
    assert sum(map(is_kept, verdicts.values())) == PAIRS
    assert lost(judged) > 0


@pytest.mark.load
def test_a_gateway_that_is_killed_while_two_processes_judge_changes_no_promise(
    hbase_address: str, hbase_namespace: str, new_gateway: Callable[..., ThriftGateway]
) -> None:
    """It is killed and restarted twice in the middle; both processes go on by themselves."""
    pairs = pairs_of("killed gateway")
    gateway = new_gateway()
    kills = []

    def kill() -> None:
        for _ in range(2):
            time.sleep(2)
            gateway.kill9()
            kills.append(time.monotonic())
            time.sleep(0.5)
            gateway.start()

    killer = threading.Thread(target=kill)
    killer.start()
    judged = judge_together(
        partial(open_hbase, f"hbase://{gateway.address}/{hbase_namespace}"), dealt(pairs, 2, PAIRS_A_STEP)
    )
    ended_s = time.monotonic()
    killer.join()
    verdicts = check(partial(open_hbase, f"hbase://{hbase_address}/{hbase_namespace}"), pairs, judged)
    assert sum(map(is_kept, verdicts.values())) == PAIRS
    assert min(kills) < ended_s
