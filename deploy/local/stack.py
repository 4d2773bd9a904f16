"""Kafka, HBase and a gateway for a developer: ``python -m deploy.local.stack up|down|status``.

One of each, or with ``up --cluster`` three brokers and two region servers.

``stack/state.json`` in the cache has ports and processes, next to the servers' data and logs; each user has one stack,
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from deploy.local import fetch, java
from deploy.local.cluster import PORTS as CLUSTER_PORTS
from deploy.local.cluster import cluster_of
from deploy.local.cluster import launch as launch_cluster
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.kafka import KafkaBroker
from deploy.local.packages import MissingTools
from deploy.local.ports import free_ports, is_free
from deploy.local.process import Process
from deploy.local.server import Server, ServerFailed, launch_each

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
"""The preferred ports, by name. A random port replaces one that is taken."""
_HEAPS_MB: Final = {"kafka": 512, "hbase": 1024, "gateway": 512}
_SINGLE: Final = "single"
_CLUSTER: Final = "cluster"
"""The layouts in the state file. The data of a cluster is in the folder ``cluster``."""
_LAYOUTS: Final = {_SINGLE: "one server of each kind", _CLUSTER: "a cluster"}
_REGIONS: Final = 4
_DUPWATCH: Final = "from consumer.cli import main; main()"
"""Runs the checkout's own dupwatch, whatever is on the PATH."""
_MIB: Final = 1 << 20
_MINUTE_S: Final = 60


class Stack(NamedTuple):
    """The servers of the stack, running or not.

    ``servers`` has them by their names in the state file, each after the servers that it needs. ``launch`` starts some
    of them, and calls its second argument after each. ``kafka`` are the bootstrap servers, ``conf`` the configuration
    for clients of HBase.
    """

    layout: str
    ports: Mapping[str, int]
    servers: Mapping[str, Server]
    launch: Callable[[Sequence[Server], Callable[[], None]], None]
    kafka: str
    conf: Path
    gateway: ThriftGateway

    @property
    def addresses(self) -> tuple[str, str]:
        """The value for ``--source`` up to the topic, and the value for ``--store``."""
        return f"kafka://{self.kafka}", self.store(NAMESPACE)

    def store(self, namespace: str) -> str:
        """Return the value for ``--store`` for tables in this namespace."""
        return f"hbase://{self.gateway.address}/{namespace}"

    @property
    def shell(self) -> str:
        """The value for ``dupwatch store init --shell``, usable in any folder."""
        program = [sys.executable, "-m", "deploy.local.shell", "--conf", str(self.conf)]
        return shlex.join(["env", f"PYTHONPATH={_ROOT}", *program])


def up(owner: int | None = None, *, cluster: bool = False) -> Stack:
    """Start the servers that are not running, and create the tables.

    The started servers are killed when ``owner`` ends. Raises ``ServerFailed``, ``MissingTools``, and
    ``CalledProcessError`` if Maven fails.
    """
    with _locked():
        stack = _stack(_state(), _CLUSTER if cluster else _SINGLE)
        missing = [server for server in stack.servers.values() if not server.alive]
        for server in missing:
            server.owner = owner
        # A gateway that has lost its HBase finds the new one by itself, since ports stay the same.
        # If this process ends between two launches, the next ``up`` finds the servers.
        stack.launch(missing, lambda: _write_state(stack))
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
            for name, server in reversed(list(_stack(state, running=True).servers.items())):
                if server.alive:
                    server.stop()
                    ended.append(name)
        _state_file().unlink(missing_ok=True)
        if wipe:
            for name in (*_HEAPS_MB, _CLUSTER):
                shutil.rmtree(_folder() / name, ignore_errors=True)
    return ended


def status() -> list[tuple[str, ...]]:
    """Return name, process id, port, memory and running time of each server, as text; [] without a stack."""
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
    """Return the configuration for clients of the stack's HBase. Raises ``SystemExit`` if there is none yet."""
    conf = _conf(_state().get("layout", _SINGLE))
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
    processes = {name: server.process for name, server in stack.servers.items()}
    state = {"layout": stack.layout, "ports": dict(stack.ports), "processes": processes}
    unfinished = _state_file().with_suffix(".new")
    unfinished.write_text(json.dumps(state, indent=1))
    unfinished.rename(_state_file())


