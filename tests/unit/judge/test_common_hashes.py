"""What stands in many recent articles."""

import numpy as np
import pytest

from consumer.judge import common_hashes
from consumer.judge.common_hashes import COMMON_FROM, CommonHashes, anchor_hashes, sample_hashes
from storage.records import Record
from tests.builders import make_record

RANDOM = np.random.default_rng(7)


def article(hashes: int = 180) -> Record:
    """A record with anchors and a sample of its own."""
    sample = np.unique(RANDOM.integers(0, 1 << 32, hashes, np.uint32)).astype(">u4").tobytes()
    return make_record("a", anchors=RANDOM.bytes(128), sample=sample)


def test_a_hash_is_common_from_so_many_articles_on() -> None:
    """Anchors and shingles alike; what stands in fewer is not."""
    common = CommonHashes()
    often, once = article(), article()
    for number in range(COMMON_FROM):
        assert not common.are_common(anchor_hashes([often])).any(), number
        common.note([often])
    common.note([once])
    assert common.are_common(anchor_hashes([often])).all()
    assert common.are_common(sample_hashes([often])).all()
    assert not common.are_common(anchor_hashes([once])).any()


def test_anchors_and_shingles_with_one_number_are_apart() -> None:
    """Else a shingle that is common would hide an anchor."""
    number = (1234567).to_bytes(8, "big")
    common = CommonHashes()
    common.note([make_record("a", sample=number[4:])] * COMMON_FROM)
    assert common.are_common(sample_hashes([make_record("a", sample=number[4:])])).all()
    assert not common.are_common(anchor_hashes([make_record("a", anchors=number)])).any()


def test_articles_of_their_own_are_not_taken_for_common() -> None:
    """With both sketches as full as they get: of twenty thousand hashes not one."""
    common = CommonHashes()
    for _ in range(2 * common_hashes.ARTICLES // 256):
        common.note([article(180) for _ in range(256)])
    fresh = np.concatenate([sample_hashes([article(200)]) for _ in range(100)])
    assert np.count_nonzero(common.are_common(fresh)) <= 2


def test_what_was_common_long_ago_is_forgotten() -> None:
    """After twice as many articles as a sketch counts, at most."""
    common = CommonHashes(articles=100)
    often = article()
    common.note([often] * COMMON_FROM)
    for _ in range(2):
        assert common.are_common(anchor_hashes([often])).all()
        common.note([article(10) for _ in range(90)])
    common.note([article(10) for _ in range(110)])
    assert not common.are_common(anchor_hashes([often])).any()


@pytest.mark.parametrize("records", [[], [make_record("a")]])
def test_nothing_to_count(records: list[Record]) -> None:
    """A batch of duplicates, and records from before there were parts."""
    common = CommonHashes()
    common.note(records)
    assert not common.are_common(anchor_hashes(records)).any()


def test_a_count_does_not_overflow() -> None:
    """One hash in all the articles of both sketches."""
    common = CommonHashes()
    often = make_record("a", anchors=b"12345678")
    for _ in range(2 * common_hashes.ARTICLES // 1024):
        common.note([often] * 1024)
        assert common.are_common(anchor_hashes([often])).all()
