"""Servers and consumers that are harmed and healed, and what is seen of it."""

import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Self

from tests.chaos.kafka.faults import CONSUMERS, SESSION_S, Act, Fault, Round, Target
from tests.chaos.kafka.feeding import Feeding
from tests.chaos.kafka.places import Onlooker, Places, done, lag, moved
from tests.chaos.kafka.servers import Servers
from tests.kafka.memory import MemoryWatch
from tests.kafka.running import Running, running
from tests.kafka.topics import Topics

STORE_CALL_S: Final = 5
ANSWERED_S: Final = 300.0
"""So long may a slow machine take for what is left when nothing is sent any more."""
_READY_S: Final = 90.0
_LOOK_S: Final = 0.1
_MEMORY_EVERY_S: Final = 0.02
"""Several consumers, for an hour: a look at each every two milliseconds would cost what it measures."""
_LOG_LINES: Final = 20
_SETTINGS: Final = (
    "--set", "source.batch_records_max=50",
    "--set", "kafka.unique=true",
    # However much poison the feed has, nobody is to wait for it here.
    "--set", "kafka.poison_share_max=1",
    "--set", 'kafka.client={"reconnect.backoff.max.ms"=1000}',
    # A gateway that is stopped has to be given up before the test's patience ends.
    "--set", "store.hbase.judges_max=3",
    "--set", f"store.hbase.call_s={STORE_CALL_S}",
)  # fmt: skip
_EXACTLY_ONCE: Final = (
    "--set", "kafka.delivery=exactly-once",
    # What a killed consumer left open holds up its partitions for so long.
    "--set", 'kafka.producer={"transaction.timeout.ms"=10000}',
)  # fmt: skip
_CLASSIC: Final = (
    "--set", f'kafka.consumer={{"session.timeout.ms"={SESSION_S * 1000:.0f},"heartbeat.interval.ms"=1000}}',
)  # fmt: skip
# With the new protocol sessions are the broker's to set.
_CONSUMER: Final = ("--set", "kafka.group_protocol=consumer")
BROKER_SETTINGS: Final = dict.fromkeys(
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"), f"{SESSION_S * 1000:.0f}"
)


class Manner(NamedTuple):
    """How the consumers run: ``once`` exactly or at least, with names of their own or none, by which group protocol."""

    once: bool
    static: bool = False
    new_protocol: bool = False

    def __str__(self) -> str:
        ways = {
            "exactly once" if self.once else "at least once": True,
            "static members": self.static,
            "new protocol": self.new_protocol,
        }
        return ", ".join(way for way, taken in ways.items() if taken)

    def settings(self, consumer: int) -> tuple[str, ...]:
        """What this consumer is started with; one that is started again has its name again."""
        named = ("--set", f"kafka.instance_id=consumer-{consumer}") if self.static else ()
        protocol = _CONSUMER if self.new_protocol else _CLASSIC
        return (*_SETTINGS, *protocol, *(_EXACTLY_ONCE if self.once else ()), *named)


class Struck(NamedTuple):
    """A fault that has struck: when, in seconds since the run began, and with how many unanswered messages."""

    fault: Fault
    at_s: float
    lag: int
    what: str = ""
    """Which server it was, or how much was moved."""


