"""``dupwatch tokens``: a secret is shown once, and never again by anything."""

import os
import pwd
import re
import stat
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from consumer.web.known_tokens import KnownTokens
from consumer.web.token import Caller, Role, TokenRefusal
from tests.cli.command import Command, json_lines

SECRET = re.compile(rb"dupwatch_[0-9a-f]{64}\n")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """A token file that does not exist yet."""
    return tmp_path / "tokens.json"


def added(dupwatch: Command, tokens: Path, name: str, *options: str) -> str:
    """Add a token and return its secret."""
    ended = dupwatch("tokens", "add", name, "--owner", "An Na", "--tokens", tokens, *options)
    assert ended.code == 0, ended.err
    assert SECRET.fullmatch(ended.out), "standard output has the secret and nothing else"
    secret = ended.out.decode().strip()
    assert secret not in ended.err
    return secret


def test_added_listed_revoked(dupwatch: Command, tokens: Path) -> None:
    """A server accepts the secret until the token is revoked; the list never shows it."""
    secret = added(dupwatch, tokens, "crawler", "--role", "reader", "--role", "writer", "--expires", "12h")
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    known = KnownTokens(tokens, lambda _: None).caller(secret)
    assert known == Caller("crawler", "An Na", frozenset({Role.READER, Role.WRITER}))
    assert dupwatch("tokens", "revoke", "crawler", "--tokens", tokens).out == b"crawler is revoked.\n"
    assert KnownTokens(tokens, lambda _: None).caller(secret) == TokenRefusal("revoked", "crawler")
    again = dupwatch("tokens", "revoke", "crawler", "--tokens", tokens)
    assert (again.code, b"was already revoked, at 20" in again.out) == (0, True)
    other = added(dupwatch, tokens, "wire", "--role", "reviewer")
    shown = [dupwatch("tokens", "list", "--tokens", tokens, *more).out for more in ((), ("--json",))]
    assert not any(part.removeprefix("dupwatch_").encode() in text for part in (secret, other) for text in shown)
    assert [line.split()[0] for line in shown[0].decode().splitlines()] == ["name", "crawler", "wire"]
    crawler, wire = json_lines(shown[1])
    assert (crawler["name"], crawler["roles"], crawler["state"]) == ("crawler", ["reader", "writer"], "revoked")
    assert (wire["owner"], wire["state"], wire["revoked_at"]) == ("An Na", "valid", None)
    assert set(wire) == {"name", "roles", "owner", "state", "created_at", "expires_at", "revoked_at"}


def test_a_token_expires_after_ninety_days_by_default(dupwatch: Command, tokens: Path) -> None:
    """Otherwise a token that everybody has forgotten would count for ever."""
    added(dupwatch, tokens, "crawler", "--role", "reader")
    (token,) = json_lines(dupwatch("tokens", "list", "--json", "--tokens", tokens).out)
    began, ends = (datetime.fromisoformat(token[name]) for name in ("created_at", "expires_at"))
    assert ends - began == timedelta(days=90)


def test_the_file_is_a_setting(dupwatch: Command, tokens: Path) -> None:
    """Of the configuration or the environment; an option comes first. Without one the command says so."""
    added(dupwatch, tokens, "crawler", "--role", "reader")
    for given, variables in (
        (("--set", f"service.tokens={tokens}"), {}),
        ((), {"DUPWATCH_SERVICE__TOKENS": str(tokens)}),
        (("--tokens", tokens), {"DUPWATCH_SERVICE__TOKENS": "elsewhere"}),
    ):
        assert b"crawler" in dupwatch("tokens", "list", *given, **variables).out
    ended = dupwatch("tokens", "list")
    assert (ended.code, "add --tokens FILE, or set service.tokens" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("a b", "--role", "reader"), "'a b' cannot name a token; use 1 to 64 letters"),
        (("x", "--role", "root"), "'root' is not one of"),
        (("x",), "Missing option '--role'"),
        (("x", "--role", "reader", "--expires", "never"), "--expires: 'never' is not a duration; write it as 30m"),
        (("x", "--role", "reader", "--expires", "0d"), "at most 366 days"),
        (("x", "--role", "reader", "--expires", "367d"), "at most 366 days"),
        (("taken", "--role", "reader"), "there is, or was, a token named taken"),
    ],
)
def test_what_cannot_be_added(dupwatch: Command, tokens: Path, given: tuple[str, ...], why: str) -> None:
    """The message says what is wrong, and the file stays as it is."""
    added(dupwatch, tokens, "taken", "--role", "reader")
    before = tokens.read_bytes()
    ended = dupwatch("tokens", "add", *given, "--owner", "An Na", "--tokens", tokens)
    assert (ended.code, ended.out) == (2, b"")
    assert why in ended.err
    assert tokens.read_bytes() == before


def test_a_secret_in_place_of_a_name(dupwatch: Command, tokens: Path) -> None:
    """No message repeats it, whatever is wrong with the command."""
    secret = added(dupwatch, tokens, "crawler", "--role", "reader")
    for given in (
        ("revoke", secret),
        ("revoke", "crawler", secret),
        ("add", secret, "--role", "reader", "--owner", "x"),
        ("add", "x", "--role", secret, "--owner", "x"),
        ("list", "--set", f"service.tokens={secret}"),
    ):
        ended = dupwatch("tokens", *given, *(() if given[0] == "list" else ("--tokens", tokens)))
        assert ended.code == 2
        assert ended.err
        assert secret not in ended.err + ended.out.decode()


def test_a_mistyped_command_is_named(dupwatch: Command) -> None:
    """What follows the word tokens is no secret."""
    assert "No such command 'ad'" in dupwatch("tokens", "ad").err


def test_changes_are_in_the_audit_log(dupwatch: Command, tokens: Path, tmp_path: Path) -> None:
    """Who ran the command, what it did and when; what changed nothing, or was refused, is not there."""
    log = tmp_path / "audit.jsonl"
    audited = ("--set", f"service.audit={log}")
    secret = added(dupwatch, tokens, "crawler", "--role", "reader", *audited)
    for _ in range(2):
        assert dupwatch("tokens", "revoke", "crawler", "--tokens", tokens, *audited).code == 0
    assert dupwatch("tokens", "revoke", "unknown", "--tokens", tokens, *audited).code == 2
    first, second = json_lines(log.read_bytes())
    assert (first["action"], first["id"], first["result"]) == ("tokens.add", "crawler", "added")
    assert (second["action"], second["id"], second["result"]) == ("tokens.revoke", "crawler", "revoked")
    assert first["owner"] == second["owner"] == pwd.getpwuid(os.getuid()).pw_name
    assert secret.encode() not in log.read_bytes()


def test_an_audit_log_that_cannot_be_written(dupwatch: Command, tokens: Path, tmp_path: Path) -> None:
    """No token is added, and no secret shown."""
    given = ("--role", "reader", "--owner", "x", "--tokens", tokens, "--set", f"service.audit={tmp_path}/none/log")
    ended = dupwatch("tokens", "add", "crawler", *given)
    assert (ended.code, ended.out) == (6, b"")
    assert "the audit log" in ended.err
    assert not tokens.exists()
