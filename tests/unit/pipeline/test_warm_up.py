"""A remote store is warmed up until look-ups get no faster, within a bound, and nothing is written."""

from collections.abc import Callable, Iterator, Sequence

import pytest
from typing_extensions import override

from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.settings import JudgeSettings
from consumer.pipeline.warm_up import RandomLookUps, WarmUpResult, warm_up
from storage.memory import MemoryStore
from storage.postings import POSTING_LAYOUTS, PostingLayout, PostingRow
from storage.watched import Result, StoreCall, WatchedStore


class Rounds:
    """Look-ups that take these times; also the clock that they take them from."""

    def __init__(self, *took_s: float, worth_it: bool = True) -> None:
        self._took_s = iter(took_s)
        self._worth_it = worth_it
        self.now_s = 0.0

    def look_up(self) -> bool:
        """Take the next time."""
        self.now_s += next(self._took_s)
        return self._worth_it

    def clock(self) -> float:
        """The time."""
        return self.now_s


def endless(first_s: float, factor: float) -> Iterator[float]:
    """Each a factor of the one before."""
    while True:
        yield first_s
        first_s *= factor


@pytest.mark.parametrize(
    ("took_s", "expected"),
    [
        ((1,) * 7, WarmUpResult(7, 1, 1)),
        ((8, 4, 2, *(1,) * 7), WarmUpResult(10, 8, 1)),
        ((8, 1, 2, 1, 1.5, 1, 1, 1), WarmUpResult(8, 8, 1)),
    ],
)
def test_it_ends_when_six_rounds_were_no_faster(took_s: tuple[float, ...], expected: WarmUpResult) -> None:
    """By a tenth, than any before them."""
    rounds = Rounds(*took_s)
    assert warm_up(rounds.look_up, 100, rounds.clock) == expected


def test_it_ends_in_time() -> None:
    """Although every round is faster than the one before; the last one may take longer."""
    rounds = Rounds(*(value for value, _ in zip(endless(4, 0.8), range(100), strict=False)))
    done = warm_up(rounds.look_up, 10, rounds.clock)
    assert 10 <= rounds.now_s < 14
    assert done.rounds < 10


def test_it_can_be_switched_off() -> None:
    """With no time at all."""
    assert warm_up(Rounds().look_up, 0) == WarmUpResult(0, 0, 0)


def test_one_round_is_enough_where_there_is_little_to_find() -> None:
    """As in a new store."""
    rounds = Rounds(5, worth_it=False)
    assert warm_up(rounds.look_up, 100, rounds.clock) == WarmUpResult(1, 5, 5)


class FullRows(WatchedStore):
    """A store whose rows all have this many postings, of no article; notes the calls."""

    def __init__(self, postings: int, layout: PostingLayout) -> None:
        super().__init__(MemoryStore())
        self._row = PostingRow(bytes(postings * layout.dtype.itemsize), truncated=False, layout=layout)
        self.calls: list[StoreCall] = []

    @override
    def _call(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
        self.calls.append(name)
        return call()

    @override
    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        super().look_up(keys, bytes_max)
        return [self._row] * len(keys)


@pytest.mark.parametrize("plan", ["4x16", "16x28", "8x16"])
@pytest.mark.parametrize("lane1", [True, False])
@pytest.mark.parametrize("postings", [0, 1, 2])
def test_made_up_articles_are_looked_up_and_not_stored(plan: str, postings: int, *, lane1: bool) -> None:
    """With any plan and lane; another round is worth it where rows have a posting each."""
    scheme = Scheme("hyperplanes-128/1" if plan == "8x16" else "jieba-tfidf/1")
    settings = JudgeSettings(BlockPlan.named(plan, scheme.bits), "", scheme, lane1=lane1)
    store = FullRows(postings, POSTING_LAYOUTS[scheme.bits // 8])
    articles = RandomLookUps(store, settings)
    assert articles.look_up() is (postings > 0)
    articles.look_up()
    assert set(store.calls) <= {"look_up", "read"}
    assert next(store.scan(), None) is None
