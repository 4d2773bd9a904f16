"""The explorer itself: it explores the graphs that it should, and its scripted stores behave like real ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from consumer.judge.comparison import compare
from consumer.judge.detector import Detector
from consumer.model.verdict import decode_verdict
from storage.memory import MemoryStore
from storage.records import Record, StoredVersion, Version
from tests.protocol.articles import (
    FAR,
    PATH_0_1_2,
    PATH_0_2_1,
    PATH_1_0_2,
    PLAIN,
    SETTINGS,
    TRIANGLE,
    Shape,
    make_article,
)
from tests.protocol.cases import Case, all_cases, batches
from tests.protocol.contents import Content, content_of, memory_store, restore, stands_still
from tests.protocol.explorer import Process, Result, World, explore
from tests.protocol.steps import NextStep, Read, ScriptedStore
from tests.protocol.texts import CLOSE, EMPTY, FIRST, LAST, MIDDLE, MODES, SHORT, SPACED, TWIN, make_text

GRAPHS = [
    (TRIANGLE, {(0, 1), (1, 2), (0, 2)}),
    (PATH_0_1_2, {(0, 1), (1, 2)}),
    (PATH_1_0_2, {(0, 1), (0, 2)}),
    (PATH_0_2_1, {(0, 2), (1, 2)}),
]


def contents_at_the_ends(case: Case) -> list[Content]:
    """Return what the store holds at every end of a case."""
    ends: list[Content] = []

    def note(content: Content, results: Sequence[Result | None]) -> list[str]:
        ends.append(content)
        return []

    explore(case.world(), case.crashes, note, states_max=100_000)
    return ends


def records_of(process: Process) -> list[Record]:
    """Return the records of a process's batch."""
    return [version.record for version in process.batch if isinstance(version, Version)]


def named(content: Content) -> Mapping[str, str | None]:
    """Return for each article the one that its verdict names."""
    return {
        version.record.id: decode_verdict(version.verdict).duplicate_of
        for version in content.versions
        if version.verdict
    }


@pytest.mark.parametrize(("shape", "edges"), GRAPHS)
def test_shapes_have_just_these_edges(shape: Shape, edges: set[tuple[int, int]]) -> None:
    """The judge's own comparison finds exactly the edges of the shape, and nothing near the far one."""
    (process,) = batches(shape, [0, 1, 2])
    records = [*records_of(process), make_article(3, FAR).record]
    articles = {number: StoredVersion(record, None, None) for number, record in enumerate(records)}
    near = {(a, b) for a, b in combinations(articles, 2) if compare(articles[a], [articles[b]], SETTINGS)[0].near}
    assert near == edges


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != PLAIN])
def test_texts_are_near_as_their_kinds_have_it(mode: str) -> None:
    """Equal ones that are not empty, and with verification those whose sketches are similar."""
    texts = [SHORT, SHORT, CLOSE, TWIN, EMPTY, EMPTY, FIRST, FIRST, MIDDLE, LAST]
    articles = [StoredVersion(make_text(number, text, mode).record, None, None) for number, text in enumerate(texts)]
    near = {(a, b) for a, b in combinations(range(10), 2) if compare(articles[a], [articles[b]], MODES[mode])[0].near}
    assert near == {(0, 1), (6, 7)} | ({(6, 8), (7, 8), (8, 9)} if MODES[mode].verify else set())
    spaced = StoredVersion(make_text(10, SPACED, mode).record, None, None)
    assert [n for n in range(10) if compare(spaced, [articles[n]], MODES[mode])[0].near] == [8] * MODES[mode].lane1


@pytest.mark.parametrize(
    "name", ["pair 0|1, 2 crashes", "then near, v1 between|v2 after, 1 crashes", "retracted twice, between, 1 crashes"]
)
def test_contents_survive_being_put_back(name: str) -> None:
    """A store that is restored from a content has this content, for all contents of a case."""
    for content in contents_at_the_ends(all_cases()[name]):
        assert content_of(restore(content, memory_store)) == content


@pytest.mark.parametrize(("shape", "edges"), GRAPHS)
def test_steps_add_up_to_the_whole(shape: Shape, edges: set[tuple[int, int]]) -> None:
    """A process that runs step by step returns and stores the same as one that runs without a stop."""
    (process,) = batches(shape, [0, 1, 2], blocks=4)
    world = World([process], SETTINGS)
    state = world.start(0)
    while move := world.step(state, 0):
        state = move.state
    store = MemoryStore(clock=stands_still)
    answers = Detector(store, SETTINGS, stands_still).judge(process.batch)
    assert world.results_in(state) == [tuple(answer.encoded for answer in answers)]
    assert world.content_in(state) == content_of(store)


def test_both_outcomes_of_a_race_are_reached() -> None:
    """Either of two racing articles can be the kept one."""
    ends = contents_at_the_ends(Case("pair", batches(TRIANGLE, [0], [1])))
    outcomes = [named(content) for content in ends]
    assert {"article 0": None, "article 1": "article 0"} in outcomes
    assert {"article 0": "article 1", "article 1": None} in outcomes


def test_a_verdict_can_name_a_later_duplicate() -> None:
    """A verdict can name a version that became a duplicate itself, as the design says."""
    ends = contents_at_the_ends(Case("path", batches(PATH_0_1_2, [0], [1], [2])))
    assert {"article 0": None, "article 1": "article 0", "article 2": "article 1"} in map(named, ends)


def test_merging_equal_processes_loses_no_end() -> None:
    """Processes that judge the same are explored as interchangeable, and reach the same ends."""
    zombies = Case("zombies", batches(TRIANGLE, [0, 1], [0, 1]))
    first, second = zombies.processes
    unlike = replace(zombies, processes=(first, replace(second, knows=(make_article(9, FAR).record,))))
    assert set(contents_at_the_ends(zombies)) == set(contents_at_the_ends(unlike))
    assert zombies.explored().states < unlike.explored().states


def test_a_case_that_is_too_large_is_refused() -> None:
    """Where there are too many states, exploring ends with an error instead of a part of them."""
    case = Case("pair", batches(TRIANGLE, [0], [1]))
    with pytest.raises(RuntimeError, match="more than 50 states"):
        explore(case.world(), 2, lambda content, results: [], states_max=50)


@pytest.mark.parametrize(("backwards", "asked_first"), [(False, b"first"), (True, b"second")])
def test_items_backwards_are_answered_in_their_places(backwards: bool, asked_first: bytes) -> None:  # noqa: FBT001
    """Each item of a call gets its own reply, in either order."""
    with pytest.raises(NextStep) as reached:
        ScriptedStore([], backwards=backwards).read([b"first", b"second"])
    assert reached.value.step == Read(asked_first)
    replies = [True, False] if asked_first == b"first" else [False, True]
    store = ScriptedStore(replies, backwards=backwards)
    assert store.settle([(b"first", b"verdict"), (b"second", b"verdict")]) == [True, False]
