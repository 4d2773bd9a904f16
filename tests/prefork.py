"""The command as a process that is forked off one which has imported everything, instead of starting from nothing.

Most of what a short command costs is its imports and its dictionaries, and tests start it some two hundred times. A
process started here has an id, a session, signals, descriptors, environment, folder and end of its own, as any other;
with its siblings it shares the seed of its hashes. ``tests.cli.command.start_anew`` starts it as its users do.

A process of tests has one preparer, from the first command on until its own end::

    test ── argv, environment, folder, descriptors ──▶ preparer ── fork ──▶ the command
         ◀── its process id ──────────────────────────────┘ └── how it ended, when it has ──▶ the last descriptor
"""

import atexit
import gc
import io
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from argon2 import PasswordHasher

from consumer.cli import main
from consumer.cli.commands import MODULES
from consumer.console.i18n import read_languages
from consumer.fingerprint.tokenizers import RustTokenizer
from consumer.lifecycle.stopping import accept_signals
from consumer.reviews import passwords
from consumer.workers.word_files import load_lexicon

_NUMBER: Final = struct.Struct("!i")
_DESCRIPTORS: Final = 4
_ROOT: Final = Path(__file__).parents[1]
_ENTERED: Final = (
    "wiring.file_run",
    "wiring.service",
    "wiring.console",
    "reviews.pairs.reviewed_pairs",
)
"""What commands import when they come to their work, of this project."""
_LIBRARIES: Final = (
    "confluent_kafka.admin",
    "storage.hbase.store",
    "storage.lmdb",
    "multiprocessing.popen_spawn_posix",
    "psycopg",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "typer.rich_utils",
)


class Request(NamedTuple):
    """What a process is to be."""

    argv: list[str]
    environment: dict[str, str]
    folder: str


class _Child(NamedTuple):
    """A process that was forked off, and the descriptor where its end is reported."""

    process: int
    report: int


class Forked(subprocess.Popen[bytes]):
    """``Popen`` of a command of this project's, in a session of its own; it takes the streams, ``env`` and ``cwd``.

    What differs is how a process is made and how it is heard of: it is a child of the preparer's.
    """

    _status: int | None = None
    begun_s: float

    def _execute_child(self, args: Any, *rest: Any) -> None:  # noqa: ANN401  # as Popen calls it
        """Have it made, with the ends of the pipes that are its own; they follow a dozen of other options."""
        _, _, _, _, cwd, env, _, _, _, *pipes = rest
        stdin, _, _, stdout, _, stderr = pipes[:6]
        streams = [own if own != -1 else standard for standard, own in enumerate((stdin, stdout, stderr))]
        request = Request(
            [os.fspath(argument) for argument in args], dict(env or os.environ), os.fspath(cwd or Path.cwd())
        )
        self._status, theirs = os.pipe()
        try:
            self.pid = _preparer().start(request, [*streams, theirs])
            self._child_created = True
            self.begun_s = time.time()
            _FORKED.add(self)
        finally:
            os.close(theirs)
            self._close_pipe_fds(*pipes[:6])  # type: ignore[attr-defined]  # Popen's own

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """As ``os.waitpid``, of somebody else's child."""
        assert self._status is not None
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        status = os.read(self._status, _NUMBER.size)
        os.close(self._status)
        self._status = None
        # Without a word its preparer has gone; the process may be there still.
        assert status, "the process that prepares others has ended"
        return self.pid, _NUMBER.unpack(status)[0]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:  # noqa: ANN401  # as Popen calls it
        with self._waitpid_lock:  # type: ignore[attr-defined]  # Popen's own
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


_FORKED: Final[WeakSet[Forked]] = WeakSet()


def kill_those_begun(since_s: float) -> None:
    """Kill every process that was begun since then (``time.time()``) and is still there, and close what leads to it.

    A failed test leaves its process behind. It would be found when memory is next collected, and count as a failure of
    whichever test runs by then.
    """
    for process in [process for process in _FORKED if process.begun_s >= since_s]:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class _Preparer:
    """The process that others are forked off. Its threads of this process take turns."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._turn = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.prefork", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], cwd=_ROOT, stdin=subprocess.DEVNULL, env=environment,
                start_new_session=True,
            )  # fmt: skip

    def close(self) -> None:
        """End it; what was forked off goes on."""
        self._control.close()
        self._process.wait()

    def start(self, request: Request, descriptors: list[int]) -> int:
        """Its process id."""
        asked = json.dumps(request).encode()
        with self._turn:
            socket.send_fds(self._control, [_NUMBER.pack(len(asked))], descriptors)
            self._control.sendall(asked)
            status = self._control.recv(_NUMBER.size, socket.MSG_WAITALL)
        assert status, "the process that prepares others has ended"
        return int(_NUMBER.unpack(status)[0])


@cache
def _preparer() -> _Preparer:
    from tests.cli.command import environment  # noqa: PLC0415  # where this is imported

    # Libraries look into it when they are imported.
    return _Preparer(environment())


def forkserver() -> ForkServerContext:
    """``multiprocessing``'s own of this kind, for processes that judge or write and are no commands."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["consumer.judge.detector", "storage.lmdb", "storage.hbase.store", "tests.builders"])
    return context


