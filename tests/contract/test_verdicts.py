"""The verdict cell: compare-and-set from absent."""

from concurrent.futures import ThreadPoolExecutor

from storage.interface import Store
from tests.builders import make_key, make_record, make_version


def test_the_first_verdict_stands(store: Store) -> None:
    """Another verdict is refused, and the stored one is unchanged."""
    reference = make_record().reference
    store.create([make_version()])
    assert store.settle([(reference, b"kept")]) == [True]
    assert store.settle([(reference, b"duplicate")]) == [False]
    (stored,) = store.read([reference])
    assert stored is not None
    assert stored.verdict == b"kept"


def test_the_same_verdict_again_is_success(store: Store) -> None:
    """A repeated call with the same verdict succeeds; a longer or shorter one is a different verdict."""
    reference = make_record().reference
    store.create([make_version()])
    assert [store.settle([(reference, verdict)]) for verdict in (b"kept", b"kept", b"kep", b"kept ", b"")] == [
        [True],
        [True],
        [False],
        [False],
        [False],
    ]


def test_a_missing_record_is_not_settled_and_stays_missing(store: Store) -> None:
    """No verdict is stored that a later version would inherit."""
    version = make_version()
    assert store.settle([(version.record.reference, b"kept")]) == [False]
    (created,) = store.create([version])
    assert created.verdict is None
    assert store.stats().verdicts == 0


def test_the_items_of_a_call_are_independent(store: Store) -> None:
    """Each has its own result, in order; one that fails does not affect the others."""
    versions = [make_version(article_id) for article_id in "abc"]
    a, b, c = (version.record.reference for version in versions)
    store.create(versions)
    store.settle([(b, b"first")])
    missing = make_record("missing").reference
    assert store.settle([(c, b"c"), (missing, b"m"), (b, b"second"), (a, b"a")]) == [True, False, False, True]
    assert [stored and stored.verdict for stored in store.read([a, b, c])] == [b"a", b"first", b"c"]


def test_of_threads_that_settle_at_once_exactly_one_wins(store: Store) -> None:
    """Eight threads settle each of fifty versions with their own verdict: one wins, and all see which."""
    versions = [make_version(f"a{number}") for number in range(50)]
    references = [version.record.reference for version in versions]
    store.create(versions)

    def settle(name: bytes) -> list[bool]:
        return [store.settle([(reference, name)])[0] for reference in references]

    names = [b"thread %d" % number for number in range(8)]
    with ThreadPoolExecutor(len(names)) as threads:
        outcomes = list(threads.map(settle, names))
    for column, stored in zip(zip(*outcomes, strict=True), store.read(references), strict=True):
        assert stored is not None
        assert [name for name, won in zip(names, column, strict=True) if won] == [stored.verdict]


def test_settling_deletes_the_postings_that_it_is_given(store: Store) -> None:
    """Those of other records stay, also where nothing is settled or the verdict is refused."""
    versions = [make_version(name, name.encode(), keys=(make_key(1),)) for name in "abc"]
    a, b, c = (version.record for version in versions)
    store.create(versions)
    store.add([a, b, c])
    assert store.settle([(c.reference, b"kept")], [a]) == [True]
    assert store.settle([(c.reference, b"duplicate")], [b]) == [False]
    assert store.settle([], [a, b]) == []
    (row,) = store.look_up([make_key(1)])
    assert [bytes(reference) for reference in row.postings["reference"]] == [c.reference]
