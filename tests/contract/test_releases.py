"""Releases: a cell besides the verdict, written by compare-and-set from absent."""

from concurrent.futures import ThreadPoolExecutor

from storage.interface import Store
from storage.records import Release, StoredVersion, id_hash
from tests.builders import make_record, make_version

VERSION = make_version()
RECORD = VERSION.record
REFERENCE = RECORD.reference
ORIGINAL = make_record("original").reference
OTHER = make_record("other").reference


def flagged(store: Store) -> None:
    """Store a version with a verdict."""
    store.create([VERSION])
    store.settle([(REFERENCE, b"duplicate")])


def test_a_release_is_read_as_the_verdict_wherever_a_version_is_read(store: Store) -> None:
    """Reads by reference and id, a second delivery and a scan return the release, with the former original."""
    flagged(store)
    assert store.release([Release(REFERENCE, b"released", ORIGINAL)]) == [b"released"]
    released = StoredVersion(RECORD, b"released", None, ORIGINAL)
    assert store.read([REFERENCE]) == store.create([VERSION]) == [released]
    assert store.history(id_hash("a")) == list(store.scan()) == [released]
    assert store.stats()[:2] == (1, 1)


def test_the_first_release_stands(store: Store) -> None:
    """A different release, and the same again, change nothing and return the stored event."""
    flagged(store)
    first = Release(REFERENCE, b"first", ORIGINAL)
    answers = [store.release([release]) for release in (first, Release(REFERENCE, b"second", OTHER), first)]
    assert answers == [[b"first"]] * 3
    assert store.read([REFERENCE]) == [StoredVersion(RECORD, b"first", None, ORIGINAL)]


def test_what_has_no_verdict_is_not_released(store: Store) -> None:
    """A pending or missing version is not released, and a later verdict is not undone."""
    store.create([VERSION])
    missing = make_version("missing")
    releases = [Release(reference, b"released", ORIGINAL) for reference in (REFERENCE, missing.record.reference)]
    assert store.release(releases) == [None, None]
    store.create([missing])
    verdicts = [(REFERENCE, b"a"), (missing.record.reference, b"m")]
    assert store.settle(verdicts) == [True, True]
    found = store.read([reference for reference, _ in verdicts])
    assert [stored and (stored.verdict, stored.released_from) for stored in found] == [(b"a", None), (b"m", None)]


def test_a_flag_that_is_settled_again_after_its_release_is_refused(store: Store) -> None:
    """A judge that retries after a lost reply must learn that its flag no longer counts."""
    flagged(store)
    store.release([Release(REFERENCE, b"released", ORIGINAL)])
    assert [store.settle([(REFERENCE, event)]) for event in (b"duplicate", b"kept", b"released")] == [
        [False],
        [False],
        [True],
    ]
    assert store.read([REFERENCE]) == [StoredVersion(RECORD, b"released", None, ORIGINAL)]


def test_the_items_of_a_call_are_independent(store: Store) -> None:
    """Each has its own result, in order; one that cannot be released does not affect the others."""
    versions = [make_version(article_id) for article_id in "abc"]
    a, b, c = (version.record.reference for version in versions)
    store.create(versions)
    store.settle([(a, b"a"), (c, b"c")])
    store.release([Release(c, b"before", ORIGINAL)])
    releases = [Release(reference, b"now", OTHER) for reference in (c, b, OTHER, a)]
    assert store.release(releases) == [b"before", None, None, b"now"]
    found = store.read([a, b, c])
    assert [stored and stored.released_from for stored in found] == [OTHER, None, ORIGINAL]


def test_a_release_changes_no_other_version_of_the_id(store: Store) -> None:
    """And not when a version ends."""
    later = make_version("a", b"later", sequence=1)
    store.create([VERSION, later])
    store.settle([(REFERENCE, b"duplicate"), (later.record.reference, b"duplicate")])
    store.release([Release(REFERENCE, b"released", ORIGINAL)])
    assert store.history(id_hash("a")) == [
        StoredVersion(RECORD, b"released", later.record.arrival, ORIGINAL),
        StoredVersion(later.record, b"duplicate", None),
    ]


def test_of_threads_that_release_at_once_exactly_one_wins(store: Store) -> None:
    """Eight threads release twenty versions, each from a different one: all get the result of the first."""
    versions = [make_version(f"a{number}") for number in range(20)]
    references = [version.record.reference for version in versions]
    store.create(versions)
    store.settle([(reference, b"duplicate") for reference in references])

    def release(name: bytes) -> list[bytes | None]:
        return [store.release([Release(reference, name, name * 32)])[0] for reference in references]

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(release, [b"%d" % number for number in range(8)]))
    for column, stored in zip(zip(*answers, strict=True), store.read(references), strict=True):
        assert stored is not None
        assert stored.verdict is not None
        assert set(column) == {stored.verdict}
        assert stored.released_from == stored.verdict * 32
