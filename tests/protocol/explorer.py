"""Exploring every interleaving of a few judges over one store; states with equal contents and replies are merged.

A judge cannot be stopped and copied, so a process is represented by the replies that it has had: to learn its next
step, the production judge is run again from the start over a store that answers with these. Store contents are values
too, taken from the real ``MemoryStore`` and restored into one. Both are numbered, and each (content, step) and
(replies, reply) is computed once; the rest of exploring is looking up small numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from consumer.judge.common_hashes import CommonHashes
from consumer.judge.detector import Detector
from consumer.judge.known_originals import KnownOriginals
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import VerdictEvent
from storage.interface import Store
from storage.records import Record, Tombstone, Version
from tests.protocol.contents import NOTHING, Content, content_of, memory_store, restore, stands_still
from tests.protocol.known import Bank, with_matches_of
from tests.protocol.steps import NextStep, ScriptedStore, Step

KNOWN_ORIGINALS_MAX = 8


@dataclass(frozen=True, slots=True)
class Process:
    """A batch, and the judge that judges it.

    ``knows`` are the originals that it remembers until it crashes; ``backwards`` takes the items of every call in
    reverse; ``kind`` is the class of the judge; ``seen_ms`` is how long it remembers texts; with ``parts`` it looks for
    parts of articles. ``bank`` says which articles repeat known texts, as far as this process knows.
    """

    batch: tuple[Version | Tombstone, ...]
    knows: tuple[Record, ...] = ()
    backwards: bool = False
    kind: type[Detector] = Detector
    seen_ms: int = 0
    parts: bool = False
    bank: Bank = frozenset()


class Failed(NamedTuple):
    """The error of a judge that raised one."""

    why: str


Result = tuple[bytes, ...] | Failed


class Numbers:
    """Numbers values from 0; equal values have equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self.values: list[Any] = []

    def number(self, value: object) -> int:
        """Return the number of a hashable value, a new one for a new value."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class _Run(NamedTuple):
    """The originals that a process knew at its start, and the replies that it has had."""

    knows: tuple[Record, ...]
    replies: tuple[Any, ...]


class Runs:
    """All runs of one process by number: ``FRESH`` has had no reply yet, ``AGAIN`` none since a crash."""

    FRESH = 0
    AGAIN = 1

    def __init__(self, process: Process, settings: JudgeSettings, steps: Numbers) -> None:
        self._process = process
        self._settings = settings
        self._steps = steps
        self._runs: list[_Run] = []
        self._longer: dict[tuple[int, int], int] = {}
        self.next_step: list[int | None] = []
        self.results: list[Result | None] = []
        self._learn(_Run(process.knows, ()))
        self._learn(_Run((), ()))

    def after(self, run: int, reply_number: int, reply: object) -> int:
        """Return the run with one more reply."""
        if (run, reply_number) not in self._longer:
            knows, replies = self._runs[run]
            self._longer[run, reply_number] = self._learn(_Run(knows, (*replies, reply)))
        return self._longer[run, reply_number]

    def _learn(self, run: _Run) -> int:
        known = KnownOriginals(KNOWN_ORIGINALS_MAX)
        for record in run.knows:
            known.remember(record)
        store = cast("Store", ScriptedStore(run.replies, backwards=self._process.backwards))
        process = self._process
        # As small as possible: there is a judge for every state.
        common = CommonHashes(column_bits=8) if process.parts else None
        detector = process.kind(store, self._settings, stands_still, known, seen_ms=process.seen_ms, common=common)
        if process.bank:
            detector.with_bank_matches = partial(with_matches_of, process.bank)
        step: int | None = None
        result: Result | None = None
        try:
            result = _events(detector.judge(self._process.batch))
        except NextStep as reached:
            step = self._steps.number(reached.step)
        except Exception as error:  # noqa: BLE001  # any error of a judge is a failure
            result = Failed(repr(error))
        self._runs.append(run)
        self.next_step.append(step)
        self.results.append(result)
        return len(self._runs) - 1


State = tuple[int, ...]
"""The number of the store's content, the number of crashes that may still happen, and the run of each process."""

_FIRST = 2


class Move(NamedTuple):
    """A possible next step: ``process`` does ``step``, or crashes and restarts (None), and ``state`` is reached."""

    process: int
    step: Step | None
    state: State


class _Onward(NamedTuple):
    """The number of a process's next step, and what it leads to: the run after it, and the content."""

    step: int
    run: int
    content: int