def _serve(control: socket.socket) -> Request:
    """Fork off what is asked for; returns in each of the children, and in the preparer never.

    The end of a child is read from a descriptor of its own. SIGCHLD would do only where nobody has blocked it.
    """
    accept_signals()
    children: dict[int, _Child] = {}
    while True:
        readable, _, _ = select.select([control.fileno(), *children], [], [])
        for descriptor in set(readable) & children.keys():
            os.close(descriptor)
            _report_end(children.pop(descriptor))
        if control.fileno() not in readable:
            continue
        length, descriptors, _, _ = socket.recv_fds(control, _NUMBER.size, _DESCRIPTORS)
        if not length:
            os._exit(0)
        (size,) = _NUMBER.unpack(length)
        request = Request(*json.loads(control.recv(size, socket.MSG_WAITALL)))
        process = os.fork()
        if not process:
            os.setsid()
            # Told by the process itself, once it has a session: whoever asked may signal its group at once.
            control.sendall(_NUMBER.pack(os.getpid()))
            _take_place(request, descriptors[:3])
            return request
        children[os.pidfd_open(process)] = _Child(process, descriptors.pop())
        for own in descriptors:
            os.close(own)


def _report_end(child: _Child) -> None:
    _, status = os.waitpid(child.process, 0)
    with suppress(BrokenPipeError):
        # Whoever asked may have stopped listening.
        os.write(child.report, _NUMBER.pack(status))
    os.close(child.report)


def _take_place(request: Request, streams: list[int]) -> None:
    """Be the process that was asked for, in all that a new one gets from whoever starts it."""
    for standard, own in enumerate(streams):
        os.dup2(own, standard)
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)  # noqa: PTH208  # numbers, not paths
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv[:] = request.argv
    sys.path[0] = str(Path(request.argv[0]).parent)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            open(standard, mode, closefd=False),  # noqa: SIM115  # a descriptor, open to the end
            encoding="utf-8", errors=errors, line_buffering=standard == 2 or os.isatty(standard),
        )
        for standard, (mode, errors) in enumerate([("rb", "strict"), ("wb", "strict"), ("wb", "backslashreplace")])
    )  # fmt: skip
    # Every sibling would draw the same lots.
    random.seed()
    # Processes that it spawns import this again, as they do with the script of the installed command.
    sys.modules["__main__"] = ModuleType("__main__")
    sys.modules["__main__"].__file__ = request.argv[0]


def _prepare() -> None:
    """Do what every command does before it comes to its own work."""
    for name in (*_ENTERED, *(f"cli.{module}" for module in MODULES.values())):
        import_module(f"consumer.{name}")
    for name in _LIBRARIES:
        import_module(name)
    # With the least work: many commands make passwords and check them, and no test of theirs is about the cost.
    passwords._HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # type: ignore[misc]
    assert load_lexicon().idf
    assert read_languages()
    RustTokenizer().cut("\u6e21\u8239")
    gc.freeze()


def _run_and_end() -> None:
    """Run the command and end the process as the interpreter would, but leave its modules alone.

    Clearing them writes to most of the memory shared with the preparer, and each page written to is copied. That costs
    more than a short command's own work. A command whose daemon threads are still running ends in the interpreter's
    own way, because that is where clearing modules can fail.
    """
    try:
        main()
    except SystemExit as ended:
        code = ended.code
        if not isinstance(code, int) or any(thread.daemon for thread in threading.enumerate()):
            raise
    else:
        return
    threading._shutdown()  # type: ignore[attr-defined]  # the interpreter's own first step
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    # The interpreter finds again what could not be written, and reports it.
    sys.exit(code)


if __name__ == "__main__":
    _prepare()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _run_and_end()
