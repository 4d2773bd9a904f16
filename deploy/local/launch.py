"""Runs a detached program and prints its process id. As a script: ``launch.py OWNER LOG PROGRAM [ARGUMENT ...]``.

``launch.py watch OWNER PID`` only ties a running program to an owner.

The program gets its own session, so that neither a closed terminal nor Ctrl-C ends it; its output is appended to the
log. It is not a child of the calling process, which may end. OWNER is a process id, or 0: with an owner the program is
killed as soon as the owner has ended in any way. The kernel's parent death signal does not suffice: it is tied to a
thread and to the parent, but the servers of tests are started by one process and belong to another. So a second small
process waits for both.
"""

import os
import select
import signal
import sys


def _watch(owner: int, program: int) -> None:
    """Kill the program when the owner ends. Return when either has ended."""
    try:
        program_end = os.pidfd_open(program)
    except ProcessLookupError:
        return
    try:
        owner_end = os.pidfd_open(owner)
    except ProcessLookupError:
        signal.pidfd_send_signal(program_end, signal.SIGKILL)
        return
    ended = select.poll()
    ended.register(owner_end, select.POLLIN)
    ended.register(program_end, select.POLLIN)
    if all(descriptor != program_end for descriptor, _ in ended.poll()):
        signal.pidfd_send_signal(program_end, signal.SIGKILL)


def _accept_signals() -> None:
    """Restore default signals: a program that inherits an ignored or blocked SIGTERM could only be killed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _become(owner: int, log: str, command: list[str], report: int) -> None:
    """Turn this process into the program, with a watcher as its child if it has an owner."""
    os.setsid()
    _accept_signals()
    nowhere = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor, standard in ((nowhere, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, standard)
    program = os.getpid()
    # Report before the watcher starts: if the owner has ended, the watcher kills the program at once.
    os.write(report, str(program).encode())
    if owner and os.fork() == 0:
        os.close(report)
        _watch(owner, program)
        os._exit(0)
    os.execvp(command[0], command)  # noqa: S606  # no shell is needed


def main(arguments: list[str]) -> None:
    """Start a program and print its process id, or watch a running one."""
    if arguments[0] == "watch":
        _watch(*map(int, arguments[1:]))
        return
    owner, log, *command = arguments
    pipe, report = os.pipe()
    if os.fork() == 0:
        os.close(pipe)
        _become(int(owner), log, command, report)
    os.close(report)
    # The pipe is closed when the program's own code starts, or fails to start.
    pid = b"".join(iter(lambda: os.read(pipe, 64), b""))
    sys.stdout.write(pid.decode() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
