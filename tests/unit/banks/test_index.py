"""What the index of items finds, against a comparison of everything with everything."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pytest

from consumer.banks.index import BANDS, SKETCH_BYTES, ItemIndex, TextFeatures, shingle_rows
from consumer.banks.rows import ROW_ITEMS_MAX, KeyFilter, KeyIndex
from consumer.fingerprint import TextKind, densified_sketches, marked_sketch_similarity

_BINS = 3 * BANDS
_KINDS = (TextKind.LONG, TextKind.SHINGLED, TextKind.SHORT, TextKind.EMPTY)


def drawn(count: int, random: np.random.Generator, values: int) -> TextFeatures:
    """Return texts whose minima have few values, so that many bands are shared."""
    return TextFeatures(
        random.choice(np.array(_KINDS, np.uint8), count, p=[0.5, 0.3, 0.15, 0.05]),
        random.integers(0, values, (count, SKETCH_BYTES), np.uint8),
        random.integers(0, 5, (count, 2), np.uint64),
    )


def bands(texts: TextFeatures) -> list[set[tuple[int, ...]]]:
    """Return the bands of each text that is compared by its sketch."""
    minima = densified_sketches(texts.sketches, _BINS).reshape(len(texts), BANDS, 3).tolist()
    return [
        {(number, *band) for number, band in enumerate(rows)} if kind in {TextKind.LONG, TextKind.SHINGLED} else set()
        for rows, kind in zip(minima, texts.kinds.tolist(), strict=True)
    ]


def pairs_of(articles: npt.NDArray[np.intp], items: npt.NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return pairs in order; none may be there twice."""
    found = list(zip(articles.tolist(), items.tolist(), strict=True))
    assert len(set(found)) == len(found)
    return sorted(found)


def indexed(items: TextFeatures, shingles: Iterable[bytes] | None = None) -> ItemIndex:
    """Return an index of items, without shingles unless they are given."""
    rows = shingle_rows([b""] * len(items) if shingles is None else list(shingles))
    return ItemIndex(items, rows, marked_sketch_similarity).prepare()


@pytest.mark.parametrize(("items", "values"), [(0, 4), (1, 2), (40, 5), (300, 12), (3_000, 60)])
def test_pairs_share_a_band_and_all_that_do_are_found(items: int, values: int) -> None:
    """Whatever the filter of keys rules out."""
    random = np.random.default_rng(items)
    known, articles = drawn(items, random, values), drawn(60, random, values)
    # Some articles have a band of an item and nothing else.
    if items:
        articles.sketches[:10, 6:9] = known.sketches[:1, 6:9]
    pairs, similarities = indexed(known).similar(articles)
    of_items = bands(known)
    expected = [(a, i) for a, own in enumerate(bands(articles)) for i, other in enumerate(of_items) if own & other]
    assert pairs_of(pairs.articles, pairs.items) == expected
    assert similarities.tolist() == [
        float(marked_sketch_similarity(articles.sketches[a], known.sketches[i]))
        for a, i in zip(pairs.articles.tolist(), pairs.items.tolist(), strict=True)
    ]
    assert items < 40 or expected


def test_equal_texts_are_found() -> None:
    """By both halves of the digest; an empty text equals nothing."""
    random = np.random.default_rng(1)
    known, articles = drawn(50, random, 9), drawn(40, random, 9)
    found = indexed(known).equal(articles)
    assert pairs_of(found.articles, found.items) == [
        (a, i)
        for a in range(40)
        for i in range(50)
        if articles.kinds[a] != TextKind.EMPTY and (articles.text_digests[a] == known.text_digests[i]).all()
    ]