def _stack(state: dict[str, Any], layout: str | None = None, *, running: bool = False) -> Stack:
    """Return the servers at the ports of the state, or at free ones.

    With ``running``, neither Java nor jars are needed, but no server can be launched. Raises ``ServerFailed`` if
    servers of another layout run.
    """
    program, jars = ("", Path()) if running else (java.java(), fetch.jars())
    # A server that was not launched yet when the state was written has no process there.
    processes = {name: Process(*process) for name, process in state.get("processes", {}).items() if process}
    alive = any(process.alive for process in processes.values())
    found = state.get("layout", _SINGLE)
    if alive and layout not in (None, found):
        raise ServerFailed(f"The running stack is {_LAYOUTS[found]}; stop it first: make stack-down")
    layout = layout or found
    # New servers must find the servers that are still running. If none runs, a port may have been taken by now.
    ports = state["ports"] if running or alive else _free(CLUSTER_PORTS if layout == _CLUSTER else _PORTS)
    common = {"jars": jars, "java": program}
    stack = (_cluster if layout == _CLUSTER else _single)(ports, common)
    for name, server in stack.servers.items():
        server.process = processes.get(name) if layout == found else None
    return stack


def _single(ports: Mapping[str, int], common: dict[str, Any]) -> Stack:
    """Return one server of each kind."""
    own = {name: {"folder": _folder() / name, "heap_mb": heap, **common} for name, heap in _HEAPS_MB.items()}
    kafka = KafkaBroker(port=ports["kafka"], controller_port=ports["kafka-controller"], **own["kafka"])
    hbase = Hbase(
        zookeeper_port=ports["zookeeper"],
        master_port=ports["hbase-master"],
        region_port=ports["hbase-regions"],
        **own["hbase"],
    )
    gateway = ThriftGateway(port=ports["gateway"], zookeeper_port=ports["zookeeper"], **own["gateway"])
    servers: dict[str, Server] = {"kafka": kafka, "hbase": hbase, "gateway": gateway}

    return Stack(_SINGLE, ports, servers, launch_each, kafka.address, _conf(_SINGLE), gateway)


def _cluster(ports: Mapping[str, int], common: dict[str, Any]) -> Stack:
    """Return three brokers, two region servers, and what they need."""
    made = cluster_of(_folder() / _CLUSTER, ports, common)
    return Stack(
        _CLUSTER, ports, made.servers, partial(launch_cluster, made), made.address, _conf(_CLUSTER), made.gateway
    )


def _conf(layout: str) -> Path:
    hbase = Path(_CLUSTER, "hbase-master") if layout == _CLUSTER else Path("hbase")
    return _folder() / hbase / "conf"


def _free(preferred: Mapping[str, int]) -> dict[str, int]:
    others = iter(free_ports(len(preferred)))
    return {name: port if is_free(port) else next(others) for name, port in preferred.items()}


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
    commands.add_parser("up", help="start the servers, create the tables, print the addresses").add_argument(
        "--cluster", action="store_true", help="three brokers and two region servers"
    )
    commands.add_parser("down", help="stop the servers").add_argument(
        "--wipe", action="store_true", help="delete their data"
    )
    commands.add_parser("status", help="show the servers, their ports and memory")
    options = parser.parse_args(arguments)
    try:
        if options.command == "up":
            stack = up(cluster=options.cluster)
            _print([*stack.addresses, "", "Tables in another namespace:", f"  {init_command(stack, 'NAMESPACE')}"])
        elif options.command == "down":
            stopped = down(wipe=options.wipe)
            _print([f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running."])
        else:
            _print("{:<18}{:>9}{:>8}{:>10}  {}".format(*line) for line in (_HEADINGS, *status()))
    except (ServerFailed, MissingTools, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


_HEADINGS: Final = ("server", "process", "port", "memory", "runs")


def _print(lines: Iterator[str] | Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
