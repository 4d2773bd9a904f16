"""Whose secret is this? What running servers know follows the file, and does not outlive it for long."""

import logging
import threading
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from consumer.lifecycle.background import PeriodicCheck
from consumer.model.errors import ConfigError
from consumer.web import known_tokens
from consumer.web.known_tokens import TRUST_S, KnownTokens, SecretRefused, TokensLoaded, TokensUnreadable
from consumer.web.token import Caller, Role, TokenRefusal, new_secret
from consumer.web.token_file import Signature, Tokens, load, revoke_token
from tests.unit.web.token_samples import NOON, add

CRAWLER = Caller("crawler", "An Na", frozenset({Role.READER, Role.WRITER}))


class Server:
    """A server that knows the tokens of a file, with clocks that the test turns."""

    def __init__(self, path: Path) -> None:
        self.reported: list[object] = []
        self.seconds = 0.0
        self.today: datetime = NOON
        self.known = KnownTokens(path, self.reported.append, lambda: self.seconds, lambda: self.today)

    def caller(self, secret: str, *, looks_after_s: float | None = None) -> Caller | TokenRefusal:
        """Who sends this secret, now or after the look at the file so much later."""
        if looks_after_s is not None:
            self.seconds += looks_after_s
            self.known.look()
        return self.known.caller(secret)

    def count(self, kind: type) -> int:
        """How often this was reported."""
        return sum(isinstance(occurrence, kind) for occurrence in self.reported)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A token file in a folder of its own."""
    return tmp_path / "tokens.json"


@pytest.fixture
def secret(path: Path) -> str:
    """The secret of the only token."""
    return add(path, "crawler", Role.READER, Role.WRITER)


def test_who_it_is(path: Path, secret: str) -> None:
    """A secret that was added is known; any other is not, however near or long it is."""
    server = Server(path)
    assert server.caller(secret) == CRAWLER
    wrong = (
        new_secret(),
        secret[:-1],
        secret + "0",
        secret.upper(),
        secret[9:],
        "",
        f"{secret}\n",
        "\udcff",
        "x" * 10**6,
    )
    for other in wrong:
        assert server.caller(other) == TokenRefusal("unknown")
    assert server.reported == [TokensLoaded(1), *[SecretRefused(TokenRefusal("unknown"))] * len(wrong)]


def test_the_second_in_which_it_expires(path: Path, secret: str) -> None:
    """Valid until just before that second; the log can name the token."""
    server = Server(path)
    server.today = NOON + timedelta(days=90) - timedelta(microseconds=1)
    assert server.caller(secret) == CRAWLER
    server.today = NOON + timedelta(days=90)
    assert server.caller(secret) == TokenRefusal("expired", "crawler")
    assert server.reported[-1] == SecretRefused(TokenRefusal("expired", "crawler"))


def test_a_change_counts_from_the_next_look(path: Path, secret: str) -> None:
    """What is revoked is refused and what is added let in."""
    server = Server(path)
    other = add(path, "wire")
    assert server.caller(other) == TokenRefusal("unknown")
    assert server.caller(other, looks_after_s=1) == Caller("wire", "An Na", frozenset({Role.READER}))
    revoke_token(path, "crawler", NOON)
    assert server.caller(secret, looks_after_s=1) == TokenRefusal("revoked", "crawler")


def test_a_revoked_token_that_has_expired_is_revoked(path: Path, secret: str) -> None:
    """The log says what a person did."""
    revoke_token(path, "crawler", NOON)
    server = Server(path)
    server.today += timedelta(days=1000)
    assert server.caller(secret) == TokenRefusal("revoked", "crawler")


def test_the_file_is_read_only_if_it_has_changed(path: Path, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And requests do not touch it."""
    server = Server(path)
    touched: Counter[str] = Counter()
    stat = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **more: (touched.update(["stat"]), stat(self, **more))[1])
    monkeypatch.setattr(known_tokens, "load", lambda path: (touched.update(["load"]), load(path))[1])
    for _ in range(80):
        server.seconds += 0.1
        assert server.caller(secret) == CRAWLER
    assert not touched
    for _ in range(5):
        assert server.caller(secret, looks_after_s=1) == CRAWLER
    assert touched == {"stat": 5}
    revoke_token(path, "crawler", NOON)
    server.known.look()
    assert touched["load"] == 1


