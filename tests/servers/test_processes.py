"""Servers as processes: started, killed, restarted, and ended with the process that asked for them."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import happybase
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.local import stack
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.kafka import KafkaBroker
from deploy.local.ports import gateway_answers
from deploy.local.process import Process, wait_until
from deploy.local.server import Server, ServerFailed

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[2]
WAIT_S = 120
_WAITING_TEST = """
import pathlib, time

def test_waits(kafka_address):
    pathlib.Path({said!r}).write_text(kafka_address)
    time.sleep(600)
"""


def answers(address: str) -> bool:
    """Whether a server listens there."""
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def archive_given(server: Server) -> str:
    """The class archive that a running server uses, if any."""
    assert server.process is not None
    command = Path(f"/proc/{server.process.pid}/cmdline").read_text().split("\0")
    return "".join(argument.partition("=")[2] for argument in command if argument.startswith("-XX:SharedArchiveFile="))


def archives_mapped(server: Server) -> set[str]:
    """The archives that a running server has in its memory; with nothing among them, for one that was given none."""
    assert server.process is not None
    lines = Path(f"/proc/{server.process.pid}/maps").read_text().splitlines()
    return {"", *(line.split()[-1] for line in lines if line.endswith(".jsa"))}


def test_no_server_outlives_a_killed_run(tmp_path: Path) -> None:
    """When pytest is killed with -9 while a worker waits, the broker that the worker started ends too."""
    address_file = tmp_path / "address"
    waiting = tmp_path / "test_waiting.py"
    waiting.write_text(_WAITING_TEST.format(said=str(address_file)))
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "tests.hbase_server"]
    command = [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "-n", "1", str(waiting)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TEST_"))}
    environment |= {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with (tmp_path / "out").open("wb") as out:
        run = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=tmp_path)
        try:
            assert wait_until(address_file.exists, WAIT_S), (tmp_path / "out").read_text()
            assert wait_until(lambda: bool(address_file.read_text()), WAIT_S)
            assert answers(address_file.read_text())
        finally:
            run.send_signal(signal.SIGKILL)
            run.wait()
    assert wait_until(lambda: not answers(address_file.read_text()), WAIT_S)


@pytest.mark.load
def test_a_broker_keeps_its_messages(own_kafka: Callable[[], KafkaBroker]) -> None:
    """A broker that is killed and started again has what was acknowledged."""
    broker = own_kafka()
    admin = AdminClient({"bootstrap.servers": broker.address})
    for creation in admin.create_topics([NewTopic("articles", 1)]).values():
        creation.result(WAIT_S)
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all"})
    producer.produce("articles", b"kept")
    assert producer.flush(20) == 0
    broker.kill9()
    assert not broker.alive
    broker.start()
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["articles"])
    try:
        message = consumer.poll(30)
        assert message is not None
        assert message.value() == b"kept"
    finally:
        consumer.close()


def test_gateways_come_and_go(
    hbase_servers: tuple[Hbase, ThriftGateway], new_gateway: Callable[..., ThriftGateway], hbase_namespace: str
) -> None:
    """A second gateway shows the same tables; killing it leaves the first alone, and it can be started again.

    What is started again takes its classes from the archive, which there is unless Java lacks the tool to write it.
    """
    hbase, first = hbase_servers
    second = new_gateway(idle_ms=1000)
    for gateway in (first, second):
        connection = happybase.Connection("127.0.0.1", gateway.port)
        assert f"{hbase_namespace}:postings".encode() in connection.tables()
        connection.close()
    second.keep_classes()
    second.kill9()
    assert (second.alive, gateway_answers(second.port)) == (False, False)
    assert (first.alive, gateway_answers(first.port)) == (True, True)
    second.start()
    assert gateway_answers(second.port)
    assert archive_given(second) or not Path(second.java).resolve().with_name("jcmd").exists()
    for server in (hbase, second):
        assert archive_given(server) in archives_mapped(server)


@pytest.mark.load
def test_hbase_keeps_its_cells(own_hbase: Callable[[str], tuple[Hbase, ThriftGateway]]) -> None:
    """HBase that is killed and started again has what was acknowledged, and its gateway finds it by itself."""
    hbase, gateway = own_hbase("mine")
    connection = happybase.Connection("127.0.0.1", gateway.port)
    connection.table("mine:meta").put(b"row", {b"m:c": b"kept"})
    hbase.kill9()
    assert not hbase.alive
    hbase.start()
    assert wait_until(gateway.ready, WAIT_S)
    assert connection.table("mine:meta").row(b"row") == {b"m:c": b"kept"}
    connection.close()


def test_a_port_that_is_taken_is_told(
    hbase_servers: tuple[Hbase, ThriftGateway], new_gateway: Callable[..., ThriftGateway]
) -> None:
    """A gateway at another's port does not take that one's answers for its own."""
    _, first = hbase_servers
    with pytest.raises(ServerFailed, match=f"the Thrift gateway needs port {first.port}, which another"):
        new_gateway(port=first.port)
    assert first.alive


def test_a_server_that_cannot_start_says_why(
    hbase_servers: tuple[Hbase, ThriftGateway], new_gateway: Callable[..., ThriftGateway]
) -> None:
    """A gateway that gives up is named, with the end of its log."""
    with pytest.raises(ServerFailed, match=r"(?s)the Thrift gateway ended\. The end of .*heap size"):
        new_gateway(heap_mb=1)


@pytest.mark.load
def test_the_stack_goes_up_and_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up starts what does not run, again and again; status tells; down ends it all and may be said twice."""
    monkeypatch.setattr(stack, "_folder", lambda: tmp_path)
    owner = int(os.environ["TEST_SERVERS_OWNER"])
    try:
        up = stack.up(owner)
        assert up.addresses[1].startswith("hbase://127.0.0.1:")
        processes = {name: server.process for name, server in up.servers.items()}
        connection = happybase.Connection("127.0.0.1", up.gateway.port)
        assert [name.decode() for name in connection.tables()] == [
            f"dupwatch:{n}" for n in ("articles", "meta", "postings")
        ]
        command = shlex.split(stack.init_command(up, "another"))
        subprocess.run(command, check=True, timeout=400, cwd=tmp_path)
        assert b"another:articles" in connection.tables()
        connection.close()
        up.gateway.kill9()
        assert [line[-1].split()[0] for line in stack.status()] == ["since", "since", "not"]
        again = stack.up(owner)
        assert again.addresses == up.addresses
        assert {name for name, server in again.servers.items() if server.process != processes[name]} == {"gateway"}
        assert all(line[1].isdigit() for line in stack.status())
        running = [server.process for server in again.servers.values() if server.process]
    finally:
        ended = stack.down(wipe=True)
    assert ended == ["gateway", "hbase", "kafka"]
    assert not any(Process(*identity).alive for identity in running)
    assert stack.down() == []
    assert stack.status() == []
    assert not (tmp_path / "hbase").exists()