def test_a_band_of_too_many_items_is_cut_by_the_order_of_items() -> None:
    """In every process the same ones, and the articles are counted."""
    count = ROW_ITEMS_MAX + 5
    random = np.random.default_rng(2)
    known = drawn(count, random, 200)
    known.kinds[:] = TextKind.LONG
    known.sketches[:] = np.maximum(known.sketches, 1)
    known.sketches[:, :3] = 7
    articles = TextFeatures(known.kinds[:1], 255 - known.sketches[:1] // 2, known.text_digests[:1])
    articles.sketches[:, :3] = 7
    pairs, _ = indexed(known).similar(articles)
    assert pairs.items.tolist() == list(range(ROW_ITEMS_MAX))
    assert pairs.limited.tolist() == [0]


def packed(hashes: Iterable[int]) -> bytes:
    """Return distinct hashes as an engine packs them."""
    return b"".join(number.to_bytes(8, "big") for number in sorted({*hashes}))


@pytest.mark.parametrize("share_min", [0.1, 0.75, 0.8, 1.0])
@pytest.mark.parametrize(("vocabulary", "kept"), [(40, 6), (40, 24), (400, 24), (20_000, 24), (20_000, 1)])
def test_items_that_stand_in_articles_are_found(vocabulary: int, kept: int, share_min: float) -> None:
    """Whether their shingles are in many other items or in few; with the share of each."""
    random = np.random.default_rng([vocabulary, kept])
    # Some shingles are common, and some items have few.
    drawn_hashes = [{*(random.zipf(1.4, 3 * kept) % vocabulary).tolist()} for _ in range(300)]
    items = [{*sorted(hashes)[: random.integers(0 if kept < 24 else 20, kept + 1)]} for hashes in drawn_hashes]
    articles = [
        {*random.permutation(sorted(items[place]))[: random.integers(kept + 1)].tolist()}
        | {*random.integers(0, vocabulary, random.integers(30)).tolist()}
        for place in range(60)
    ]
    known = indexed(drawn(len(items), random, 9), map(packed, items))
    pairs, shares = known.parts([packed(article) for article in articles], share_min)
    expected = {
        (a, i): len(own & other) / len(other)
        for a, own in enumerate(articles)
        for i, other in enumerate(items)
        if other and len(own & other) / len(other) >= share_min
    }
    assert expected
    found = dict(zip(pairs_of(pairs.articles, pairs.items), shares.tolist(), strict=True))
    assert {pair: share for pair, share in found.items() if share >= share_min} == expected
    assert all(share == len(articles[a] & items[i]) / len(items[i]) for (a, i), share in found.items())


def test_common_shingles_alone_bring_no_item() -> None:
    """An article is compared with the items that have several of its rarest shingles, not with all that have any."""
    common = range(1, 23)
    items = [packed((*common, 100 + 2 * place, 101 + 2 * place)) for place in range(500)]
    known = indexed(drawn(len(items), np.random.default_rng(4), 9), items)
    pairs, shares = known.parts([packed((*common, 9_000, 9_001)), packed((*common, 106, 107))], 0.95)
    assert (pairs.articles.tolist(), pairs.items.tolist(), shares.tolist()) == ([1], [3], [1.0])


def test_a_shingle_of_too_many_items_is_cut_by_the_order_of_items() -> None:
    """As a band is."""
    count = ROW_ITEMS_MAX + 5
    known = indexed(drawn(count, np.random.default_rng(2), 200), [packed((1, 2))] * count)
    pairs, shares = known.parts([packed((1, 2, 3)), packed((3, 4))], 0.5)
    assert pairs.items.tolist() == list(range(ROW_ITEMS_MAX))
    assert set(shares.tolist()) == {1.0}
    assert pairs.limited.tolist() == [0]


@pytest.mark.parametrize("count", [0, 1, 7, 1_000, 40_000])
def test_the_filter_passes_all_keys_and_few_others(count: int) -> None:
    """It takes at most a byte for each key."""
    random = np.random.default_rng(count)
    keys = random.integers(0, 1 << 24, count, np.uint32) | random.integers(0, BANDS, count, np.uint32) << 24
    kept = KeyFilter.of(keys)
    assert len(kept.bits) <= max(count, 1)
    assert kept.passing(keys).tolist() == list(range(count))
    others = random.integers(0, 1 << 24, 10_000, np.uint32) | np.uint32(BANDS << 24)
    assert len(kept.passing(others)) <= (3_000 if count > 1 else 2_000)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 63, 64, 65, 1_000])
def test_rows_find_all_items_of_a_key(count: int, kind: type[np.unsignedinteger]) -> None:
    """Of one that is smaller or larger than all, that many items have, and that none has."""
    random = np.random.default_rng(count)
    for values in (2, 40, 2_000):
        keys = random.integers(1, values, count).astype(kind)
        rows = KeyIndex.of(keys, np.arange(count, dtype=np.uint32))
        asked = np.array([0, *random.permutation(values + 2), np.iinfo(kind).max], kind)
        pairs = rows.pairs(asked, np.arange(len(asked)))
        expected = [(a, i) for a, key in enumerate(asked.tolist()) for i, own in enumerate(keys.tolist()) if key == own]
        assert pairs_of(pairs.articles, pairs.items) == expected
        assert pairs.limited.tolist() == []


def test_rows_are_in_the_order_of_keys_and_items() -> None:
    """As a stable sort leaves them."""
    random = np.random.default_rng(3)
    known = drawn(500, random, 4)
    index = indexed(known)
    compared = [place for place, kind in enumerate(known.kinds.tolist()) if kind in _KINDS[:2]]
    minima = densified_sketches(known.sketches[compared], _BINS).reshape(-1, BANDS, 3).astype(np.uint32)
    keys = minima[..., 0] << 16 | minima[..., 1] << 8 | minima[..., 2] | np.arange(BANDS, dtype=np.uint32) << 24
    expected = KeyIndex.of(keys.reshape(-1).astype(np.uint32), np.repeat(np.array(compared, np.uint32), BANDS))
    assert (index._by_band.keys == expected.keys).all()
    assert (index._by_band.items == expected.items).all()
