"""Real servers for tests: started once in a run by whoever needs them first, and gone with the run whatever happens.

A plugin of pytest's. The process that was called (under xdist the controller) makes a folder and names it in its
environment, which its workers inherit. A worker that needs a server takes the folder's lock, and starts it where the
folder does not say where it is. The servers belong to the controller: they outlive a worker, and are killed when the
controller ends, even by kill -9 (deploy/local/launch.py).

Tests that use one of these fixtures have the mark ``servers``. Without Java they are skipped, in CI they fail.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any, Final

import happybase
import pytest

from deploy.local import fetch, java, shell
from deploy.local.cluster import PORTS, Cluster, cluster_of
from deploy.local.cluster import launch as launch_cluster
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.java_server import JavaServer
from deploy.local.kafka import KafkaBroker
from deploy.local.packages import MissingTools
from deploy.local.ports import free_ports
from deploy.local.process import Process
from deploy.local.server import Server, ServerFailed, start_together
from storage.hbase.schema import PrefixLoad, Schema, schema_of
from storage.hbase.table_script import render_script

# Not DUPWATCH_...: those are settings, and an unknown one is an error.
_FOLDER: Final = "TEST_SERVERS_FOLDER"
OWNER_VARIABLE: Final = "TEST_SERVERS_OWNER"
"""Names the process that servers end with."""
SHARED_VARIABLE: Final = "TEST_SERVERS_SHARED"
"""Names a folder whose servers several runs share, one after the other; whoever sets it ends them."""
_WORKER: Final = "PYTEST_XDIST_WORKER"
_WORKERS: Final = "PYTEST_XDIST_WORKER_COUNT"
COMMON: Final = "common"
"""The namespace of a worker."""
MOVED: Final = "moved"
"""A second one for tests that need two. Its tables are made when it is asked for first, which takes seconds."""
# A test's rows are deleted one by one, and every scan passes over what is left of them until a compaction. With 1 MiB
# in memory a test that scans all the time took three times as long in a used namespace.
_SOON_ON_DISK: Final = MappingProxyType(
    {
        "hbase.hregion.memstore.flush.size": str(1 << 17),
        "hbase.hregion.memstore.flush.size.limit": str(1 << 17),
        "hbase.hstore.compaction.min": "2",
    }
)
_KAFKA: Final = MappingProxyType(
    {
        # Tests send messages of long ago, which would be gone as soon as the broker looks for what has expired.
        "log.retention.ms": "-1",
        # With the new group protocol a member hears of a rebalance at its next heartbeat.
        "group.consumer.min.heartbeat.interval.ms": "200",
        "group.consumer.heartbeat.interval.ms": "300",
    }
)
CLUSTER_WAIT_S: Final = 300.0
"""Ten servers start at once, on a machine that may be busy."""
_CLUSTER_REGIONS: Final = 4
"""Of each table that is split, so that each region server has some."""
_SHARES: Final = tuple(PrefixLoad(lane << 4 | number, 1) for lane in (0, 1) for number in range(4))
"""Of the postings of an article with the default plan."""
_TTL_S: Final = 365 * 86_400
_ROWS: Final = 1000
_CLOCK_STEP_S: Final = 0.002


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder in which the servers of this run are."""
    if hasattr(config, "workerinput"):
        return
    if shared := os.environ.get(SHARED_VARIABLE):
        os.environ[_FOLDER] = shared
    else:
        os.environ[_FOLDER] = mkdtemp(prefix="dupwatch-servers-")
        os.environ[OWNER_VARIABLE] = str(os.getpid())


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers that were started, and remove what they wrote."""
    if not hasattr(config, "workerinput") and SHARED_VARIABLE not in os.environ:
        end_servers(servers_folder())


def end_servers(folder: Path) -> None:
    """End the servers that were started from this folder, and remove what they wrote."""
    for state in folder.glob("*.json"):
        for process in json.loads(state.read_text())["processes"]:
            Process(*process).kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def hbase_servers() -> tuple[Hbase, ThriftGateway]:
    """HBase and its gateway, which all tests of the run share: a test that harms them takes ``own_hbase``."""
    with servers_locked():
        state = server_state("hbase")
        hbase, gateway = _hbase(servers_folder() / "hbase", state["ports"] if state else None)
        if state:
            hbase.process, gateway.process = (Process(*identity) for identity in state["processes"])
        else:
            start_together([hbase, gateway])
            hbase.keep_classes()
            ports = [hbase.zookeeper_port, hbase.master_port, hbase.region_port, gateway.port]
            write_server_state("hbase", ports, [hbase, gateway])
            workers = [f"gw{number}" for number in range(int(os.environ.get(_WORKERS, "0")))] or ["main"]
            names = [_namespace(worker, COMMON) for worker in workers]
            shell.make_tables(hbase.conf, "".join(render_script(_schema(name)) for name in names))
    return hbase, gateway


@pytest.fixture(scope="session")
def hbase_address(hbase_servers: tuple[Hbase, ThriftGateway]) -> str:
    """Where the shared gateway listens: "127.0.0.1:PORT"."""
    return hbase_servers[1].address


@pytest.fixture
def hbase_namespace(hbase_address: str) -> str:
    """A namespace whose tables are there and empty; the same for all tests of a worker."""
    return fresh_namespace(hbase_address)


@pytest.fixture
def new_gateway(hbase_servers: tuple[Hbase, ThriftGateway], tmp_path: Path) -> Iterator[Callable[..., ThriftGateway]]:
    """Start a further gateway to the shared HBase, which is the test's to kill; it takes fields as keywords."""
    hbase, _ = hbase_servers
    started: list[JavaServer] = []

    def start(**fields: Any) -> ThriftGateway:  # noqa: ANN401  # whichever of the gateway's
        folder = tmp_path / f"gateway-{len(started)}"
        given: dict[str, Any] = {"port": free_ports(1)[0], "zookeeper_port": hbase.zookeeper_port} | fields
        gateway = ThriftGateway(folder=folder, **given, **_common())
        started.append(gateway)
        gateway.start()
        return gateway

    with _ended(started):
        yield start


