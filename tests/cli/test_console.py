"""``dupwatch console`` on the command line: what it refuses, and what it says. Its way through Kafka: tests/console."""

import signal
import socket
import subprocess
from pathlib import Path

import pytest

from consumer.text.install_advice import install_command
from consumer.web.server import OTHER_FILES
from deploy.local.ports import free_ports
from tests.cli.command import DUPWATCH, FAST, TIMEOUT_S, Command, run_without, start, text, write_lines
from tests.cli.test_demo import line_of, wait_ready
from tests.unit.console.serving import Browser

SINK = ("--sink", "kafka://127.0.0.1:1/p")
PACKAGES = ("alembic", "argon2", "babel", "h11", "jinja2", "sqlalchemy", "starlette", "uvicorn")


@pytest.fixture
def database(tmp_path: Path) -> tuple[str, str]:
    """A database of the test's own."""
    return ("--set", f"console.database=sqlite:///{tmp_path / 'console.db'}")


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ("-", "sink.url is -, standard output, which no other program can read. Let the run write to a file"),
        ("nowhere:", "sink.url is nowhere:, which keeps nothing. Let the run write to a file"),
        ("v.jsonl.GZ", "Let the run write to a file whose name does not end with .gz"),
    ],
)
def test_a_sink_that_cannot_be_followed_is_refused(
    dupwatch: Command, database: tuple[str, str], sink: str, said: str
) -> None:
    """It says what to do instead."""
    ended = dupwatch("console", "--store", "lmdb:none", "--sink", sink, *database)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert said in ended.err


def test_wrong_settings_of_the_client_are_refused(dupwatch: Command, database: tuple[str, str]) -> None:
    """At once, and not by a thread that waits for ever."""
    wrong = ("--set", 'kafka.consumer={"session.timeout.ms"=1}')
    ended = dupwatch("console", "--store", "lmdb:none", *SINK, *database, *wrong)
    assert (ended.code, "session.timeout.ms is 1" in ended.err) == (2, True)


def test_a_store_that_ends_with_its_run_is_refused(dupwatch: Command, database: tuple[str, str]) -> None:
    """It would be another one than the consumers'."""
    ended = dupwatch("console", "--store", "memory:", *SINK, *database)
    assert ended.code == 2
    assert "name it: --store" in ended.err


def test_a_store_of_other_settings_is_refused(
    dupwatch: Command, database: tuple[str, str], judged_sample: Path
) -> None:
    """At the start, as by a run, with both values."""
    verdicts, store = judged_sample / "verdicts.jsonl", f"lmdb:{judged_sample / 'store'}"
    other = ("--set", "judge.max_distance=2", "--set", "console.listen=127.0.0.1:0")
    ended = dupwatch("console", "--store", store, "--sink", verdicts, *database, *other)
    assert ended.code == 4
    assert f"the console's settings are not those of the store {store}" in ended.err
    assert "max_distance is 3 in the store and 2 here" in ended.err


def test_an_address_that_is_taken(dupwatch: Command, database: tuple[str, str], tmp_path: Path) -> None:
    """The message names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = ("--set", f"console.listen=127.0.0.1:{taken.getsockname()[1]}")
        ended = dupwatch("console", "--store", f"lmdb:{tmp_path / 'store'}", *SINK, *database, *at)
    assert ended.code == 2
    assert "set another address in console.listen" in ended.err


def test_without_anything_it_shows_its_pages(database: tuple[str, str], tmp_path: Path) -> None:
    """Neither brokers nor a store are there: it is ready, says what it does without, and ends when it is asked to."""
    (port,) = free_ports(1)
    at = ("--set", f"console.listen=127.0.0.1:{port}")
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    process = start("console", *store, *SINK, *database, *at, *FAST, stderr=subprocess.PIPE)
    try:
        assert "Nobody can sign in yet" in line_of(process, lambda line: "sign in" in line)
        wait_ready(f"http://127.0.0.1:{port}/readyz")
        browser = Browser(f"http://127.0.0.1:{port}")
        assert browser.get("/healthz").text == "ok\n"
        assert "Sign in" in browser.get("/sign-in").shown
        answer = browser.get("/readyz")
        while "store: " not in answer.text:
            answer = browser.get("/readyz")
        assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("arguments", [("console", "--store", "lmdb:none", *SINK), ("people", "list")])
def test_without_its_packages_it_says_what_to_install(arguments: tuple[str, ...]) -> None:
    """All other commands work without."""
    ended = run_without(PACKAGES, *arguments)
    assert ended.code == 2
    assert "which is not installed" in ended.err
    assert ended.err.endswith(f"Install it with:\n{install_command('console')}\n")


def test_the_demo_goes_on_without_its_packages(tmp_path: Path) -> None:
    """And says how to install them."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": name, "body": text(1)} for name in ("a", "b")])
    ended = run_without(["sqlalchemy"], "demo", "--feed", feed, "--rate", "100")
    assert ended.code == 0, ended.err
    assert "The console of the demo needs sqlalchemy" in ended.err
    assert "repeats a" in ended.err


def test_more_connections_than_files_are_refused_at_the_start(tmp_path: Path) -> None:
    """With what to do about it, in the console's own setting."""
    files, most = 1_024, 1_024 - OTHER_FILES + 1
    settings = f"--set console.listen=127.0.0.1:0 --set console.connections_max={most}"
    database = f"--set console.database=sqlite:///{tmp_path / 'console.db'}"
    command = f"ulimit -n {files}; exec {DUPWATCH} console --store lmdb:none {' '.join(SINK)} {settings} {database}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, check=False, cwd=tmp_path, timeout=TIMEOUT_S)
    assert ended.returncode == 2
    assert f"console.connections_max = {most} needs {files + 1} open files" in ended.stderr.decode()
