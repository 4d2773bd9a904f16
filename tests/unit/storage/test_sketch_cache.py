"""What an HBase store remembers of the versions that it has read."""

import random
from concurrent.futures import ThreadPoolExecutor

from storage.hbase.sketch_cache import SketchCache
from storage.records import Stored
from tests.builders import make_record


def stored(name: str, sketch: bytes = b"") -> Stored:
    """A version with this sketch."""
    return Stored(make_record(name, sketch=sketch), None, None)


def test_it_knows_what_was_read() -> None:
    """Empty for the rest: what was never read, is not stored, or has no sketch."""
    cache = SketchCache(10)
    versions = [stored("a", b"first"), stored("b", b"second"), stored("without")]
    references = [version.record.reference for version in versions]
    assert cache.known(references) == [b"", b"", b""]
    cache.note([versions[0], None, versions[2]])
    assert cache.known([*references, references[0]]) == [b"first", b"", b"", b"first"]


def test_the_least_recently_used_goes_first() -> None:
    """Being asked for is a use, and so is being read again; there are never more than the limit."""
    cache = SketchCache(3)
    versions = {name: stored(name, name.encode()) for name in "abcdef"}

    def kept() -> str:
        return "".join(name for name in versions if versions[name].record.reference in cache._sketches)

    cache.note([versions[name] for name in "abc"])
    cache.known([versions["a"].record.reference])
    cache.note([versions["b"]])
    cache.note([versions["d"]])
    assert kept() == "abd"
    cache.note([versions["e"]])
    assert kept() == "bde"
    cache.note(list(versions.values()))
    assert kept() == "def"


def test_threads_share_it() -> None:
    """Every answer is right, whatever others note meanwhile."""
    cache = SketchCache(50)
    versions = [stored(f"article {number}", b"sketch %d" % number) for number in range(200)]

    def work(seed: int) -> bool:
        chance = random.Random(seed)
        for _ in range(300):
            some = chance.sample(versions, 20)
            cache.note(some)
            asked = chance.sample(versions, 20)
            known = cache.known([version.record.reference for version in asked])
            if any(sketch not in (b"", version.record.sketch) for sketch, version in zip(known, asked, strict=True)):
                return False
        return len(cache._sketches) <= 50

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))
