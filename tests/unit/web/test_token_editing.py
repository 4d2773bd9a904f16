"""Adding and revoking: by several processes at once, by one that is killed, and through links."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from consumer.model.errors import ConfigError, SinkError
from consumer.web import token_file
from consumer.web.token import SECRET, Role, digest_of
from consumer.web.token_file import LIFETIME_MAX, NewToken, add_token, read_tokens, revoke_token
from tests.unit.web.token_samples import NOON, add

DEADLINE_S = 60
ROOT = Path(__file__).parents[3]
ADDING = """
import sys
from pathlib import Path
from tests.unit.web.token_samples import add
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    add(Path(sys.argv[1]), f"{sys.argv[2]}-{number}")
"""
DYING = """
import os, signal, sys
from pathlib import Path
from tests.unit.web.token_samples import add
os.replace = os.rename = lambda *paths, **more: os.kill(os.getpid(), signal.SIGKILL)
add(Path(sys.argv[1]), "second")
"""


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return [path.name for path in folder.iterdir()]


def test_a_token_is_added_and_its_secret_shown_once(tmp_path: Path) -> None:
    """The file has a hash instead of the secret, and nobody else can read it, whatever the umask."""
    path = tmp_path / "tokens.json"
    before = os.umask(0)
    try:
        secret = add(path, "crawler", Role.WRITER, Role.READER)
    finally:
        os.umask(before)
    assert SECRET.fullmatch(secret)
    (token,) = read_tokens(path)
    assert (token.name, token.owner, token.roles) == ("crawler", "An Na", (Role.READER, Role.WRITER))
    assert (token.created_at, token.expires_at) == (NOON, NOON + timedelta(days=90))
    assert token.sha256 == digest_of(secret)
    assert secret.removeprefix("dupwatch_").encode() not in path.read_bytes()
    assert secret not in repr(token)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == ["tokens.json"]
    assert add(path, "wire") != secret


def test_a_name_is_used_once(tmp_path: Path) -> None:
    """Not even that of a revoked token is used again, and nothing is shown for it."""
    path = tmp_path / "tokens.json"
    add(path, "crawler")
    revoke_token(path, "crawler", NOON)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="there is, or was, a token named crawler"):
        add_token(path, NewToken("crawler", "x", (Role.READER,)), NOON, pytest.fail)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (NewToken("a b", "x", (Role.READER,)), "cannot name a token"),
        (NewToken("a\n", "x", (Role.READER,)), "cannot name a token"),
        (NewToken("a", "", (Role.READER,)), "owner must be"),
        (NewToken("a", "x" * 101, (Role.READER,)), "owner must be"),
        (NewToken("a", "\x1b[2J", (Role.READER,)), "owner must be"),
        (NewToken("a", "\udcff", (Role.READER,)), "owner must be"),
        (NewToken("a", "x", ()), "needs a role: reader, writer, reviewer, admin"),
        (NewToken("a", "x", (Role.READER,), LIFETIME_MAX + timedelta(seconds=1)), "at most 366 days"),
        (NewToken("a", "x", (Role.READER,), timedelta(0)), "at most 366 days"),
    ],
)
def test_a_token_that_cannot_be(tmp_path: Path, wanted: NewToken, why: str) -> None:
    """The message says what is allowed, and no file is made."""
    with pytest.raises(ConfigError, match=why):
        add_token(tmp_path / "tokens.json", wanted, NOON, pytest.fail)
    assert names(tmp_path) == []


def test_a_secret_that_cannot_be_shown_is_not_added(tmp_path: Path) -> None:
    """Nobody would have it. The lock is given back."""
    path = tmp_path / "tokens.json"
    add(path, "first")

    def full(secret: str) -> None:
        raise SinkError(f"cannot write {len(secret)} characters")

    with pytest.raises(SinkError, match="cannot write"):
        add_token(path, NewToken("second", "x", (Role.READER,)), NOON, full)
    assert [token.name for token in read_tokens(path)] == ["first"]
    add(path, "second")


def test_revoking(tmp_path: Path) -> None:
    """The first call counts; a second one changes nothing; others are untouched."""
    path = tmp_path / "tokens.json"
    add(path, "crawler")
    add(path, "wire")
    token, is_new = revoke_token(path, "crawler", NOON)
    assert (token.revoked_at, is_new) == (NOON, True)
    token, is_new = revoke_token(path, "crawler", NOON + timedelta(hours=1))
    assert (token.revoked_at, is_new) == (NOON, False)
    assert [token.revoked_at for token in read_tokens(path)] == [NOON, None]


def test_revoking_what_is_not_there(tmp_path: Path) -> None:
    """An unknown name, or a secret instead of a name, which the message does not repeat; no file."""
    path = tmp_path / "tokens.json"
    for missing in (path, tmp_path / "no folder" / "tokens.json"):
        with pytest.raises(ConfigError, match="cannot be read: No such file"):
            revoke_token(missing, "crawler", NOON)
    assert names(tmp_path) == []
    secret = add(path, "crawler")
    with pytest.raises(ConfigError, match="no token named 'crawlre'"):
        revoke_token(path, "crawlre", NOON)
    with pytest.raises(ConfigError, match="a secret is not the name") as refused:
        revoke_token(path, secret, NOON)
    assert secret not in str(refused.value)


def test_a_full_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last place is given away, and no more."""
    path = tmp_path / "tokens.json"
    monkeypatch.setattr(token_file, "TOKENS_MAX", 2)
    add(path, "a")
    add(path, "b")
    with pytest.raises(ConfigError, match="already has 2 tokens, the maximum"):
        add(path, "c")


