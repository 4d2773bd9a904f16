"""Every interleaving of a few judges over one store, merged by what the store holds and what each judge was told.

A judge cannot be stopped half-way and continued twice, so a process *is* the replies it has had: to learn its next step
the production judge is run again from the start over a store that answers with those. Store contents are values too,
taken from the real ``MemoryStore`` and put back into one. Both are numbered, and each (content, step) and
(replies, reply) is worked out once; what remains of exploring is looking up small numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from consumer.judge.detector import Detector
from consumer.judge.known_originals import KnownOriginals
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import VerdictEvent
from storage.interface import Store
from storage.records import Record, Tombstone, Version
from tests.protocol.contents import NOTHING, Content, content_of, memory_store, restore, stands_still
from tests.protocol.steps import NextStep, ScriptedStore, Step

KNOWN_ORIGINALS_MAX = 8


@dataclass(frozen=True, slots=True)
class Process:
    """A batch and the judge it is given to.

    ``knows`` are the originals it has in memory until it crashes; ``backwards`` takes the items of every call in the
    opposite order; ``kind`` is the judge itself.
    """

    batch: tuple[Version | Tombstone, ...]
    knows: tuple[Record, ...] = ()
    backwards: bool = False
    kind: type[Detector] = Detector


class Failed(NamedTuple):
    """A judge that raised."""

    why: str


Result = tuple[bytes, ...] | Failed


class Numbers:
    """Gives equal values equal numbers, from 0 on."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self.values: list[Any] = []

    def number(self, value: object) -> int:
        """The number of a value, which must be hashable; it may be new."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class _Run(NamedTuple):
    """What a process knew at its start and the replies it has had."""

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
        """The run that has had one reply more."""
        if (run, reply_number) not in self._longer:
            knows, replies = self._runs[run]
            self._longer[run, reply_number] = self._learn(_Run(knows, (*replies, reply)))
        return self._longer[run, reply_number]

    def _learn(self, run: _Run) -> int:
        known = KnownOriginals(KNOWN_ORIGINALS_MAX)
        for record in run.knows:
            known.remember(record)
        store = cast("Store", ScriptedStore(run.replies, backwards=self._process.backwards))
        detector = self._process.kind(store, self._settings, stands_still, known)
        step: int | None = None
        result: Result | None = None
        try:
            result = _events(detector.judge(self._process.batch))
        except NextStep as reached:
            step = self._steps.number(reached.step)
        except Exception as error:  # noqa: BLE001  # whatever a judge raises is a finding
            result = Failed(repr(error))
        self._runs.append(run)
        self.next_step.append(step)
        self.results.append(result)
        return len(self._runs) - 1


State = tuple[int, ...]
"""The number of the store's content, how many crashes may still come, and the run of each process."""

_FIRST = 2


class Move(NamedTuple):
    """What can happen next: ``process`` does ``step`` (None: it crashes and starts again), and ``state`` is reached."""

    process: int
    step: Step | None
    state: State


class _Onward(NamedTuple):
    """The next step of a process by number, and what it leads to: the run that is longer by it, and the content."""

    step: int
    run: int
    content: int


class World:
    """Processes over a store that starts with ``content``."""

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
        """The state before anybody has done anything."""
        return (self._contents.number(self._content), crashes, *(Runs.FRESH for _ in self._runs))

    def step(self, state: State, process: int) -> Move | None:
        """The next step of one process; None where it has come to its end."""
        content, crashes, *runs = state
        onward = self._after(process, content, runs[process])
        if onward is None:
            return None
        step = self._steps.values[onward.step]
        return Move(process, step, self._moved(state, process, onward.run, onward.content, crashes))

    def crash(self, state: State, process: int) -> Move | None:
        """One process starts again; None where it has come to its end, or there have been crashes enough."""
        content, crashes, *runs = state
        if not crashes or self._runs[process].next_step[runs[process]] is None:
            return None
        return Move(process, None, self._moved(state, process, Runs.AGAIN, content, crashes - 1))

    def moves(self, state: State) -> list[Move]:
        """All that can happen next; nothing where every process has come to its end."""
        processes = range(len(self._runs))
        found = [*(self.step(state, one) for one in processes), *(self.crash(state, one) for one in processes)]
        return [move for move in found if move is not None]

    def following(self, state: State) -> list[State]:
        """The states of all ``moves``, several times as fast: nearly all the time of exploring goes here."""
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
        """What the store holds in this state."""
        content: Content = self._contents.values[state[0]]
        return content

    def results_in(self, state: State) -> list[Result | None]:
        """What each process has returned, None where it has not come to its end."""
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
        """The state with one run changed. Which of two equal processes is which does not matter."""
        at = _FIRST + process
        if not self._equals:
            return (content, crashes, *state[_FIRST:at], run, *state[at + 1 :])
        runs = [*state[_FIRST:at], run, *state[at + 1 :]]
        for first, second in self._equals:
            if runs[first] > runs[second]:
                runs[first], runs[second] = runs[second], runs[first]
        return (content, crashes, *runs)


def _events(answers: Sequence[VerdictEvent]) -> Result:
    """The events of a judge's answers; a verdict that says something else than its event is a finding."""
    for answer in answers:
        if answer != VerdictEvent.read(answer.encoded):
            return Failed(f"answered {answer.verdict} beside {answer.encoded!r}")
    return tuple(answer.encoded for answer in answers)


def _equal_neighbours(processes: Sequence[Process]) -> list[tuple[int, int]]:
    return [
        (first, second)
        for first, one in enumerate(processes)
        for second, other in enumerate(processes)
        if first < second and one == other
    ]


class Explored(NamedTuple):
    """What exploring came to: how many states and different ends there were, and the first end that is wrong."""

    states: int
    ends: int
    wrong: tuple[str, ...]
    trace: tuple[Move, ...]

    def told(self) -> str:
        """The trace to what is wrong, a line for each move."""
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
        for one in following:
            if one not in came_from:
                came_from[one] = state
                todo.append(one)
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