class World:
    """Processes over a store that has ``content`` at the start."""

    def __init__(
        self,
        processes: Sequence[Process],
        settings: JudgeSettings,
        content: Content = NOTHING,
        make_store: Callable[[], Store] = memory_store,
    ) -> None:
        self._steps = Numbers()
        self._contents = Numbers()
        self._replies = Numbers()
        self._applied: dict[tuple[int, int], tuple[int, int]] = {}
        self._make_store = make_store
        self._content = content
        self.processes = tuple(processes)
        runs = {process: Runs(process, settings, self._steps) for process in dict.fromkeys(processes)}
        self._runs = [runs[process] for process in processes]
        onward: dict[Process, dict[tuple[int, int], _Onward | None]] = {process: {} for process in runs}
        self._onward = [onward[process] for process in processes]
        self._equals = _equal_neighbours(processes)

    def start(self, crashes: int) -> State:
        """Return the initial state."""
        return (self._contents.number(self._content), crashes, *(Runs.FRESH for _ in self._runs))

    def step(self, state: State, process: int) -> Move | None:
        """Return the next step of one process, None where it has ended."""
        content, crashes, *runs = state
        onward = self._after(process, content, runs[process])
        if onward is None:
            return None
        step = self._steps.values[onward.step]
        return Move(process, step, self._moved(state, process, onward.run, onward.content, crashes))

    def crash(self, state: State, process: int) -> Move | None:
        """Return the crash and restart of one process, None where it has ended or no crashes are left."""
        content, crashes, *runs = state
        if not crashes or self._runs[process].next_step[runs[process]] is None:
            return None
        return Move(process, None, self._moved(state, process, Runs.AGAIN, content, crashes - 1))

    def moves(self, state: State) -> list[Move]:
        """Return all possible next moves; none where every process has ended."""
        processes = range(len(self._runs))
        steps = [self.step(state, process) for process in processes]
        found = [*steps, *(self.crash(state, process) for process in processes)]
        return [move for move in found if move is not None]

    def following(self, state: State) -> list[State]:
        """Return the states of all ``moves``, several times as fast; exploring spends nearly all its time here."""
        content, crashes, *runs = state
        found = []
        for process, run in enumerate(runs):
            onward = self._after(process, content, run)
            if onward is not None:
                found.append(self._moved(state, process, onward.run, onward.content, crashes))
                if crashes:
                    found.append(self._moved(state, process, Runs.AGAIN, content, crashes - 1))
        return found

    def content_in(self, state: State) -> Content:
        """Return what the store holds in this state."""
        content: Content = self._contents.values[state[0]]
        return content

    def results_in(self, state: State) -> list[Result | None]:
        """Return the result of each process, None where it has not ended."""
        return [runs.results[run] for runs, run in zip(self._runs, state[_FIRST:], strict=True)]

    def _after(self, process: int, content: int, run: int) -> _Onward | None:
        known = self._onward[process]
        if (content, run) not in known:
            number = self._runs[process].next_step[run]
            if number is None:
                known[content, run] = None
            else:
                after, reply = self._apply(content, number)
                longer = self._runs[process].after(run, reply, self._replies.values[reply])
                known[content, run] = _Onward(number, longer, after)
        return known[content, run]

    def _apply(self, content: int, step: int) -> tuple[int, int]:
        if (content, step) not in self._applied:
            store = restore(self._contents.values[content], self._make_store)
            reply = self._steps.values[step].apply(store)
            self._applied[content, step] = (self._contents.number(content_of(store)), self._replies.number(reply))
        return self._applied[content, step]

    def _moved(self, state: State, process: int, run: int, content: int, crashes: int) -> State:
        """Return the state with one run changed. Equal processes are interchangeable."""
        at = _FIRST + process
        if not self._equals:
            return (content, crashes, *state[_FIRST:at], run, *state[at + 1 :])
        runs = [*state[_FIRST:at], run, *state[at + 1 :]]
        for first, second in self._equals:
            if runs[first] > runs[second]:
                runs[first], runs[second] = runs[second], runs[first]
        return (content, crashes, *runs)


def _events(answers: Sequence[VerdictEvent]) -> Result:
    """Return the events of a judge's answers; a verdict that differs from its event is a failure."""
    for answer in answers:
        if answer != VerdictEvent.read(answer.encoded):
            return Failed(f"answered {answer.verdict} beside {answer.encoded!r}")
    return tuple(answer.encoded for answer in answers)


def _equal_neighbours(processes: Sequence[Process]) -> list[tuple[int, int]]:
    return [
        (first, second)
        for first, process in enumerate(processes)
        for second, other in enumerate(processes)
        if first < second and process == other
    ]


class Explored(NamedTuple):
    """The result of exploring: the numbers of states and of ends, and what is wrong at the first wrong end."""

    states: int
    ends: int
    wrong: tuple[str, ...]
    trace: tuple[Move, ...]

    def trace_text(self) -> str:
        """Return the trace to the wrong end, a line for each move."""
        return "\n".join(f"process {move.process}: {move.step or 'crashes'}" for move in self.trace)


def explore(
    world: World, crashes: int, check: Callable[[Content, list[Result | None]], Sequence[str]], states_max: int
) -> Explored:
    """Visit every reachable state, depth first, and check every end; stop at the first that is wrong.

    RuntimeError beyond ``states_max`` states: a case that large belongs among the random walks.
    """
    start = world.start(crashes)
    came_from: dict[State, State | None] = {start: None}
    todo = [start]
    ends = 0
    while todo:
        state = todo.pop()
        following = world.following(state)
        for after in following:
            if after not in came_from:
                came_from[after] = state
                todo.append(after)
        if len(came_from) > states_max:
            raise RuntimeError(f"more than {states_max} states")
        if following:
            continue
        ends += 1
        wrong = check(world.content_in(state), world.results_in(state))
        if wrong:
            return Explored(len(came_from), ends, tuple(wrong), _trace(world, state, came_from))
    return Explored(len(came_from), ends, (), ())


def _trace(world: World, state: State, came_from: dict[State, State | None]) -> tuple[Move, ...]:
    moves: list[Move] = []
    while (before := came_from[state]) is not None:
        moves.append(next(move for move in world.moves(before) if move.state == state))
        state = before
    return tuple(reversed(moves))
