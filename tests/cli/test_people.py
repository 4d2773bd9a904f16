"""``dupwatch people``: who may sign in to the console."""

import json
import os
import pty
import stat
import termios
import time
from pathlib import Path

import pytest

from consumer.reviews import audit, people
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import open_database
from tests.cli.command import TIMEOUT_S, Outcome, run_process, start, wait_for

PASSWORD = "correct horse battery"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the database is to be."""
    return tmp_path / "console.db"


def run(place: Path, *arguments: str, given: bytes = b"") -> Outcome:
    """Run a command of the group."""
    return run_process("people", *arguments, "--set", f"console.database=sqlite:///{place}", given=given)


def may_sign_in(place: Path, name: str, password: str) -> bool:
    """Whether somebody of this name has this password."""
    database = open_database(f"sqlite:///{place}")
    try:
        with database.read_connection() as connection:
            return people.person_with_password(connection, name, password) is not None
    finally:
        database.close()


def test_somebody_is_added_with_a_password_that_is_printed_once(place: Path) -> None:
    """On standard output and alone; the database is readable by its owner only, and holds no password."""
    ended = run(place, "add", "An Na", "--role", "admin")
    assert ended.code == 0, ended.err
    password = ended.out.decode().rstrip("\n")
    assert (len(password), "\n" in password) == (20, False)
    assert may_sign_in(place, "An Na", password)
    assert password not in ended.err
    assert password.encode() not in place.read_bytes()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    listed = run(place, "list", "--json")
    assert json.loads(listed.out) == {"name": "An Na", "role": "admin", "disabled": False, "has_password": True}
    assert "An Na" in run(place, "list").out.decode()


def test_a_password_is_read_from_standard_input(place: Path) -> None:
    """And is not printed."""
    ended = run(place, "add", "Bo", "--password-stdin", given=f"{PASSWORD}\n".encode())
    assert ended.code == 0, ended.err
    assert PASSWORD.encode() not in ended.out
    assert may_sign_in(place, "Bo", PASSWORD)
    changed = run(place, "password", "Bo", "--password-stdin", given=b"another password\n")
    assert changed.code == 0, changed.err
    assert not may_sign_in(place, "Bo", PASSWORD)
    assert may_sign_in(place, "Bo", "another password")
    made = run(place, "password", "Bo")
    assert may_sign_in(place, "Bo", made.out.decode().strip())


def test_a_password_is_asked_for_at_a_terminal(place: Path) -> None:
    """Twice, and without showing it."""
    master, slave = pty.openpty()
    process = start(
        "people", "add", "Bo", "--password-stdin", "--set", f"console.database=sqlite:///{place}",
        stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    until_s = time.monotonic() + TIMEOUT_S
    for asked in (b"assword:", b"epeat for confirmation:"):
        while asked not in shown:
            assert time.monotonic() < until_s, shown
            shown += os.read(master, 1024)
        # The terminal has to have been told not to show what is typed.
        wait_for(lambda: not termios.tcgetattr(master)[3] & termios.ECHO)
        os.write(master, f"{PASSWORD}\n".encode())
    assert process.wait(TIMEOUT_S) == 0
    os.close(master)
    assert PASSWORD.encode() not in shown
    assert may_sign_in(place, "Bo", PASSWORD)


def test_roles_and_accounts_change(place: Path) -> None:
    """Each is in the audit log, with who ran the command."""
    assert run(place, "add", "Ann", "--role", "admin").code == 0
    assert run(place, "add", "Bo").code == 0
    assert b"Bo is an admin" in run(place, "role", "Bo", "admin").out
    assert b"Ann is disabled" in run(place, "disable", "Ann").out
    assert b"disabled" in run(place, "list").out
    assert b"Ann is enabled" in run(place, "enable", "Ann").out
    database = open_database(f"sqlite:///{place}")
    with database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(), None, 99).rows
    database.close()
    said = [(entry.action, entry.subject, entry.why) for entry in reversed(entries)]
    assert said == [
        ("person.add", "Ann", "admin"),
        ("person.add", "Bo", "reviewer"),
        ("person.role", "Bo", "admin"),
        ("person.disable", "Ann", ""),
        ("person.enable", "Ann", ""),
    ]
    assert {entry.person.endswith("(command line)") for entry in entries} == {True}


@pytest.mark.parametrize("arguments", [("list",), ("disable", "Ann"), ("password", "Ann")])
def test_looking_makes_no_database(place: Path, arguments: tuple[str, ...]) -> None:
    """A path that was mistyped is told, and nothing is made there."""
    ended = run(place, *arguments)
    assert (ended.code, "the file does not exist" in ended.err) == (2, True)
    assert not place.exists()


@pytest.mark.parametrize(
    ("arguments", "given", "why"),
    [
        (("add", "Ann"), b"", "a person named Ann already exists"),
        (("add", ""), b"", "a name must have 1 to 200 characters"),
        (("add", "a\x1b[31mb"), b"", "invisible characters"),
        (("add", "Cy", "--password-stdin"), b"short\n", "the password has 5 characters; choose one with 15 to 1000"),
        (("role", "Nobody", "admin"), b"", "nobody is named 'Nobody'"),
        (("disable", "Ann"), b"", "last admin"),
        (("role", "Ann", "reviewer"), b"", "last admin"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(place: Path, arguments: tuple[str, ...], given: bytes, why: str) -> None:
    """Nothing is changed, and the exit code is that of a wrong option."""
    assert run(place, "add", "Ann", "--role", "admin").code == 0
    before = run(place, "list").out
    ended = run(place, *arguments, given=given)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert why in ended.err
    assert run(place, "list").out == before


def test_a_password_that_cannot_be_printed_is_nobodys(place: Path) -> None:
    """A full disk: nobody is added, and the command can be repeated."""
    with Path("/dev/full").open("wb") as full:
        process = start("people", "add", "Bo", "--set", f"console.database=sqlite:///{place}", stdout=full)
        assert process.wait(TIMEOUT_S) == 6
    assert run(place, "list", "--json").out == b""
    again = run(place, "add", "Bo")
    assert again.code == 0, again.err