@pytest.fixture
def own_hbase(tmp_path: Path) -> Iterator[Callable[[str], tuple[Hbase, ThriftGateway]]]:
    """Start an HBase and a gateway with tables in this namespace, which are the test's to kill."""
    started: list[JavaServer] = []

    def start(namespace: str) -> tuple[Hbase, ThriftGateway]:
        with servers_or_skip():
            hbase, gateway = _hbase(tmp_path / f"hbase-{len(started)}", None)
            started.extend((hbase, gateway))
            start_together([hbase, gateway])
            shell.make_tables(hbase.conf, render_script(_schema(namespace)))
        return hbase, gateway

    with _ended(started):
        yield start


@pytest.fixture(scope="session")
def kafka_address() -> str:
    """Where the shared broker listens: "127.0.0.1:PORT"."""
    with servers_locked():
        state = server_state("kafka")
        port, controller_port = state["ports"] if state else free_ports(2)
        broker = _kafka(servers_folder() / "kafka", port, controller_port)
        if not state:
            broker.start()
            write_server_state("kafka", [port, controller_port], [broker])
    return broker.address


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Callable[..., KafkaBroker]]:
    """Start a broker, which is the test's to kill; it takes its settings as a mapping, and fields as keywords."""
    started: list[JavaServer] = []

    def start(settings: Mapping[str, str] | None = None, **fields: Any) -> KafkaBroker:  # noqa: ANN401  # whichever of the broker's
        with servers_or_skip():
            port, controller_port = free_ports(2)
            broker = _kafka(tmp_path / f"kafka-{len(started)}", port, controller_port, settings or {}, **fields)
            started.append(broker)
            broker.start()
        return broker

    with _ended(started):
        yield start


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Start a cluster with tables in this namespace, which is the test's to kill; it takes settings of brokers too."""
    started: list[JavaServer] = []

    def start(namespace: str, settings: Mapping[str, str] | None = None, **fields: Any) -> Cluster:  # noqa: ANN401  # as for own_kafka
        with servers_or_skip():
            ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
            kafka = {"settings": _KAFKA | (settings or {}), **fields}
            made = cluster_of(tmp_path, ports, _common(), kafka=kafka, hbase=_SOON_ON_DISK)
            started.extend(made.servers.values())
            launch_cluster(made, started)
            for server in started:
                server.wait(CLUSTER_WAIT_S)
            schema = schema_of(namespace, _TTL_S, _SHARES, _CLUSTER_REGIONS, seen_ttl_s=_TTL_S)
            shell.make_tables(made.master.conf, render_script(schema))
        return made

    with _ended(started):
        yield start


