"""The stack of a developer as its state has it, without any server."""

import json
import os
import shlex
from pathlib import Path

import pytest

from deploy.local import fetch, java, stack
from deploy.local.kafka import KafkaBroker
from deploy.local.process import Process
from deploy.local.server import ServerFailed


@pytest.fixture
def half_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    """The state between two launches, with the broker there and nothing after it; the broker's process."""
    monkeypatch.setattr(fetch, "home", lambda: tmp_path)
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    broker = Process(os.getpid(), began)
    ports = dict.fromkeys(stack._PORTS, 1)
    state = {"ports": ports, "processes": {"kafka": broker, "hbase": None, "gateway": None}}
    (tmp_path / "stack").mkdir()
    (tmp_path / "stack" / "state.json").write_text(json.dumps(state))
    return broker


def test_what_was_half_started_is_found(half_started: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """``status`` shows what runs and what does not yet, ``up`` would launch the rest, at the ports that were chosen."""
    assert [(line[0], line[1]) for line in stack.status()] == [
        ("kafka", str(half_started.pid)), ("hbase", "-"), ("gateway", "-"),
    ]  # fmt: skip
    monkeypatch.setattr(java, "java", lambda: "java")
    monkeypatch.setattr(fetch, "jars", Path)
    found = stack._stack(stack._state())
    assert [name for name, server in found.servers.items() if not server.alive] == ["hbase", "gateway"]
    assert (found.kafka, found.gateway.port) == ("127.0.0.1:1", 1)


@pytest.mark.usefixtures("half_started")
def test_a_stack_that_runs_does_not_become_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their servers have the same ports and other data; the one that runs has to be stopped by who wants the other."""
    monkeypatch.setattr(java, "java", lambda: "java")
    monkeypatch.setattr(fetch, "jars", Path)
    with pytest.raises(ServerFailed, match="one server of each kind; stop it first: make stack-down"):
        stack.up(cluster=True)


def test_a_cluster_has_its_own_servers_and_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state names the layout, so that ``status``, ``down`` and the shell find what there is."""
    monkeypatch.setattr(fetch, "home", lambda: tmp_path)
    monkeypatch.setattr(fetch, "jars", Path)
    monkeypatch.setattr(java, "java", lambda: "java")
    up = stack._stack({}, stack._CLUSTER)
    assert len({server.folder for server in up.servers.values()}) == len(up.servers) == 10
    assert {server.folder.parent for server in up.servers.values()} == {tmp_path / "stack" / "cluster"}
    assert len({port for server in up.servers.values() for port in server.ports()}) == len(up.ports) == 16
    assert up.addresses[0].count(",") == 2
    (tmp_path / "stack").mkdir()
    stack._write_state(up)
    assert [line[0] for line in stack.status()] == list(up.servers)
    up.conf.mkdir(parents=True)
    assert stack.conf_of_stack() == up.conf


@pytest.mark.usefixtures("half_started")
def test_up_says_how_to_make_more_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """For another namespace, with our shell and the configuration of this stack; the addresses come first."""
    monkeypatch.setattr(stack, "up", lambda **_: stack._stack(stack._state(), running=True))
    assert stack.main(["up"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["kafka://127.0.0.1:1", "hbase://127.0.0.1:1/dupwatch"]
    program, *options = shlex.split(lines[-1])
    assert Path(program).name == "dupwatch"
    assert options[:-1] == ["store", "init", "--apply", "--store", "hbase://127.0.0.1:1/NAMESPACE", "--shell"]
    assert shlex.split(options[-1])[-2:] == ["--conf", str(stack._folder() / "hbase" / "conf")]


def test_what_was_half_started_is_ended(half_started: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """``down`` ends what there is, and forgets it."""
    ended: list[Process | None] = []
    monkeypatch.setattr(KafkaBroker, "stop", lambda server: ended.append(server.process))
    assert stack.down() == ["kafka"]
    assert ended == [half_started]
    assert stack.status() == []
