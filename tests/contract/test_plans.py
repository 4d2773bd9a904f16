"""Every block plan on every store: the look-up of the judge finds what brute force finds, by both lanes."""

import random

import numpy as np
import pytest

from consumer.fingerprint import BlockPlan, Fingerprints, TextKind
from consumer.judge.candidates import Probe, find_candidates, probe_keys
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from storage.interface import Store
from storage.records import Record
from tests.builders import TIME_MS
from tests.contract.conftest import MEMORY, Kind

PLANS = {"4x16": 64, "16x28": 64, "8x16": 128, "4x32": 128}


def records_of(plan: BlockPlan, codes: list[int], one_bits: list[int], bands: list[list[int]]) -> list[Record]:
    """Return records as the pipeline makes them, of texts with these fingerprints, one-bit minima and bands."""
    count = len(codes)
    fingerprints = Fingerprints(
        codes=np.array(
            [[code >> shift & 2**64 - 1 for shift in range(plan.bits - 64, -1, -64)] for code in codes], "u8"
        ),
        sketches=np.zeros((count, 256), np.uint8),
        one_bits=np.array(one_bits, np.uint64),
        bands=np.array(bands, np.uint64).reshape(count, -1),
        keywords=((),) * count,
        kinds=np.full(count, TextKind.LONG, np.uint8),
        text_digests=np.zeros((count, 16), np.uint8),
        keyword_counts=np.zeros(count, np.int64),
    )
    articles = [Article(id=f"article {number}", body="") for number in range(count)]
    arrivals = [ArrivalTime(TIME_MS, number) for number in range(count)]
    versions = VersionBuilder("test/1", plan, lane1=True).versions(articles, arrivals, fingerprints)
    return [version.record for version in versions]


def found(store: Store, records: list[Record], settings: JudgeSettings) -> list[set[int]]:
    """Return for each record the numbers of its candidates."""
    probes = [Probe(record, probe_keys(record, settings)) for record in records]
    keys = sorted({key for probe in probes for key in probe.keys})
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    number = {record.reference: record.sequence for record in records}
    candidates = find_candidates(probes, rows, settings)
    assert not any(each.truncated for each in candidates)
    return [{number[reference] for reference in each.references} for each in candidates]


def clusters(plan: BlockPlan, chance: random.Random) -> list[int]:
    """Return fingerprints around a few; differing bits are spread evenly, at random, or outside of one block."""
    codes = []
    for bits in range(plan.exact_to[1] + 2):
        even = plan.bits // max(bits, 1)
        for places in (
            [piece * even + chance.randrange(even) for piece in range(bits)],
            chance.sample(range(plan.bits), bits),
            chance.sample(range(plan.bits - plan.block_bits), bits),
        ):
            base = chance.getrandbits(plan.bits)
            codes += [base, base ^ sum(1 << place for place in places)]
            codes += [base ^ 1 << chance.randrange(plan.bits) for _ in range(3)]
    return codes


@pytest.mark.parametrize("name", PLANS)
def test_each_plan_finds_what_brute_force_finds(kind: Kind, store: Store, name: str) -> None:
    """At every distance that the plan is exact for, all within it are found and no others.

    In memory at all of them, elsewhere at the last for each radius: which rows are read depends on that alone.
    """
    plan = BlockPlan.named(name, PLANS[name])
    codes = clusters(plan, random.Random(name))
    records = records_of(plan, codes, [0] * len(codes), [[]] * len(codes))
    store.add(records)
    some = 0
    for distance in range(plan.exact_to[1] + 1) if kind is MEMORY else plan.exact_to:
        settings = JudgeSettings(plan, "", max_distance=distance, verify=False, lane1=False)
        expected = [
            {n for n, other in enumerate(codes) if n != own and (code ^ other).bit_count() <= distance}
            for own, code in enumerate(codes)
        ]
        assert found(store, records, settings) == expected
        some += sum(map(len, expected))
    assert some > 100


@pytest.mark.parametrize("name", PLANS)
def test_each_plan_finds_by_bands(store: Store, name: str) -> None:
    """Versions that share the top of a band and have near one-bit minima are found, at any width."""
    plan = BlockPlan.named(name, PLANS[name])
    chance = random.Random(name)
    top, minima = chance.getrandbits(64), chance.getrandbits(64)
    low = 1 << 63 - plan.key_bits
    bands = [[band, chance.getrandbits(64)] for band in (top, top ^ low, top ^ low << 1)] + [[~top & 2**64 - 1, top]]
    flips = [0, 2 ** JudgeSettings(plan, "").one_bits_distance_max - 1, 0, 0]
    for beyond in (0, 1 << 60):
        one_bits = [minima ^ mask for mask in [*flips[:1], flips[1] | beyond, *flips[2:]]]
        codes = [chance.getrandbits(plan.bits) for _ in bands]
        records = records_of(plan, codes, one_bits, bands)
        store.add(records)
        expected: list[set[int]] = [set(), set(), set(), set()] if beyond else [{1}, {0}, set(), set()]
        assert found(store, records, JudgeSettings(plan, "", max_distance=0)) == expected
        store.remove(records)