def _schema(namespace: str) -> Schema:
    """Return all tables that a store may have."""
    return schema_of(namespace, _TTL_S, seen_ttl_s=_TTL_S)


def fresh_namespace(address: str, purpose: str = COMMON) -> str:
    """A namespace of the HBase behind this gateway, this worker's own, with all tables there and empty.

    Tables are emptied row by row: to make them anew takes seconds, and a test leaves few rows.
    """
    name = _namespace(os.environ.get(_WORKER, "main"), purpose)
    host, port = address.split(":")
    connection = happybase.Connection(host, int(port))
    try:
        if f"{name}:meta".encode() not in connection.tables():
            # A worker that came for one that had died, or a namespace that few runs need.
            shell.make_tables(servers_folder() / "hbase" / "conf", render_script(_schema(name)))
        for table in _schema(name).tables:
            _empty(connection.table(table.name), [family.name.encode() for family in table.families])
    finally:
        connection.close()
    # A put in the millisecond of a delete would not be seen, but where a family has NEW_VERSION_BEHAVIOR.
    time.sleep(_CLOCK_STEP_S)
    return name


def _empty(table: happybase.Table, families: list[bytes]) -> None:
    # A family named with its colon would be the column of that family whose qualifier is empty.
    keys = [key for key, _ in table.scan(filter=b"FirstKeyOnlyFilter() AND KeyOnlyFilter()", batch_size=_ROWS)]
    with table.batch(batch_size=_ROWS) as batch:
        for key in keys:
            batch.delete(key, families)


def _namespace(worker: str, purpose: str) -> str:
    return f"test_{worker}_{purpose}"


def _hbase(folder: Path, ports: list[int] | None) -> tuple[Hbase, ThriftGateway]:
    zookeeper_port, master_port, region_port, port = ports or free_ports(4)
    common = _common()
    return (
        Hbase(
            folder=folder,
            zookeeper_port=zookeeper_port,
            master_port=master_port,
            region_port=region_port,
            settings=_SOON_ON_DISK,
            **common,
        ),
        ThriftGateway(folder=folder / "gateway", port=port, zookeeper_port=zookeeper_port, **common),
    )


def _kafka(
    folder: Path,
    port: int,
    controller_port: int,
    own: Mapping[str, str] = MappingProxyType({}),
    **fields: Any,  # noqa: ANN401  # whichever of the broker's
) -> KafkaBroker:
    given: dict[str, Any] = {"port": port, "controller_port": controller_port, "settings": {**_KAFKA, **own}} | fields
    return KafkaBroker(folder=folder, **given, **_common())


def _common() -> dict[str, Any]:
    return {"java": java.java(), "jars": fetch.jars(), "owner": int(os.environ[OWNER_VARIABLE]), "quick": True}


def servers_folder() -> Path:
    """The folder in which the servers of this run are."""
    return Path(os.environ[_FOLDER])


@contextmanager
def servers_or_skip() -> Iterator[None]:
    """Skip the test where what servers need is missing; fail it in CI."""
    try:
        yield
    except MissingTools as error:
        if os.environ.get("CI", "").lower() in {"", "0", "false"}:
            pytest.skip(str(error))
        pytest.fail(str(error), pytrace=False)
    except ServerFailed as error:
        pytest.fail(str(error), pytrace=False)


@contextmanager
def servers_locked() -> Iterator[None]:
    """Hold the lock of the folder of servers; skip the test where what they need is missing."""
    with servers_or_skip(), (servers_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _ended(servers: list[JavaServer]) -> Iterator[None]:
    try:
        yield
    finally:
        for server in servers:
            server.keep_classes()
            server.kill9()


def server_state(name: str) -> dict[str, Any] | None:
    """Where a server is that was started in this run; None before."""
    with suppress(FileNotFoundError):
        state: dict[str, Any] = json.loads((servers_folder() / f"{name}.json").read_text())
        return state
    return None


def write_server_state(name: str, ports: Sequence[object], servers: Sequence[Server]) -> None:
    """Say where a server is, and with which processes it ends."""
    state = {"ports": ports, "processes": [server.process for server in servers]}
    (servers_folder() / f"{name}.json").write_text(json.dumps(state))