def test_several_processes_add_at_once(tmp_path: Path) -> None:
    """None loses what another has added, and a reader always sees a whole file."""
    path = tmp_path / "tokens.json"
    add(path, "first")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ADDING, path, f"p{number}", "15"], stdin=subprocess.PIPE, text=True, cwd=ROOT
        )
        for number in range(4)
    ]
    seen = 0
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("begin\n")
            process.stdin.close()
        while any(process.poll() is None for process in processes):
            seen = len(read_tokens(path))
        assert [process.wait(DEADLINE_S) for process in processes] == [0, 0, 0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait(DEADLINE_S)
    expected = {"first"} | {f"p{process}-{number}" for process in range(4) for number in range(15)}
    assert {token.name for token in read_tokens(path)} == expected
    assert 1 <= seen <= len(expected)
    assert names(tmp_path) == ["tokens.json"]


def test_a_process_that_is_killed_before_the_file_is_replaced(tmp_path: Path) -> None:
    """The old file is whole, and the next change goes through."""
    path = tmp_path / "tokens.json"
    add(path, "first")
    ended = subprocess.run([sys.executable, "-c", DYING, path], check=False, timeout=DEADLINE_S, cwd=ROOT)
    assert ended.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    assert [token.name for token in read_tokens(path)] == ["first"]
    add(path, "second")
    assert [token.name for token in read_tokens(path)] == ["first", "second"]
    assert names(tmp_path) == ["tokens.json"]


def test_the_new_file_is_on_the_disk_before_it_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power loss there is the old content or the new one."""
    path = tmp_path / "tokens.json"
    add(path, "first")
    done: list[str] = []
    really: dict[str, Callable[..., None]] = {"fsync": os.fsync, "replace": os.replace}

    def noting(name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:  # noqa: ANN401  # as the system takes them
            done.append(name)
            really[name](*arguments)

        return call

    for name in really:
        monkeypatch.setattr(os, name, noting(name))
    add(path, "second")
    assert done == ["fsync", "replace", "fsync"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file that it leads to is changed."""
    real, link = tmp_path / "real" / "tokens.json", tmp_path / "tokens.json"
    real.parent.mkdir()
    link.symlink_to(real)
    add(link, "first")
    add(link, "second")
    assert link.is_symlink()
    assert [token.name for token in read_tokens(real)] == ["first", "second"]


def test_a_link_that_lies_where_the_new_file_is_prepared(tmp_path: Path) -> None:
    """It is removed, and what it leads to is not written."""
    path, other = tmp_path / "tokens.json", tmp_path / "other"
    other.write_text("mine")
    add(path, "first")
    (tmp_path / ".tokens.json.tmp").symlink_to(other)
    add(path, "second")
    assert other.read_text() == "mine"
    assert not path.is_symlink()


def test_a_lock_that_is_not_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the command gives up, and the file is as before."""
    path = tmp_path / "tokens.json"
    add(path, "first")
    monkeypatch.setattr(token_file, "LOCK_S", 0.1)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(SinkError, match=r"cannot be changed: another process has kept it locked for 0\.1 s"):
            add(path, "second")
    finally:
        os.close(descriptor)
    assert [token.name for token in read_tokens(path)] == ["first"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, and the message names it."""
    path = tmp_path / "tokens.json"
    add(path, "first")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(SinkError, match=f"{path} cannot be changed: No space left"):
            add(path, "second")
    assert [token.name for token in read_tokens(path)] == ["first"]


def test_a_file_that_cannot_be_used_is_not_replaced(tmp_path: Path) -> None:
    """It may be mended; a new one in its place would end all tokens."""
    path = tmp_path / "tokens.json"
    path.write_text('{"schema": "dupwatch.tokens/1", "tokens": [')
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="is invalid"):
        add(path, "first")
    assert path.read_text().endswith("[")
