"""One broker, one HBase and its gateway for a developer: ``python -m deploy.local.stack up|down|status``.

``stack/state.json`` in the cache has ports and processes, beside the servers' data and logs; each user has one stack,
whichever checkout starts it. The servers keep running after the command. ``down`` keeps the data, ``down --wipe``
deletes it.
"""

import argparse
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from deploy.local import fetch, java
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.kafka import KafkaBroker
from deploy.local.packages import MissingTools
from deploy.local.ports import free_ports, is_free
from deploy.local.process import Process
from deploy.local.server import Server, ServerFailed

NAMESPACE: Final = "dupwatch"
_ROOT: Final = Path(__file__).parents[2]
_PORTS: Final = {
    "kafka": 19092,
    "kafka-controller": 19093,
    "zookeeper": 12181,
    "hbase-master": 16000,
    "hbase-regions": 16020,
    "gateway": 19090,
}
"""The preferred ports; where one is taken, a random one is used."""
_HEAPS_MB: Final = {"kafka": 512, "hbase": 1024, "gateway": 512}
_REGIONS: Final = 4
_DUPWATCH: Final = "from consumer.cli import main; main()"
"""Runs the checkout's own dupwatch, whatever is on the PATH."""
_MIB: Final = 1 << 20
_MINUTE_S: Final = 60


class Stack(NamedTuple):
    """The servers of the stack, running or not."""

    kafka: KafkaBroker
    hbase: Hbase
    gateway: ThriftGateway

    @property
    def servers(self) -> dict[str, Server]:
        """The servers by their names in the state file."""
        return {"kafka": self.kafka, "hbase": self.hbase, "gateway": self.gateway}

    @property
    def addresses(self) -> tuple[str, str]:
        """The values for ``--source`` and ``--store``."""
        return f"kafka://{self.kafka.address}", self.store(NAMESPACE)

    def store(self, namespace: str) -> str:
        """Return the value for ``--store`` for tables in this namespace."""
        return f"hbase://{self.gateway.address}/{namespace}"

    @property
    def shell(self) -> str:
        """The value for ``dupwatch store init --shell``, usable in any folder."""
        program = [sys.executable, "-m", "deploy.local.shell", "--conf", str(self.hbase.conf)]
        return shlex.join(["env", f"PYTHONPATH={_ROOT}", *program])


def up(owner: int | None = None) -> Stack:
    """Start the servers that are not running, and create the tables; with an owner all end when that process does."""
    with _locked():
        stack = _stack(_state())
        missing = [server for server in stack.servers.values() if not server.alive]
        # A gateway that has lost its HBase finds the new one by itself, since ports stay the same.
        for server in missing:
            server.owner = owner
            server.launch()
            # If this process ends now, the next one finds the servers.
            _write_state(stack)
        for server in missing:
            server.wait()
        _make_tables(stack)
    return stack


def down(*, wipe: bool = False) -> list[str]:
    """Stop all servers, and with ``wipe`` delete their data; return the names of those that were running."""
    with _locked():
        state = _state()
        ended = []
        if state:
            # The gateway first, since it would wait for HBase.
            for name, server in reversed(_stack(state, running=True).servers.items()):
                if server.alive:
                    server.stop()
                    ended.append(name)
        _state_file().unlink(missing_ok=True)
        if wipe:
            for name in _HEAPS_MB:
                shutil.rmtree(_folder() / name, ignore_errors=True)
    return ended


def status() -> list[tuple[str, ...]]:
    """Return a line for each server: name, process id, port, memory, running time."""
    state = _state()
    if not state:
        return []
    lines: list[tuple[str, ...]] = []
    for name, server in _stack(state, running=True).servers.items():
        port = str(state["ports"][{"hbase": "hbase-master"}.get(name, name)])
        if server.process is None or not server.alive:
            lines.append((name, "-", port, "-", "not running"))
            continue
        memory = f"{server.process.resident_bytes / _MIB:.0f} MiB"
        lines.append((name, str(server.process.pid), port, memory, f"since {_duration(server.process.age_s)}"))
    return lines


def conf_of_stack() -> Path:
    """Return the configuration for clients of the stack's HBase."""
    conf = _folder() / "hbase" / "conf"
    if not conf.is_dir():
        raise SystemExit("There is no local HBase yet; start it with: make stack-up")
    return conf


def _folder() -> Path:
    return fetch.home() / "stack"