@pytest.mark.parametrize("damage", ["gone", "cut", "open to others"])
def test_a_file_that_cannot_be_used_any_more(
    path: Path, secret: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was known counts for a while, then nobody is let in; when the file is back, everything is as before."""
    server = Server(path)
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[:-20])
    else:
        path.chmod(0o644)
    with caplog.at_level(logging.INFO, "dupwatch"):
        assert server.caller(secret, looks_after_s=1) == CRAWLER
        assert server.caller(secret, looks_after_s=TRUST_S - 1.5) == CRAWLER
        for _ in range(3):
            assert server.caller(secret, looks_after_s=1) == TokenRefusal("unchecked")
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert server.count(TokensUnreadable) == 5
    assert server.count(TokensLoaded) == 1
    path.write_bytes(content)
    path.chmod(0o600)
    with caplog.at_level(logging.INFO, "dupwatch"):
        assert server.caller(secret, looks_after_s=1) == CRAWLER
    assert "can be read again" in caplog.text
    assert server.count(TokensLoaded) == 2
    path.unlink()
    assert server.caller(secret, looks_after_s=1) == CRAWLER


def test_a_look_that_does_not_end(path: Path, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network file system that hangs: nobody waits for it, and what was read does not count for ever."""
    server = Server(path)
    begun, go_on = threading.Event(), threading.Event()

    def hanging(path: Path) -> tuple[Tokens, Signature]:
        begun.set()
        assert go_on.wait(60)
        return load(path)

    monkeypatch.setattr(known_tokens, "load", hanging)
    revoke_token(path, "crawler", NOON)
    look = threading.Thread(target=server.known.look)
    look.start()
    try:
        assert begun.wait(60)
        assert server.caller(secret) == CRAWLER
        server.seconds += TRUST_S
        assert server.caller(secret) == TokenRefusal("unchecked")
    finally:
        go_on.set()
        look.join(60)
    # It may have read the file a minute ago; the next look counts.
    assert server.caller(secret) == TokenRefusal("unchecked")
    assert server.caller(secret, looks_after_s=1) == TokenRefusal("revoked", "crawler")


def test_what_is_invalid_at_the_start(path: Path, secret: str) -> None:
    """A server does not start without its tokens."""
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Server(path.with_name("none"))
    path.write_bytes(b"{")
    with pytest.raises(ConfigError, match="is invalid"):
        Server(path)


def test_a_secret_of_kubernetes(tmp_path: Path) -> None:
    """Its files are links through a link, which is what changes."""
    for number in (1, 2):
        (tmp_path / f"v{number}").mkdir()
    first, second = add(tmp_path / "v1" / "tokens.json", "first"), add(tmp_path / "v2" / "tokens.json", "second")
    (tmp_path / "data").symlink_to("v1")
    (tmp_path / "tokens.json").symlink_to("data/tokens.json")
    server = Server(tmp_path / "tokens.json")
    assert isinstance(server.caller(first), Caller)
    (tmp_path / "next").symlink_to("v2")
    (tmp_path / "next").replace(tmp_path / "data")
    assert server.caller(first, looks_after_s=1) == TokenRefusal("unknown")
    assert isinstance(server.caller(second), Caller)


def test_many_threads_at_once(path: Path, secret: str) -> None:
    """While tokens are added and revoked, every thread gets an answer that was true at that moment."""
    known = KnownTokens(path, lambda _: None, now=lambda: NOON)
    answers: Counter[Caller | TokenRefusal] = Counter()
    lock, stop = threading.Lock(), threading.Event()
    gone = add(path, "short-lived")
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            while not stop.is_set():
                found = [known.caller(secret), known.caller(gone)]
                with lock:
                    answers.update(found)
        except BaseException as error:  # noqa: BLE001  # shown by the test
            failures.append(error)

    def all_said(*expected: Caller | TokenRefusal) -> None:
        for _ in range(600):
            if all(answers[answer] for answer in expected) or failures:
                return
            stop.wait(0.1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        with PeriodicCheck("tokens", known.look, 0.01):
            all_said(Caller("short-lived", "An Na", frozenset({Role.READER})))
            revoke_token(path, "short-lived", NOON)
            all_said(TokenRefusal("revoked", "short-lived"))
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert failures == []
    expected = {
        CRAWLER,
        Caller("short-lived", "An Na", frozenset({Role.READER})),
        TokenRefusal("revoked", "short-lived"),
    }
    assert expected <= set(answers) <= expected | {TokenRefusal("unknown")}


def test_nothing_shows_a_secret(path: Path, secret: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither what is returned, nor what is reported, nor the log."""
    server = Server(path)
    with caplog.at_level(logging.DEBUG):
        shown = [server.caller(secret), server.caller(new_secret())]
        revoke_token(path, "crawler", NOON)
        shown.append(server.caller(secret, looks_after_s=1))
        path.unlink()
        shown.append(server.caller(secret, looks_after_s=1))
    text = f"{shown}{server.reported}{caplog.text}{vars(server.known)}"
    assert "dupwatch_" not in text
    assert secret.removeprefix("dupwatch_") not in text
