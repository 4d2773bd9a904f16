"""What is kept of a feed does not depend on how it was cut, on what a process remembers, or on the store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count, product
from types import MappingProxyType
from typing import Final

import msgspec
import pytest

from consumer.judge.detector import Detector
from consumer.judge.known_originals import KnownOriginals
from consumer.judge.settings import SourceRule
from consumer.model.verdict import decode_verdict
from consumer.pipeline.loop import parts_with_distinct_ids
from consumer.store_tools.inspection import verify
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Tombstone, Version
from tests.builders import TIME_MS
from tests.chaos.mixed_feed import Arrived, kept_by_brute_force, mixed_feed
from tests.chaos.near_articles import SETTINGS
from tests.contract.conftest import NAMES, ROW_POSTINGS_MAX, STORES, Kind, SetClock, opened_hbase
from tests.examples import drawn
from tests.hbase_server import COMMON

SIZE = 1_800
BATCH_SIZES = (1, 7, 64, 5_000)
SOURCES: Final = ("wire", "mirror", "blog", "")
APART: Final = MappingProxyType({
    "wire": SourceRule(never_with=("mirror", "")), "blog": SourceRule(within_source=False, never_with=("mirror",)),
})  # fmt: skip
"""Rules that leave each source another one to repeat, and keep the others apart."""


@pytest.fixture(params=drawn(NAMES, 2))
def kind(request: pytest.FixtureRequest) -> Kind:
    """Return the implementation under test, two of the three in each run."""
    return STORES[request.param](request)


@pytest.fixture(scope="module")
def feed() -> list[Arrived]:
    """The feed that all of these judge."""
    return mixed_feed(SIZE, "kept set")


@pytest.fixture(scope="module")
def expected(feed: list[Arrived]) -> set[bytes]:
    """What brute force keeps of it."""
    return kept_by_brute_force(feed)


def portion(kind: Kind, feed: list[Arrived]) -> list[Arrived]:
    """The feed, or its first eighth where every call goes to a server; the load tests judge all of it there."""
    return feed[: len(feed) // 8] if kind.remote else feed


def ticking() -> Callable[[], int]:
    """A clock that never says the same twice, so that a verdict written again would show."""
    ticks = count(TIME_MS)
    return lambda: next(ticks)


def judge_all(detector: Detector, feed: Sequence[Arrived], batch_size: int) -> list[bytes]:
    """The events of the whole feed, cut as the pipeline cuts it."""
    batches = (feed[at : at + batch_size] for at in range(0, len(feed), batch_size))
    return [
        event.encoded for batch in batches for part in parts_with_distinct_ids(batch) for event in detector.judge(part)
    ]


def kept_of(feed: Sequence[Arrived], events: Sequence[bytes]) -> set[bytes]:
    """The references of what was kept."""
    return {
        entry.record.reference
        for entry, event in zip(feed, events, strict=True)
        if isinstance(entry, Version) and decode_verdict(event).outcome == "unique"
    }


def test_the_feed_has_everything(feed: list[Arrived], expected: set[bytes]) -> None:
    """Tombstones, replays, new versions and duplicates are there in numbers, or the tests here would test little."""
    versions = [entry for entry in feed if isinstance(entry, Version)]
    references = {version.record.reference for version in versions}
    assert len(feed) - len(versions) > 50
    assert len(versions) - len(references) > 50
    assert len(references) - len({version.record.id for version in versions}) > 50
    assert 400 < len(expected) < len(references) - 400


@pytest.mark.parametrize("batch_size", drawn(BATCH_SIZES, 4))
def test_the_kept_set_is_that_of_brute_force_however_the_feed_is_cut(
    kind: Kind, store: Store, feed: list[Arrived], batch_size: int
) -> None:
    """Batches of any size keep the same articles, on every store; and nothing in it contradicts another thing."""
    feed = portion(kind, feed)
    expected = kept_by_brute_force(feed)
    detector = Detector(store, SETTINGS, ticking())
    assert kept_of(feed, judge_all(detector, feed, batch_size)) == expected
    *_, findings = verify(store, SETTINGS)
    assert findings.wrong == []
    assert findings.kept == len(expected)


@pytest.mark.parametrize("batch_size", drawn([1, 256, 5_000], 3))
def test_the_kept_set_is_that_of_brute_force_in_batches_that_no_id_cuts_short(
    kind: Kind, store: Store, batch_size: int
) -> None:
    """As above, without ids that come again: the largest batch is the whole feed."""
    unrepeated = portion(kind, mixed_feed(1_200, "unrepeated", ids_repeat=False))
    assert len(list(parts_with_distinct_ids(unrepeated))) == 1
    events = judge_all(Detector(store, SETTINGS, ticking()), unrepeated, batch_size)
    assert kept_of(unrepeated, events) == kept_by_brute_force(unrepeated)


@pytest.mark.parametrize("batch_size", drawn([1, 7, 5_000], 3))
def test_the_kept_set_is_that_of_brute_force_among_sources_that_are_kept_apart(
    kind: Kind, store: Store, feed: list[Arrived], batch_size: int
) -> None:
    """Whatever else an article resembles, it is flagged if something kept is near that the rules let it repeat."""
    by = replace(SETTINGS, sources=APART)
    feed = [from_sources(entry) for entry in portion(kind, feed)]
    expected = kept_by_brute_force(feed, by)
    assert len(feed) > len(expected) > len(kept_by_brute_force(feed))
    assert kept_of(feed, judge_all(Detector(store, by, ticking()), feed, batch_size)) == expected
    *_, findings = verify(store, by)
    assert findings.wrong == []


def from_sources(entry: Arrived) -> Arrived:
    """The same article from one of four sources, the same one each time it comes."""
    if isinstance(entry, Tombstone):
        return entry
    source = SOURCES[sum(entry.reference) % len(SOURCES)]
    return entry._replace(record=msgspec.structs.replace(entry.record, source=source))


@pytest.mark.parametrize("batch_size", drawn([1, 256], 2))
def test_judged_again_every_verdict_is_the_same_word_for_word(
    kind: Kind, store: Store, feed: list[Arrived], batch_size: int
) -> None:
    """A replay of the whole feed, cut otherwise and by a process that remembers nothing, changes no byte."""
    feed = portion(kind, feed)
    first = judge_all(Detector(store, SETTINGS, ticking()), feed, 64)
    before = store.stats()
    again = Detector(store, SETTINGS, ticking())
    assert judge_all(again, feed, batch_size) == first
    assert again.tally.replays == sum(isinstance(entry, Version) for entry in feed)
    assert store.stats() == before


@pytest.mark.parametrize(("originals_max", "batch_size"), drawn([*product([0, 1, 20, 10_000], [7, 256])], 4))
def test_the_kept_set_does_not_depend_on_how_much_is_remembered(
    feed: list[Arrived], expected: set[bytes], originals_max: int, batch_size: int
) -> None:
    """Known originals save work and decide nothing, whether none, one or all are remembered."""
    detector = Detector(MemoryStore(), SETTINGS, ticking(), KnownOriginals(originals_max))
    assert kept_of(feed, judge_all(detector, feed, batch_size)) == expected
    assert (detector.tally.known_copies > 0) == (originals_max > 0)


def wrongly_warmed(feed: Sequence[Arrived]) -> KnownOriginals:
    """A memory of everything that will ever come, kept or not: the worst hints there are."""
    known = KnownOriginals(10_000)
    for entry in feed:
        if not isinstance(entry, Tombstone):
            known.remember(entry.record)
    return known


def restarts(store: Store, feed: Sequence[Arrived]) -> Iterator[list[bytes]]:
    """Judge by a new process after every 300 articles: one that knows nothing, then one with the worst hints."""
    for number, at in enumerate(range(0, len(feed), 300)):
        known = wrongly_warmed(feed) if number % 2 else KnownOriginals(10_000)
        yield judge_all(Detector(store, SETTINGS, ticking(), known), feed[at : at + 300], 50)


def test_hints_are_read_again_before_they_are_acted_upon(kind: Kind, store: Store, feed: list[Arrived]) -> None:
    """Processes that start cold, or remember what is pending, flagged or not there yet, keep the same."""
    feed = feed[:600] if kind.remote else feed
    events = [event for some in restarts(store, feed) for event in some]
    assert kept_of(feed, events) == kept_by_brute_force(feed)


@pytest.mark.load
@pytest.mark.servers
@pytest.mark.parametrize("batch_size", [1, 7, 256])
def test_the_whole_feed_is_kept_alike_behind_a_server(
    hbase_address: str, feed: list[Arrived], expected: set[bytes], batch_size: int
) -> None:
    """What the first eighth of the feed shows in other tests holds to its end."""
    with opened_hbase(hbase_address, COMMON, SetClock(), ROW_POSTINGS_MAX) as store:
        assert kept_of(feed, judge_all(Detector(store, SETTINGS, ticking()), feed, batch_size)) == expected
