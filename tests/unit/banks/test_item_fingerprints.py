"""Fingerprints of items: chosen, joined, and found again by the digests of entries."""

import numpy as np
import pytest

from consumer.banks.bank import BankItem
from consumer.banks.index import SKETCH_BYTES, TextFeatures
from consumer.banks.item_fingerprints import NO_FINGERPRINTS, ItemFingerprints, digests_of, entry_digest
from consumer.banks.rows import KeyIndex


def drawn(count: int, seed: int) -> ItemFingerprints:
    """Return random fingerprints; every third item has facts."""
    random = np.random.default_rng(seed)
    texts = TextFeatures(
        random.integers(0, 4, count, np.uint8),
        random.integers(0, 256, (count, SKETCH_BYTES), np.uint8),
        random.integers(0, 1 << 63, (count, 2), np.uint64),
    )
    shingles = KeyIndex.of(
        random.integers(0, 50, 3 * count, np.uint64), random.integers(0, count, 3 * count, np.uint32)
    )
    facts = {place: bytes([seed, place]) for place in range(0, count, 3)}
    return ItemFingerprints(random.integers(0, 1 << 63, (count, 2), np.uint64), texts, shingles, facts)


def by_digest(fingerprints: ItemFingerprints) -> dict[bytes, tuple[object, ...]]:
    """Return all that is said of each item."""
    return {
        fingerprints.digests[place].tobytes(): (
            int(fingerprints.texts.kinds[place]),
            fingerprints.texts.sketches[place].tobytes(),
            fingerprints.texts.text_digests[place].tobytes(),
            sorted(fingerprints.shingles.keys[fingerprints.shingles.items == place].tolist()),
            fingerprints.facts.get(place),
        )
        for place in range(len(fingerprints))
    }


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_chosen_and_joined_items_keep_what_is_theirs(share: float) -> None:
    """Whatever their new places."""
    first, second = drawn(40, 1), drawn(30, 2)
    chosen = np.random.default_rng(3).random(40) < share
    left = first.select(chosen)
    kept = {first.digests[place].tobytes() for place in np.flatnonzero(chosen)}
    of_first = {digest: said for digest, said in by_digest(first).items() if digest in kept}
    assert by_digest(left) == of_first
    assert by_digest(ItemFingerprints.concatenate([left, second])) == of_first | by_digest(second)


def test_items_are_found_in_any_order() -> None:
    """Each with the place of its digest; the others are missing, also one that shares half of a digest."""
    held, others = drawn(50, 4), drawn(20, 5)
    half = held.digests[:1] ^ np.array([[0, 1]], np.uint64)
    wanted = np.concatenate((others.digests, held.digests[::-2], half))
    found = held.look_up(wanted)
    assert (found.fingerprints.digests == wanted[found.positions]).all()
    assert sorted(found.positions.tolist()) == list(range(20, 45))
    assert found.missing.tolist() == [*range(20), 45]
    all_of_them = by_digest(held)
    for digest, said in by_digest(found.fingerprints).items():
        assert all_of_them[digest] == said


def test_nothing_is_found_in_nothing() -> None:
    """Then all digests are missing."""
    found = NO_FINGERPRINTS.look_up(drawn(3, 6).digests)
    assert (len(found.fingerprints), found.missing.tolist()) == (0, [0, 1, 2])


def test_the_digest_is_that_of_the_entry_and_of_the_action() -> None:
    """Any change of either is another digest, in every process the same."""
    item = BankItem(bank="spam", item="offer", text="Win a ferry ticket")
    digests = {
        entry_digest(item, "deny"),
        entry_digest(item, "allow"),
        entry_digest(item, None),
        entry_digest(BankItem(bank="spam", item="offer", text="Win a ferry ticket", lang="en"), "deny"),
        entry_digest(BankItem(bank="spam", item="other", text="Win a ferry ticket"), "deny"),
        entry_digest(BankItem(bank="spam", item="offer", text="Win a ferry tickets"), "deny"),
    }
    assert len(digests) == 6
    assert entry_digest(item, "deny").hex() == "2531c2fc9e5f70bdede11a744b962d52"
    assert digests_of(digests).shape == (6, 2)
