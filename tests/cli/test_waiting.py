"""A command that waits for a store or for brokers says what it waits for."""

import selectors
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import FAST, TIMEOUT_S, articles, start, write_lines

"""Much more than it takes, and less than the 45 seconds after which a store is given up."""


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def heard(process: subprocess.Popen[bytes], what: bytes) -> bytes:
    """Return a command's standard error up to this line; fail if it ends or prints nothing."""
    assert process.stderr is not None
    output, until_s = b"", time.monotonic() + TIMEOUT_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while what not in output or not output.endswith(b"\n"):
            assert selector.select(until_s - time.monotonic()), output
            more = process.stderr.read1()  # type: ignore[attr-defined]
            assert more, output
            output += more
    return output


def notice(*arguments: str | Path, folder: Path) -> str:
    """Return the line in which a command says what it waits for; it must still be waiting."""
    process = start(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
    try:
        output = heard(process, b"Waiting for").decode()
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    return next(line for line in output.splitlines() if "Waiting for" in line)


def commands(store: str) -> dict[str, list[str]]:
    """Return every kind of command that opens a store."""
    return {
        "run": ["run", "--source", "feed.jsonl", "--sink", "out.jsonl", "--store", store],
        "backfill": ["backfill", "feed.jsonl", "--store", store],
        "show": ["show", "a0", "--store", store],
        "query": ["query", "feed.jsonl", "--store", store],
        "release": ["release", "a0", "--yes", "--store", store],
        "stats": ["store", "stats", "--store", store],
        "export": ["store", "export", "--store", store],
        "pack": ["store", "pack", "--store", store],
    }


@pytest.mark.parametrize("command", commands(""))
def test_a_store_that_refuses_connections(command: str, tmp_path: Path) -> None:
    """The notice names the address and the reason."""
    write_lines(tmp_path / "feed.jsonl", articles([0]))
    line = notice(*commands("hbase://127.0.0.1:9/feed")[command], *FAST, folder=tmp_path)
    assert "Waiting for the store hbase://127.0.0.1:9/feed: 127.0.0.1:9: Connection refused" in line


def test_a_store_that_does_not_answer(silent: str, tmp_path: Path) -> None:
    """The notice appears before the first call ends, which may take 20 seconds."""
    line = notice("store", "stats", "--store", f"hbase://{silent}/feed", folder=tmp_path)
    assert f"Waiting for the store hbase://{silent}/feed: no answer yet" in line


def broker_commands(brokers: str) -> dict[str, list[str]]:
    """Return every kind of command that connects to brokers."""
    source, sink = f"kafka://{brokers}/articles", f"kafka://{brokers}/out"
    return {
        "topics init": ["topics", "init", "--source", source, "--sink", sink],
        "dead-letters list": ["dead-letters", "list", "--sink", sink],
        "poison list": ["poison", "list", "--set", f"source.url={source}"],
        "replay": ["replay", "--source", source, "--from", "2026-11-20T00:00:00Z", "--store", "lmdb:trial"],
        "produce": ["produce", "feed.jsonl", "--to", source],
        "run": ["run", "--source", source, "--sink", sink, "--store", "lmdb:store", "--set", "http.listen="],
        "migrate": [
            "migrate", "--source", source, "--from-group", "old", "--anew", "--group", "new",
            "--store", "lmdb:new",
        ],
    }  # fmt: skip


@pytest.mark.parametrize("command", broker_commands(""))
def test_brokers_that_do_not_answer(command: str, silent: str, tmp_path: Path) -> None:
    """The notice names them; the client's own log is silent for 30 seconds."""
    write_lines(tmp_path / "feed.jsonl", articles([0]))
    line = notice(*broker_commands(silent)[command], folder=tmp_path)
    assert f"Waiting for the brokers: {silent}: it accepts connections" in line


def test_brokers_that_refuse_connections(tmp_path: Path) -> None:
    """The notice has the reason, even if the client does not log it."""
    line = notice("poison", "list", "--set", "source.url=kafka://127.0.0.1:9/articles", folder=tmp_path)
    assert "Waiting for the brokers: 127.0.0.1:9: Connection refused" in line
