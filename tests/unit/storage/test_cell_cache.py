"""What an HBase store remembers of what it has read."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

from storage.hbase.cells import CellCache


def test_it_knows_what_was_seen() -> None:
    """Empty for the rest, and as often as it is asked; what was taken is unknown."""
    cache = CellCache(10)
    assert cache.read([b"a", b"b"]) == [b"", b""]
    cache.remember(b"a", b"first")
    assert cache.read([b"a", b"b", b"a"]) == [b"first", b"", b"first"]
    assert cache.take(b"a") == b"first"
    assert cache.read([b"a"]) == [b""]


def test_the_least_recently_used_goes_first() -> None:
    """Being asked for is a use, and so is being seen again; there are never more than the limit."""
    cache = CellCache(3)
    names = [b"a", b"b", b"c", b"d", b"e", b"f"]

    def kept() -> bytes:
        return b"".join(name for name in names if name in cache._cells)

    for name in b"a", b"b", b"c":
        cache.remember(name, name)
    cache.read([b"a"])
    cache.remember(b"b", b"b")
    cache.remember(b"d", b"d")
    assert kept() == b"abd"
    cache.remember(b"e", b"e")
    assert kept() == b"bde"
    for name in names:
        cache.remember(name, name)
    assert kept() == b"def"


def test_threads_share_it() -> None:
    """Every answer is right, whatever others note meanwhile."""
    cache = CellCache(50)
    values = {b"reference %d" % number: b"sketch %d" % number for number in range(200)}

    def work(seed: int) -> bool:
        chance = random.Random(seed)
        for _ in repeat(None, 300):
            for reference in chance.sample(list(values), 20):
                cache.remember(reference, values[reference])
            asked = chance.sample(list(values), 20)
            known = cache.read(asked)
            if any(value not in (b"", values[reference]) for value, reference in zip(known, asked, strict=True)):
                return False
        return len(cache._cells) <= 50

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))
