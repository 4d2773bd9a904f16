"""Whether a run is alive, and whether it can judge: what is known of its parts, and nothing of HTTP."""

import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from consumer.text.redaction import redacted

HEARTBEAT_MAX_S: Final = 60.0
MAIN: Final = "main"
_CLIENT: Final = "client"

Part = Literal["source", "sink", "store"]


class Late(NamedTuple):
    """A thread that has not turned for too long: which one, for how many seconds, and its stack as text."""

    thread: str
    silent_s: float
    stack: str


class Health:
    """The state of one run, told by its threads and read by others; every method may be called from any thread.

    ``grouped`` says that the source is shared: its thread has to beat once it has begun to, and nothing can be judged
    before it has an assignment, be it of no partition. The main thread has to turn while it starts. Every thread that
    has records has to turn while it works on them; it rests where it waits for more, however long none come. ``clock``
    gives seconds that never go back.
    """

    def __init__(
        self,
        heartbeat_max_s: float = HEARTBEAT_MAX_S,
        *,
        grouped: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._heartbeat_max_s = heartbeat_max_s
        self._clock = clock
        self._lock = threading.Lock()
        # The client's thread counts from its first turn on: until then the main thread waits for stores and brokers.
        self._turned_s: dict[str, float] = {MAIN: clock()} if grouped else {}
        self._threads: dict[str, int] = {MAIN: threading.get_ident()}
        self._assigned: int | None = None if grouped else 0
        self._troubles: dict[Part, str] = {}
        self._ending = False
        self._held: dict[str, str] = {}

    def late(self) -> list[Late]:
        """The threads that hang, as far as can be told; none of a run that is alive."""
        now_s = self._clock()
        with self._lock:
            silent = {thread: now_s - turned_s for thread, turned_s in self._turned_s.items()}
            threads = dict(self._threads)
        return [
            Late(thread, silent_s, _stack(threads.get(thread)))
            for thread, silent_s in sorted(silent.items())
            if silent_s > self._heartbeat_max_s
        ]

    def reasons(self) -> list[str]:
        """Why nothing can be judged now; none where it can."""
        with self._lock:
            reasons = [f"{part}: {why}" for part, why in sorted(self._troubles.items())]
            if self._assigned is None:
                reasons.append("source: no assignment of partitions has come yet")
            if self._ending:
                reasons.append("run: it is coming to its end")
        return reasons

    def held(self) -> dict[str, str]:
        """The partitions that are held, and why. A run that holds some is ready all the same: it reads the others."""
        with self._lock:
            return dict(self._held)

    def holding(self, held: Mapping[str, str]) -> None:
        """These partitions are held, each for a reason, and no others."""
        with self._lock:
            self._held = dict(held)

    def working(self, thread: str = MAIN) -> None:
        """This thread begins to work, or turns while it does: called at least once in the time allowed."""
        with self._lock:
            self._turned_s[thread] = self._clock()
            self._threads[thread] = threading.get_ident()

    def resting(self, thread: str = MAIN) -> None:
        """This thread waits for records, or for another to take what it has made."""
        with self._lock:
            self._turned_s.pop(thread, None)

    def helped(self) -> None:
        """A process that works for the main thread has turned; where that one rests, nothing."""
        with self._lock:
            if MAIN in self._turned_s:
                self._turned_s[MAIN] = self._clock()

    def ending(self) -> None:
        """The run was asked to stop."""
        with self._lock:
            self._ending = True

    def store_trouble(self, why: str | None) -> None:
        """The store is out of reach, or is back (None)."""
        self._trouble("store", why)

    def beat(self) -> None:
        """The source's thread turns."""
        with self._lock:
            self._turned_s[_CLIENT] = self._clock()
            self._threads[_CLIENT] = threading.get_ident()

    def assigned(self, partitions: int) -> None:
        """So many partitions are this consumer's; none is an assignment too."""
        with self._lock:
            self._assigned = partitions

    def source_trouble(self, why: str | None) -> None:
        """The brokers cannot be reached, or can again (None)."""
        self._trouble("source", why)

    def sink_trouble(self, why: str | None) -> None:
        """Nothing can be sent, or something can again (None)."""
        self._trouble("sink", why)

    def _trouble(self, part: Part, why: str | None) -> None:
        with self._lock:
            if why is None:
                self._troubles.pop(part, None)
            else:
                self._troubles[part] = redacted(why)


def main_stack() -> str:
    """Where the main thread is: files, lines and names, and no values."""
    return _stack(threading.main_thread().ident)


def _stack(thread: int | None) -> str:
    # No public function tells the frames of another thread.
    frame = sys._current_frames().get(-1 if thread is None else thread)  # noqa: SLF001
    return "it is not there\n" if frame is None else "".join(traceback.format_stack(frame))