def _state_file() -> Path:
    return _folder() / "state.json"


@contextmanager
def _locked() -> Iterator[None]:
    _folder().mkdir(parents=True, exist_ok=True)
    with (_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _state() -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(_state_file().read_text())
    except FileNotFoundError:
        return {}
    return state


def _write_state(stack: Stack) -> None:
    ports = {
        "kafka": stack.kafka.port,
        "kafka-controller": stack.kafka.controller_port,
        "zookeeper": stack.hbase.zookeeper_port,
        "hbase-master": stack.hbase.master_port,
        "hbase-regions": stack.hbase.region_port,
        "gateway": stack.gateway.port,
    }
    state = {"ports": ports, "processes": {name: server.process for name, server in stack.servers.items()}}
    unfinished = _state_file().with_suffix(".new")
    unfinished.write_text(json.dumps(state, indent=1))
    unfinished.rename(_state_file())


def _stack(state: dict[str, Any], *, running: bool = False) -> Stack:
    """Return the servers at the ports of the state, or at new ones; ``running`` servers need neither Java nor jars."""
    program, jars = ("", Path()) if running else (java.java(), fetch.jars())
    # A server that was not launched yet when the state was written has no process there.
    processes = {name: Process(*process) for name, process in state.get("processes", {}).items() if process}
    alive = any(process.alive for process in processes.values())
    # Servers must find those that are still running; if none is, a port may have been taken by now.
    ports = state["ports"] if running or alive else _free()
    arguments: dict[str, dict[str, Any]] = {
        name: {
            "folder": _folder() / name,
            "jars": jars,
            "java": program,
            "heap_mb": heap,
            "process": processes.get(name),
        }
        for name, heap in _HEAPS_MB.items()
    }
    return Stack(
        KafkaBroker(port=ports["kafka"], controller_port=ports["kafka-controller"], **arguments["kafka"]),
        Hbase(
            zookeeper_port=ports["zookeeper"],
            master_port=ports["hbase-master"],
            region_port=ports["hbase-regions"],
            **arguments["hbase"],
        ),
        ThriftGateway(port=ports["gateway"], zookeeper_port=ports["zookeeper"], **arguments["gateway"]),
    )


def _free() -> dict[str, int]:
    others = iter(free_ports(len(_PORTS)))
    return {name: port if is_free(port) else next(others) for name, port in _PORTS.items()}


def _make_tables(stack: Stack) -> None:
    """Let dupwatch create its tables with our shell."""
    init = [sys.executable, "-c", _DUPWATCH, "store", "init", "--apply", "--regions", str(_REGIONS)]
    init += ["--store", stack.addresses[1], "--shell", stack.shell]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    ran = subprocess.run(init, check=False, capture_output=True, text=True, env=environment)  # noqa: S603  # it is ours
    if ran.returncode:
        raise ServerFailed(f"the tables could not be created:\n{ran.stdout}{ran.stderr}")


def init_command(stack: Stack, namespace: str) -> str:
    """Return the command that creates the tables of a store in another namespace, usable in any folder."""
    program = str(Path(sys.executable).with_name("dupwatch"))
    return shlex.join([program, "store", "init", "--apply", "--store", stack.store(namespace), "--shell", stack.shell])


def _duration(seconds: float) -> str:
    minutes = int(seconds) // _MINUTE_S
    return f"{minutes // _MINUTE_S} h {minutes % _MINUTE_S} min" if minutes else f"{seconds:.0f} s"


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands; return the exit code."""
    parser = argparse.ArgumentParser(prog="stack", description="Kafka and HBase on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the servers, create the tables, print the addresses")
    commands.add_parser("down", help="stop the servers").add_argument(
        "--wipe", action="store_true", help="delete their data"
    )
    commands.add_parser("status", help="show the servers, their ports and memory")
    options = parser.parse_args(arguments)
    try:
        if options.command == "up":
            stack = up()
            _print([*stack.addresses, "", "Tables in another namespace:", f"  {init_command(stack, 'NAMESPACE')}"])
        elif options.command == "down":
            stopped = down(wipe=options.wipe)
            _print([f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running."])
        else:
            _print("{:<10}{:>9}{:>8}{:>10}  {}".format(*line) for line in (_HEADINGS, *status()))
    except (ServerFailed, MissingTools) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


_HEADINGS: Final = ("server", "process", "port", "memory", "runs")


def _print(lines: Iterator[str] | Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
