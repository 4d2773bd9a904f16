"""One broker, one HBase and its gateways for a developer: ``python -m deploy.local.stack up|down|status``.

What runs where stands in ``stack/state.json`` in the cache, beside the servers' data and logs; it is one stack for a
user, whichever checkout starts it. The servers outlive the command that starts them. ``down`` keeps the data,
``down --wipe`` does not.
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
"""What is taken where it is free; another port, by chance, where it is not."""
_HEAPS_MB: Final = {"kafka": 512, "hbase": 1024, "gateway": 512}
_REGIONS: Final = 4
_DUPWATCH: Final = "from consumer.cli import main; main()"
"""The checkout's own, whatever is on the PATH."""
_MIB: Final = 1 << 20
_MINUTE_S: Final = 60


class Stack(NamedTuple):
    """The servers of the stack, each as it runs or would run."""

    kafka: KafkaBroker
    hbase: Hbase
    gateway: ThriftGateway

    @property
    def servers(self) -> dict[str, Server]:
        """Each by the name that it has in the state."""
        return {"kafka": self.kafka, "hbase": self.hbase, "gateway": self.gateway}

    @property
    def addresses(self) -> tuple[str, str]:
        """What is given to ``--source`` and ``--store``."""
        return f"kafka://{self.kafka.address}", self.store(NAMESPACE)

    def store(self, namespace: str) -> str:
        """What is given to ``--store`` for tables in this namespace."""
        return f"hbase://{self.gateway.address}/{namespace}"

    @property
    def shell(self) -> str:
        """What is given to ``dupwatch store init --shell``, in whatever folder."""
        program = [sys.executable, "-m", "deploy.local.shell", "--conf", str(self.hbase.conf)]
        return shlex.join(["env", f"PYTHONPATH={_ROOT}", *program])


def up(owner: int | None = None) -> Stack:
    """Start what does not run yet, and make the tables; with an owner it all ends when that process does."""
    with _locked():
        stack = _stack(_state())
        missing = [server for server in stack.servers.values() if not server.alive]
        # A gateway that has lost its HBase finds the new one by itself, for ports stay what they were.
        for server in missing:
            server.owner = owner
            server.launch()
            # Whatever happens to us now, they will be found.
            _write_state(stack)
        for server in missing:
            server.wait()
        _make_tables(stack)
    return stack


def down(*, wipe: bool = False) -> list[str]:
    """End what runs, and with ``wipe`` forget what it held; the names of those that were ended."""
    with _locked():
        state = _state()
        ended = []
        if state:
            # The gateway goes first: it would wait for HBase.
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
    """A line for each server: name, process id, port, memory, for how long."""
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
    """The configuration with which a client reaches the stack's HBase."""
    conf = _folder() / "hbase" / "conf"
    if not conf.is_dir():
        raise SystemExit("There is no HBase here yet; start it with: make stack-up")
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
    """The servers at the ports of the state, or at new ones; ``running``: they need neither Java nor jars any more."""
    program, jars = ("", Path()) if running else (java.java(), fetch.jars())
    # A server that was yet to be launched when the state was written has nothing there.
    processes = {name: Process(*one) for name, one in state.get("processes", {}).items() if one}
    alive = any(process.alive for process in processes.values())
    # Those that still run have to be found by the others; where none does, somebody may have taken a port since.
    ports = state["ports"] if running or alive else _free()
    given: dict[str, dict[str, Any]] = {
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
        KafkaBroker(port=ports["kafka"], controller_port=ports["kafka-controller"], **given["kafka"]),
        Hbase(
            zookeeper_port=ports["zookeeper"],
            master_port=ports["hbase-master"],
            region_port=ports["hbase-regions"],
            **given["hbase"],
        ),
        ThriftGateway(port=ports["gateway"], zookeeper_port=ports["zookeeper"], **given["gateway"]),
    )


def _free() -> dict[str, int]:
    others = iter(free_ports(len(_PORTS)))
    return {name: port if is_free(port) else next(others) for name, port in _PORTS.items()}


def _make_tables(stack: Stack) -> None:
    """Let dupwatch make its tables with our shell."""
    init = [sys.executable, "-c", _DUPWATCH, "store", "init", "--apply", "--regions", str(_REGIONS)]
    init += ["--store", stack.addresses[1], "--shell", stack.shell]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    ran = subprocess.run(init, check=False, capture_output=True, text=True, env=environment)  # noqa: S603  # it is ours
    if ran.returncode:
        raise ServerFailed(f"the tables could not be made:\n{ran.stdout}{ran.stderr}")


def init_command(stack: Stack, namespace: str) -> str:
    """The command that makes the tables of a store in another namespace, to be typed in whatever folder."""
    program = str(Path(sys.executable).with_name("dupwatch"))
    return shlex.join([program, "store", "init", "--apply", "--store", stack.store(namespace), "--shell", stack.shell])


def _duration(seconds: float) -> str:
    minutes = int(seconds) // _MINUTE_S
    return f"{minutes // _MINUTE_S} h {minutes % _MINUTE_S} min" if minutes else f"{seconds:.0f} s"


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands; the exit code."""
    parser = argparse.ArgumentParser(prog="stack", description="Kafka and HBase on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start what does not run, make the tables, print the addresses")
    commands.add_parser("down", help="end what runs").add_argument(
        "--wipe", action="store_true", help="forget the data"
    )
    commands.add_parser("status", help="what runs where")
    asked = parser.parse_args(arguments)
    try:
        if asked.command == "up":
            stack = up()
            _tell([*stack.addresses, "", "Tables in another namespace:", f"  {init_command(stack, 'NAMESPACE')}"])
        elif asked.command == "down":
            ended = down(wipe=asked.wipe)
            _tell([f"Ended {', '.join(ended)}." if ended else "Nothing was running."])
        else:
            _tell("{:<10}{:>9}{:>8}{:>10}  {}".format(*line) for line in (_HEADINGS, *status()))
    except (ServerFailed, MissingTools) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


_HEADINGS: Final = ("server", "process", "port", "memory", "runs")


def _tell(lines: Iterator[str] | Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
