"""The cases that are explored. Articles are numbered in order of arrival; ``|`` separates processes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from consumer.judge.detector import Detector
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Tombstone, Version
from tests.builders import TIME_MS, make_tombstone
from tests.protocol.articles import (
    FAR,
    LEFT,
    MIDDLE,
    NEVER,
    PATH_0_1_2,
    PATH_0_2_1,
    PATH_1_0_2,
    PLAIN,
    RETURNING,
    RETURNING_OFTEN,
    RIGHT,
    TRIANGLE,
    Shape,
    make_article,
)
from tests.protocol.contents import NOTHING, Content, content_of, memory_store, stands_still
from tests.protocol.explorer import Explored, Failed, Process, Result, World, explore
from tests.protocol.known import Bank, bank, differing
from tests.protocol.promises import broken_promises
from tests.protocol.returns import histories, wrong_returns
from tests.protocol.texts import CLOSE, EMPTY, FIRST, LAST, MODES, SHORT, SPACED, TWIN, Text, make_text
from tests.protocol.texts import MIDDLE as LONG

STATES_MAX = 2_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """Processes over a store in which the articles ``before`` are judged, and the number of crashes that may happen.

    ``mode`` names the settings of all.
    """

    name: str
    processes: tuple[Process, ...]
    crashes: int = 0
    before: tuple[Version | Tombstone, ...] = ()
    mode: str = PLAIN

    @property
    def full_name(self) -> str:
        """What tells it from all others."""
        return f"{self.name}, {self.crashes} crashes"

    def with_judge(self, kind: type[Detector]) -> "Case":
        """Return the same case with another judge in every process."""
        return replace(self, processes=tuple(replace(process, kind=kind) for process in self.processes))

    def world(self, make_store: Callable[[], Store] = memory_store) -> World:
        """Return the world to explore; the production judge has judged what came before, one by one."""
        seen_ms = self.processes[0].seen_ms
        return World(self.processes, MODES[self.mode], judged(self.before, self.mode, seen_ms), make_store)

    def explored(self, make_store: Callable[[], Store] = memory_store, looking_for: str = "") -> Explored:
        """Explore every state, up to the first broken promise whose sentence has ``looking_for`` in it."""

        def check(content: Content, results: Sequence[Result | None]) -> list[str]:
            return [sentence for sentence in self.wrong_in(content, results) if looking_for in sentence]

        return explore(self.world(make_store), self.crashes, check, STATES_MAX)

    def wrong_in(self, content: Content, results: Sequence[Result | None]) -> list[str]:
        """Return a sentence for each promise that is broken at an end."""
        wrong = broken_promises(self.processes, content, results, self.mode)
        if MODES[self.mode].stretches_max and not any(isinstance(result, Failed) for result in results):
            wrong += wrong_returns(self.before, self.processes, content, results)
        return wrong


def judged(batch: Iterable[Version | Tombstone], mode: str = PLAIN, seen_ms: int = 0) -> Content:
    """Return what a store holds after these were judged one by one."""
    store = MemoryStore(clock=stands_still)
    detector = Detector(store, MODES[mode], stands_still, seen_ms=seen_ms)
    for arrived in batch:
        detector.judge([arrived])
    return content_of(store) if store.stats().versions else NOTHING


def batches(shape: Shape, *numbers: Sequence[int], blocks: int = 1, backwards: bool = False) -> tuple[Process, ...]:
    """Return one process for each batch of article numbers."""
    articles = {number: make_article(number, bits, blocks=blocks) for number, bits in shape.items()}
    return tuple(Process(tuple(articles[n] for n in batch), backwards=backwards) for batch in numbers)


def alone(*those: Version | Tombstone) -> tuple[Process, ...]:
    """Return a process for each of these."""
    return tuple(Process((arrived,)) for arrived in those)


SHAPES = {
    "triangle": TRIANGLE,
    "path 0-1-2": PATH_0_1_2,
    "path 1-0-2": PATH_1_0_2,
    "path 0-2-1": PATH_0_2_1,
}


def of_the_model() -> Iterator[Case]:
    """The cases of the abstract model, with the same crashes."""
    yield Case("pair 0|1", batches(TRIANGLE, [0], [1]), 2)
    yield Case("pair 0|1|0|1", batches(TRIANGLE, [0], [1], [0], [1]))
    for name, shape in SHAPES.items():
        yield Case(f"{name}, 0|1|2", batches(shape, [0], [1], [2]))
        yield Case(f"{name}, 01|2", batches(shape, [0, 1], [2]), 1)
        yield Case(f"{name}, 02|1", batches(shape, [0, 2], [1]), 1)
        yield Case(f"{name}, 12|0", batches(shape, [1, 2], [0]), 1)
        yield Case(f"{name}, 012|2", batches(shape, [0, 1, 2], [2]), 1)
        yield Case(f"{name}, 012|1", batches(shape, [0, 1, 2], [1]), 1)
        yield Case(f"{name}, 012|02", batches(shape, [0, 1, 2], [0, 2]))
        yield Case(f"{name}, 01|12", batches(shape, [0, 1], [1, 2]))


def backwards() -> Iterator[Case]:
    """Batches whose calls take their items in reverse: the contract promises no order."""
    for name, shape in SHAPES.items():
        for pair in (([0, 1], [2]), ([0, 2], [1]), ([1, 2], [0]), ([0, 1, 2], [2]), ([0, 1, 2], [1])):
            yield Case(f"{name}, {_names(pair)}, backwards", batches(shape, *pair, backwards=True), 1)
        both = (*batches(shape, [0, 1, 2]), *batches(shape, [0, 1, 2], backwards=True))
        yield Case(f"{name}, 012|012, one backwards", both, 1)


def finer() -> Iterator[Case]:
    """Records with several keys, so that a record can be found under one key and not yet under another."""
    yield Case("pair 0|1, four keys", batches(TRIANGLE, [0], [1], blocks=4), 2)
    yield Case("triangle, 01|2, two keys", batches(TRIANGLE, [0, 1], [2], blocks=2), 1)
    yield Case("triangle, 12|0, two keys", batches(TRIANGLE, [1, 2], [0], blocks=2), 1)
    yield Case("path 0-1-2, 01|2, four keys", batches(PATH_0_1_2, [0, 1], [2], blocks=4), 1)


def larger() -> Iterator[Case]:
    """More crashes, and more consumers that were thought dead, than in the model."""
    for name, shape in SHAPES.items():
        yield Case(f"{name}, 0|1|2", batches(shape, [0], [1], [2]), 1)
    for name in ("triangle", "path 0-1-2"):
        yield Case(f"{name}, 01|12|02", batches(SHAPES[name], [0, 1], [1, 2], [0, 2]))


def known_copies() -> Iterator[Case]:
    """Step 1: processes that know the original, together with processes that do not."""
    original, copy, other = (make_article(number) for number in range(3))
    bridge, beyond = make_article(1, MIDDLE), make_article(2, RIGHT)
    early = make_article(0)
    late_original = make_article(3)

    def knowing(known: Version, *batch: Version) -> Process:
        return Process(batch, knows=(known.record,))

    before = (original,)
    yield Case("copies, 1 knowing|2", (knowing(original, copy), *alone(other)), 1, before)
    yield Case("copies, 1 knowing|1", (knowing(original, copy), *alone(copy)), 2, before)
    yield Case("copies, 12 knowing|1|2", (knowing(original, copy, other), *alone(copy, other)), 0, before)
    yield Case("copies, 01 knowing|1", (knowing(original, original, copy), *alone(copy)), 2, before)
    yield Case("copies on a path, 1 knowing|2", (knowing(original, bridge), *alone(beyond)), 2, before)
    yield Case("copies on a path, 1 knowing|1|2", (knowing(original, bridge), *alone(bridge, beyond)), 0, before)
    yield Case("copy earlier than its original", (knowing(late_original, early), *alone(copy)), 1, (late_original,))
    yield Case("known, but pending", (*alone(make_article(0), bridge), knowing(bridge, beyond)), 0)
    yield Case("known, but pending and later", (*alone(copy, early), knowing(copy, early)), 0)
    yield Case("known, but a duplicate", (knowing(bridge, beyond), *alone(bridge)), 1, (original, bridge))


def versions() -> Iterator[Case]:
    """An id whose content changes, with articles that arrive before and after."""
    first = make_article(0, article_id="changing", content=b"first")
    for name, bits in (("far", FAR), ("near", MIDDLE)):
        second = make_article(2, bits, article_id="changing", content=b"second")
        between, after = make_article(1), make_article(3)
        yield Case(f"then {name}, v1|v2|between", alone(first, second, between), 1)
        yield Case(f"then {name}, v1|v2|after", alone(first, second, after), 1)
        yield Case(f"then {name}, v1 between|v2 after", (Process((first, between)), Process((second, after))), 1)
        yield Case(f"then {name}, v1 after|v2 between", (Process((first, after)), Process((second, between))), 1)
        yield Case(f"then {name}, v2|between|after", alone(second, between, after), 0, (first,))
        yield Case(f"then {name}, v1|between|after", alone(first, between, after), 0, (second,))
        yield Case(f"then {name}, between|after", alone(between, after), 2, (first, second))
        knowing = Process((between,), knows=(first.record,))
        yield Case(f"then {name}, between knowing|v2|after", (knowing, *alone(second, after)), 0, (first,))


def ties() -> Iterator[Case]:
    """Articles of two feeds with the same time and sequence: only the reference decides which came first."""
    first = make_article(0, article_id="changing", content=b"first")
    second = make_article(2, article_id="changing", content=b"second")
    names = [f"tied {number}" for number in range(64)]
    tied = sorted((make_article(2, article_id=name) for name in names), key=lambda version: version.record.arrival)
    yield Case("tied just before v2, v2|tied", alone(second, tied[0]), 1, (first,))
    yield Case("tied just after v2, v2|tied", alone(second, tied[-1]), 1, (first,))
    yield Case("tied just before v2, v1|v2|tied", alone(first, second, tied[0]), 1)
    yield Case("tied with each other, 0|1", alone(tied[0], tied[-1]), 2)


def replays() -> Iterator[Case]:
    """Messages that are delivered again with another arrival, and old content that is sent again under its id."""
    first = make_article(0, article_id="changing", content=b"first")
    again = make_article(3, article_id="changing", content=b"first")
    for name, bits in (("far", FAR), ("near", MIDDLE)):
        second = make_article(1, bits, article_id="changing", content=b"second")
        yield Case(f"first, {name}, first again|after", alone(second, again, make_article(4)), 0, (first,))
        yield Case(f"first, {name}, first again|between", alone(second, again, make_article(2)), 0, (first,))
    second = make_article(1, FAR, article_id="changing", content=b"second")
    yield Case("first, far, first again", alone(first, second, again), 1)
    article, other, twice = make_article(0), make_article(1), make_article(2, article_id="article 0")
    yield Case("0 delivered twice, 0|1|0 late", alone(article, other, twice), 1)
    for name, shape in SHAPES.items():
        late = make_article(3, shape[0], article_id="article 0")
        yield Case(f"{name}, 0 delivered twice, 01|2|0 late", (*batches(shape, [0, 1], [2]), *alone(late)))


def arrivals() -> Iterator[Case]:
    """Deliveries that differ in when, and in what order, the articles arrived: each followed other commits.

    A delivery is written as ``1@3``: article 1, arriving third. Which of two deliveries is stored differs from
    article to article.
    """

    def delivered(shape: Shape, *places: int) -> Process:
        """Return a process whose delivery has article 0 at the first of these places, and so on."""
        return Process(
            tuple(
                make_article(place, shape[number], article_id=f"article {number}")
                for number, place in enumerate(places)
            )
        )

    for name, shape in SHAPES.items():
        # A copy that came after its original in one delivery, and before it in another.
        yield Case(f"{name}, 0@1 1@2|0@2 1@1", (delivered(shape, 1, 2), delivered(shape, 2, 1)), 1)
        yield Case(f"{name}, 0@1 1@2 2@3|0@3 1@2 2@1", (delivered(shape, 1, 2, 3), delivered(shape, 3, 2, 1)))
        yield Case(f"{name}, 0@1 1@2 2@3|0@2 1@3 2@1", (delivered(shape, 1, 2, 3), delivered(shape, 2, 3, 1)))
    # The version that replaced another in one delivery came before it in the other delivery.
    first, second = (
        [make_article(at, bits, article_id="changing", content=content) for at in places]
        for places, bits, content in (((1, 3), 0, b"first"), ((2, 1), MIDDLE, b"second"))
    )
    gone = [make_tombstone("changing", TIME_MS + at, 7, place=b"articles:0:7") for at in (3, 1)]
    other, third = make_article(2), make_article(3, article_id="article 2")
    pair = (delivered(TRIANGLE, 1, 4), delivered(TRIANGLE, 4, 1))
    yield Case("pair, 0@1 1@4|0@4 1@1|2@3", (*pair, *alone(third)))
    yield Case("v1@1|v2@2|v1@3|v2@1", alone(first[0], second[0], first[1], second[1]))
    yield Case("first, v2@2|v2@1|other@2", alone(*second, other), 0, (first[0],))
    yield Case(
        "first, tombstone@3|tombstone@1|other@2", alone(*gone, other), 1, (make_article(0, article_id="changing"),)
    )


def tombstones() -> Iterator[Case]:
    """A retraction, with articles that arrive before and after it."""
    first = make_article(0, article_id="retracted")
    gone = make_tombstone("retracted", TIME_MS + 2, 2)
    between, after = make_article(1), make_article(3)
    back = make_article(4, article_id="retracted", content=b"second")
    yield Case("retracted, v1|tombstone|between", alone(first, gone, between), 1)
    yield Case("retracted, v1|tombstone|after", alone(first, gone, after), 1)
    yield Case("retracted, v1|tombstone|between|after", alone(first, gone, between, after))
    yield Case("retracted, tombstone between|v1 after", (Process((gone, between)), Process((first, after))), 1)
    yield Case("retracted twice, between", alone(gone, gone, between), 1, (first,))
    yield Case("retracted, then new content", alone(gone, back, after), 1, (first,))
    yield Case(
        "retracted, then sent again by another id|again", (Process((gone, after)), Process((after,))), 1, (first,)
    )
    yield Case("retracted before, sent again|again", alone(after, after), 1, (first, gone))
    yield Case("retracted before, sent again|near it", alone(after, make_article(5)), 0, (first, gone))
    yield Case("retracted, then new content, late", alone(first, back, make_article(5)), 0, (gone,))


def never_flagged() -> Iterator[Case]:
    """A source that is never flagged, at each place in the order."""
    for name, shape in SHAPES.items():
        for never in shape:
            articles = {n: make_article(n, bits, source=NEVER if n == never else "wire") for n, bits in shape.items()}
            if name == "triangle":
                yield Case(f"{name}, 0|1|2, {never} never flagged", alone(*articles.values()))
            for batch, rest in (((0, 1), 2), ((0, 2), 1), ((1, 2), 0)):
                together = Process(tuple(articles[n] for n in batch))
                yield Case(
                    f"{name}, {_names((batch, [rest]))}, {never} never flagged", (together, *alone(articles[rest])), 1
                )


def kinds_of_texts() -> Iterator[Case]:
    """Short texts, which only equal ones repeat, and such of shingles, by all settings that treat them differently."""
    for mode in [mode for mode in MODES if mode not in (PLAIN, RETURNING, RETURNING_OFTEN)]:

        def texts(*those: Text, keys: int = 1, mode: str = mode) -> list[Version]:
            return [make_text(number, text, mode, keys_a_lane=keys) for number, text in enumerate(those)]

        first, second = texts(SHORT, SHORT, keys=4)
        yield Case(f"{mode}: short pair, four keys, 0|1", alone(first, second), mode=mode)
        first, second, third = texts(SHORT, SHORT, SHORT)
        yield Case(f"{mode}: short, 01|2", (Process((first, second)), *alone(third)), 1, mode=mode)
        knowing = Process((second,), knows=(first.record,))
        yield Case(f"{mode}: short, 1 knowing|2", (knowing, *alone(third)), 1, (first,), mode)
        for name, other in (("close", CLOSE), ("twin", TWIN), ("empty", EMPTY)):
            first, unlike, second = texts(SHORT, other, SHORT)
            yield Case(f"{mode}: short and {name}, 01|2", (Process((first, unlike)), *alone(second)), 1, mode=mode)
        yield Case(f"{mode}: empty pair, 0|1", alone(*texts(EMPTY, EMPTY)), 2, mode=mode)
        path = texts(FIRST, LONG, LAST)
        for (a, b), c in (((0, 1), 2), ((0, 2), 1), ((1, 2), 0)):
            yield Case(f"{mode}: shingles, {a}{b}|{c}", (Process((path[a], path[b])), *alone(path[c])), 1, mode=mode)
        yield Case(f"{mode}: long and spaced, 0|1", alone(*texts(LONG, SPACED)), 1, mode=mode)
        yield Case(f"{mode}: equal shingles, 0|1", alone(*texts(FIRST, FIRST)), 1, mode=mode)


def remembered_texts() -> Iterator[Case]:
    """Copies of one text by judges that remember texts: in one window, and long after the first."""
    first = make_article(0)
    window_ms = MODES[PLAIN].window_ms
    copies = [make_article(number) for number in range(1, 4)]
    late = [make_article(window_ms + 10 + number, article_id=f"late {number}") for number in range(3)]
    keep_ms = 10 * window_ms

    def remembering(*batches_: Sequence[Version]) -> tuple[Process, ...]:
        return tuple(Process(tuple(batch), seen_ms=keep_ms) for batch in batches_)

    yield Case("remembered, 1|2", remembering(copies[:1], copies[1:2]), 2)
    yield Case("remembered, 1|1|2", remembering(copies[:1], copies[:1], copies[1:2]))
    yield Case("remembered, 12|2", remembering(copies[:2], copies[1:2]), 1)
    yield Case("remembered, 1 late|late", remembering([copies[0], late[0]], late[1:2]), 1)
    yield Case("remembered long ago, late|late", remembering(late[:1], late[1:2]), 2, (first,))
    yield Case("remembered long ago, late|late|late", remembering(late[:1], late[:1], late[1:2]), 0, (first, copies[0]))
    yield Case("remembered long ago, late late|late", remembering(late[:2], late[:1]), 1, (first,))
    knowing = Process((late[1],), knows=(late[0].record,), seen_ms=keep_ms)
    yield Case("remembered long ago, late knowing|late", (knowing, *remembering(late[2:])), 1, (first, late[0]))


def shared_parts() -> Iterator[Case]:
    """Articles that are not near, and share a part: with judges that look for parts, and with one that does not."""
    far = {0: LEFT, 1: FAR, 2: LEFT}
    articles = [make_article(number, bits, part=True) for number, bits in far.items()]

    def looking(*numbers: Sequence[int], seen_ms: int = 0) -> tuple[Process, ...]:
        return tuple(
            Process(tuple(articles[number] for number in batch), parts=True, seen_ms=seen_ms) for batch in numbers
        )

    yield Case("a part, 0|1", looking([0], [1]), 2)
    yield Case("a part, 01|1", looking([0, 1], [1]), 1)
    yield Case("a part, 0|1|1", looking([0], [1], [1]))
    yield Case("a part, 01|2", looking([0, 1], [2]), 1)
    yield Case("a part, 1 looking|1", (*looking([1]), Process((articles[1],))), 1, (articles[0],))
    yield Case("a part of what is retracted", (*looking([1]), *alone(make_tombstone("article 0"))), 1, (articles[0],))
    keep_ms = MODES[PLAIN].window_ms
    yield Case("a part, remembered, 0|1", looking([0], [1], seen_ms=keep_ms), 1)
    yield Case("a part, remembered, 01|2", looking([0, 1], [2], seen_ms=keep_ms))


def returns() -> Iterator[Case]:
    """Content that ended and is delivered again, with redeliveries and retractions."""
    for name, before, batches_, crashes in histories():
        yield Case(name, tuple(map(Process, batches_)), crashes + 1, before, RETURNING)


def known_texts() -> Iterator[Case]:
    """Processes whose banks differ: what the creator of a record found is what all of them go by."""

    def knowing(shape: Shape, *batches_: tuple[Sequence[int], Bank]) -> tuple[Process, ...]:
        articles = {number: make_article(number, bits) for number, bits in shape.items()}
        return tuple(Process(tuple(articles[n] for n in batch), bank=known) for batch, known in batches_)

    for name, mine, theirs in differing():
        yield Case(f"{name}, 0|1", knowing(TRIANGLE, ([0], mine), ([1], theirs)), 2)
        yield Case(f"{name}, 01|01", knowing(TRIANGLE, ([0, 1], mine), ([0, 1], theirs)), 1)
        yield Case(f"{name}, 0|1|1", knowing(TRIANGLE, ([0], mine), ([1], mine), ([1], theirs)))
        for path in ("path 0-1-2", "path 1-0-2"):
            yield Case(f"{path}, {name}, 01|12", knowing(SHAPES[path], ([0, 1], mine), ([1, 2], theirs)))
    original, copy = make_article(0), make_article(1)
    remembering = Process((copy,), knows=(original.record,))
    allowing = Process((copy,), knows=(original.record,), bank=bank([1]))
    yield Case("one allows a copy of what both remember, 1|1", (remembering, allowing), 2, (original,))


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "of the model": of_the_model,
    "backwards": backwards,
    "finer": finer,
    "larger": larger,
    "known copies": known_copies,
    "versions": versions,
    "ties": ties,
    "replays": replays,
    "arrivals": arrivals,
    "tombstones": tombstones,
    "never flagged": never_flagged,
    "kinds of texts": kinds_of_texts,
    "remembered texts": remembered_texts,
    "shared parts": shared_parts,
    "returns": returns,
    "known texts": known_texts,
}


def all_cases() -> dict[str, Case]:
    """Every case by name."""
    cases = [case for family in FAMILIES.values() for case in family()]
    by_name = {case.full_name: case for case in cases}
    assert len(by_name) == len(cases)
    return by_name


def _names(numbers: Iterable[Sequence[int]]) -> str:
    return "|".join("".join(map(str, batch)) for batch in numbers)
