"""With lane 1, every version that shares a band and has near one-bit minima becomes a candidate."""

import random
from dataclasses import replace

from consumer.judge.candidates import Probe, find_candidates, probe_keys
from storage.interface import Store
from storage.records import Version
from tests.chaos.near_articles import SETTINGS, Text, are_near, flips, new_text, version_of
from tests.retrieval.populations import fill


def banded_texts(chance: random.Random) -> list[Text]:
    """Return texts of a few families: in each some share a band, and the one-bit minima differ in up to 24 bits."""
    texts = []
    for _ in range(8):
        base = new_text(chance)
        for bits in range(25):
            bands = tuple(band if chance.random() < 0.3 else chance.getrandbits(16) for band in base.bands)
            one_bits = base.one_bits ^ flips(chance, bits)
            distance = chance.choice([chance.randrange(16), 32])
            fingerprint = base.fingerprint ^ flips(chance, distance)
            texts.append(replace(base, bands=bands, one_bits=one_bits, fingerprint=fingerprint))
    return texts


def is_candidate(a: Text, b: Text) -> tuple[bool, bool]:
    """Return by brute force whether lane 0 and lane 1 find a pair."""
    distance = (a.fingerprint ^ b.fingerprint).bit_count()
    shares_block = any((a.fingerprint ^ b.fingerprint) >> 16 * n & 0xFFFF == 0 for n in range(4))
    shares_band = any(x == y for x, y in zip(a.bands, b.bands, strict=True))
    near_by_minima = (a.one_bits ^ b.one_bits).bit_count() <= SETTINGS.one_bits_distance_max
    return shares_block and distance <= SETTINGS.reach, shares_band and near_by_minima


def candidates_of(store: Store, versions: list[Version]) -> list[set[int]]:
    """Return the candidates of each version, by number in the feed."""
    probes = [Probe(version.record, probe_keys(version.record, SETTINGS)) for version in versions]
    keys = sorted({key for probe in probes for key in probe.keys})
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    found = find_candidates(probes, rows, SETTINGS)
    number = {version.record.reference: version.record.sequence for version in versions}
    return [{number[reference] for reference in candidates.references} for candidates in found]


def test_every_record_of_a_band_within_16_one_bits_is_a_candidate(store: Store) -> None:
    """The candidates are those that brute force finds by either lane; each lane finds some that the other does not."""
    texts = banded_texts(random.Random("bands"))
    versions = [version_of(f"article {number}", text, number) for number, text in enumerate(texts)]
    fill(store, versions)
    by_lane = [[is_candidate(a, b) for b in texts] for a in texts]
    expected = [
        {number for number, lanes in enumerate(row) if any(lanes) and number != own} for own, row in enumerate(by_lane)
    ]
    assert candidates_of(store, versions) == expected
    assert sum(lane0 and not lane1 for row in by_lane for lane0, lane1 in row) > 50
    assert sum(lane1 and not lane0 for row in by_lane for lane0, lane1 in row) > 50


def test_a_pair_is_near_only_if_a_look_up_finds_it(store: Store) -> None:
    """A pair that the look-up does not find is not near, even with equal sketches; otherwise both could be kept."""
    texts = banded_texts(random.Random("near"))[:75]
    versions = [version_of(f"article {number}", text, number) for number, text in enumerate(texts)]
    fill(store, versions)
    found = candidates_of(store, versions)
    for number, version in enumerate(versions):
        near = {other.record.sequence for other in versions if are_near(version, other)}
        assert near == found[number]