@dataclass(slots=True)
class Stage(AbstractContextManager["Stage"]):
    """Three consumers over these servers, and the feed; all consumers end with it."""

    servers: Servers
    topics: Topics
    feeding: Feeding
    store_url: str
    folder: Path
    manner: Manner
    values: tuple[str, ...] = ()
    memory: MemoryWatch = field(default_factory=lambda: MemoryWatch(_MEMORY_EVERY_S))
    began_s: float = field(default_factory=time.monotonic)
    struck: list[Struck] = field(default_factory=list)
    _consumers: list[Running] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _onlooker: Onlooker | None = None
    _seen: Places = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Start the consumers."""
        self._onlooker = Onlooker(self.topics)
        self._stack.callback(self._onlooker.close)
        self._stack.enter_context(self.memory)
        self._consumers = [self._start(number) for number in range(CONSUMERS)]
        for consumer in self._consumers:
            consumer.wait_ready(seconds=_READY_S)
        return self

    def __exit__(self, *_: object) -> None:
        """End what is left."""
        self._stack.close()

    def play(self, faults: Round) -> None:
        """Strike, heal, and return when every partition makes progress again."""
        struck: list[Struck] = []
        lasted_s: dict[Struck, float] = {}
        for fault in faults:
            if fault.upon_healing:
                self._heal_all(struck, lasted_s)
            struck.append(self._strike(fault))
        self._heal_all(struck, lasted_s)
        before = dict(self._seen)
        self._until(lambda: moved(before, self._look()), f"go on after {', '.join(map(str, faults))}")
        for strike in struck:
            named = f"{strike.fault} {strike.what}".rstrip()
            say(
                f"{strike.at_s:7.1f} s  {named:<40} lag {strike.lag:6,}   lasted {lasted_s[strike]:5.1f} s"
                f"   recovered after {self._now_s() - strike.at_s:5.1f} s   answered {done(self._seen):,}"
            )

    def _heal_all(self, struck: Sequence[Struck], lasted_s: dict[Struck, float]) -> None:
        """In the order in which they need each other; ``lasted_s`` has those that are well, and gets the others."""
        for strike in sorted(
            set(struck) - lasted_s.keys(), key=lambda strike: list(Target).index(strike.fault.kind.target)
        ):
            self._rest(strike.at_s + strike.fault.lasts_s - self._now_s())
            self._heal(strike.fault)
            lasted_s[strike] = self._now_s() - strike.at_s

    def finish(self, messages_min: int) -> None:
        """Send what is missing, wait until all is answered, and stop the consumers, each of which ends in order."""
        self.feeding.fill(messages_min)
        self._until(lambda: len(self.feeding.feed.messages) >= messages_min, "send the rest", seconds=900)
        self.feeding.end(self.servers.recover_s)
        sent = len(self.feeding.feed.messages)
        self._seen = {}
        self._until(lambda: bool(self._look()) and lag(self._seen) == 0, f"answer all {sent}", ANSWERED_S)
        for number, consumer in enumerate(self._consumers):
            code = consumer.stop()
            assert code == 0, f"consumer {number} ended with {code}\n{_tail(consumer)}"

    def logged(self, words: str) -> int:
        """How often the consumers have said this."""
        return sum(log.read_text(errors="replace").count(words) for log in self.folder.glob("*.log"))

    def _start(self, consumer: int) -> Running:
        settings = (*self.manner.settings(consumer), *self.values)
        process = self._stack.enter_context(running(self.topics, self.store_url, self.folder, *settings))
        self.memory.watch(process.log.stem, process.process.pid)
        return process

    def _strike(self, fault: Fault) -> Struck:
        self._rest(fault.after_s)
        if fault.kind.target is Target.CONSUMER:
            target = self._consumers[fault.number]
            self._until(lambda: target.metric("dupwatch_assigned_partitions") > 0, "share the partitions")
        self.feeding.burst()
        self._rest(fault.into_s)
        self._until(self._busy, "have something to do")
        at_s, waiting = self._now_s(), lag(self._seen)
        if fault.kind.target is not Target.CONSUMER:
            what = self.servers.strike(fault, self.topics)
        else:
            what = ""
            consumer = self._consumers[fault.number]
            assert consumer.process.poll() is None
            if fault.kind.act is Act.STOP:
                consumer.process.send_signal(signal.SIGSTOP)
            else:
                consumer.kill()
        self.struck.append(Struck(fault, at_s, waiting, what))
        return self.struck[-1]

    def _busy(self) -> bool:
        """Whether something is not answered; where the broker is away nothing was committed since the last look."""
        if lag(self._look()) > 0:
            return True
        self.feeding.burst()
        return False

    def _heal(self, fault: Fault) -> None:
        if fault.kind.target is not Target.CONSUMER:
            self.servers.heal(fault)
        elif fault.kind.act is Act.STOP:
            self._consumers[fault.number].process.send_signal(signal.SIGCONT)
        else:
            self._consumers[fault.number] = self._start(fault.number)

    def _mend(self) -> bool:
        """Start servers again that ended themselves, and say whether one had; consumers never do."""
        self.feeding.check()
        ended = len(self.servers.ended_by_themselves)
        self.servers.mend()
        for number, consumer in enumerate(self._consumers):
            code = consumer.process.poll()
            assert code is None, f"consumer {number} ended by itself with {code}\n{_tail(consumer)}"
        return len(self.servers.ended_by_themselves) > ended

    def _look(self) -> Places:
        assert self._onlooker is not None
        self._seen = self._onlooker.look() or self._seen
        return self._seen

    def _until(self, holds: Callable[[], bool], what: str, seconds: float | None = None) -> None:
        seconds = self.servers.recover_s if seconds is None else seconds
        until_s = time.monotonic() + seconds
        while not holds():
            if self._mend():
                until_s = time.monotonic() + seconds
            assert time.monotonic() < until_s, f"after {seconds:.0f} s they do not {what}\n{self._state()}"
            time.sleep(_LOOK_S)

    def _state(self) -> str:
        unanswered = self._onlooker.unanswered if self._onlooker else []
        lines = [f"places: {self._seen}, {len(unanswered)} looks without an answer since: {unanswered[-1:]}"]
        for number, consumer in enumerate(self._consumers):
            lines += [f"consumer {number}: {consumer.reasons()}", _tail(consumer)]
        return "\n".join(lines)

    def _rest(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)

    def _now_s(self) -> float:
        return time.monotonic() - self.began_s


def say(line: str) -> None:
    """Print progress; pytest shows it if the test fails."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _tail(consumer: Running) -> str:
    """The end of its log, without each attempt to connect."""
    lines = consumer.log.read_text(errors="replace").splitlines()
    return "\n".join([line.rstrip() for line in lines if "Connect to ipv4" not in line][-_LOG_LINES:])
