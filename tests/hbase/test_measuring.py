"""The measurements on HBase measure what they say, shown on a tiny store."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.hbase import judge, look_up, servers
from benchmarks.hbase.load import entries_of
from benchmarks.hbase.made_feed import MadeFeed
from benchmarks.hbase.servers import Servers, Wanted, filled
from benchmarks.speed.codes import CodeModel
from benchmarks.speed.harness import Spread
from consumer.fingerprint import BlockPlan
from consumer.judge.versions import VersionBuilder
from deploy.local.hbase import Hbase, ThriftGateway
from storage.hbase import parse_place
from storage.hbase.store import HbaseStore

pytestmark = pytest.mark.servers

MODEL = CodeModel(np.ones(1), np.full((1, 64), np.float32(0.5)))


@pytest.fixture
def running(hbase_servers: tuple[Hbase, ThriftGateway], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Servers:
    """The shared servers, and a model that need not be fitted."""
    for module in (judge, servers):
        monkeypatch.setattr(module, "model_of_texts", lambda: MODEL)
    hbase, gateway = hbase_servers
    return Servers(hbase, (gateway,))


@pytest.mark.load
def test_judging_and_look_ups_are_measured(running: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are filled once, hold the same hot and packed, and are judged against in every way."""
    wanted = [Wanted("4x16", 200, packed) for packed in (False, True)]
    urls = [filled(running, measured) for measured in wanted]
    monkeypatch.setattr(servers, "fill", lambda *_: pytest.fail("it is there already"))
    assert [filled(running, measured) for measured in wanted] == urls
    stores = {name: HbaseStore.open(parse_place(url)) for name, url in zip(("hot", "packed"), urls, strict=True)}
    rows, met, _ = look_up.measure(stores, look_up.queries_of(BlockPlan.named("4x16"), entries_of(MODEL, 200)), 100)
    assert [row["what"] for row in rows] == ["hot", "packed"]
    assert met >= 8
    for store in stores.values():
        store.close()
    judged = judge.measure(running, wanted[0], 2, judge.BATCH, (1, 2))
    assert [row["judge"] for row in judged] == [way.name for way in judge.WAYS]
    assert [row["rows read"] for row in judged] == [4 + 4 * way.lane1 for way in judge.WAYS]
    for row in judged:
        assert isinstance(row["articles/s"], Spread)
        assert min(row[name] for name in ("Python, µs", "gateway, µs", "server, µs", "cores busy")) > 0
        assert 0 < row["waiting, %"] < 100


def test_copies_that_were_not_found_are_no_measurement() -> None:
    """A round without duplicates measured something else."""
    nothing = judge.Round(1_000, 1.0, 0.1, 0.1, 0.1, 0, 4_000, 100)
    with pytest.raises(ValueError, match=r"0\.0% are duplicates"):
        judge.row("x", [nothing], 1)


def test_one_in_ten_is_a_copy_of_an_earlier_one() -> None:
    """From the second time on; three bits and a band apart, and never the same original twice."""
    feed = MadeFeed(MODEL, VersionBuilder("x", BlockPlan.named("4x16"), lane1=True))
    first, second = ([_code(version.record.fingerprint) for version in feed.take(100)] for _ in range(2))
    near = [_near(code, first) for code in second]
    assert [place for place, found in enumerate(near) if found] == list(range(0, 100, 10))
    assert len({found[0] for found in near if found}) == 10


def _code(fingerprint: bytes) -> int:
    return int.from_bytes(fingerprint)


def _near(code: int, others: Sequence[int]) -> list[int]:
    return [other for other in others if (code ^ other).bit_count() <= 3]
