"""The audit log: no line is lost, torn or mixed with another, and what cannot be written is said."""

import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.model.errors import SinkError
from consumer.web import audit_log
from consumer.web.audit_log import AuditLog, ChangeRecord, ChangesRecorded, ChangesUnrecorded, line_of
from storage.files import WriteOptions

DEADLINE_S = 60
ROOT = Path(__file__).parents[3]
LASTING = WriteOptions(durable=True)
QUICK = WriteOptions(durable=False)
APPENDING = """
import sys
from pathlib import Path
from tests.unit.web.test_audit_log import opened, release
log = opened(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    log.append([release(f"{sys.argv[2]}-{number}-{part}" + "x" * 400) for part in range(20)])
"""


def release(article_id: str) -> ChangeRecord:
    """A change of this article."""
    return ChangeRecord(at_ms=0, token="desk", owner="An Na", action="articles.release", id=article_id, result="unique")


def opened(path: Path, reported: list[object] | None = None, writing: WriteOptions = QUICK) -> AuditLog:
    """The audit log at a path."""
    return AuditLog(path, writing, (lambda _: None) if reported is None else reported.append)


def ids(path: Path) -> list[str]:
    """The ids in a log, every line of which is whole."""
    data = path.read_bytes()
    assert data[-1:] in {b"", b"\n"}
    return [json.loads(line)["id"] for line in data.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that does not exist yet."""
    return tmp_path / "audit.jsonl"


@pytest.fixture
def file_size() -> Iterator[None]:
    """The largest size of a file may be lowered for a while."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, ignored)


def test_lines_are_appended(path: Path) -> None:
    """In order, to what an earlier process has written; nobody else can read them."""
    reported: list[object] = []
    for article_id in ("a", "b"):
        log = opened(path, reported, LASTING)
        log.append([release(article_id), release(f"{article_id}2")])
        log.close()
        log.close()
    assert ids(path) == ["a", "a2", "b", "b2"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert reported == [ChangesRecorded(2), ChangesRecorded(2)]


@pytest.mark.parametrize("durable", [True, False])
def test_lines_are_on_the_disk_before_the_call_returns(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, durable: bool
) -> None:
    """One write, then one flush; none where the store does not wait for the disk either."""
    log = opened(path, writing=WriteOptions(durable=durable))
    done: list[str] = []
    write, sync = os.write, os.fsync

    def written(descriptor: int, data: bytes) -> int:
        done.append("write")
        return write(descriptor, data)

    def synced(descriptor: int) -> None:
        done.append("fsync")
        sync(descriptor)

    monkeypatch.setattr(os, "write", written)
    monkeypatch.setattr(os, "fsync", synced)
    log.append([release("a"), release("b")])
    assert done == ["write", "fsync"] if durable else ["write"]


def test_several_processes_append_at_once(path: Path) -> None:
    """No line is missing, torn or within another, and the lines of one call are together."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDING, path, name, "25"], stdin=subprocess.PIPE, text=True, cwd=ROOT
        )
        for name in "abcd"
    ]
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("begin\n")
            process.stdin.close()
        assert [process.wait(DEADLINE_S) for process in processes] == [0, 0, 0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait(DEADLINE_S)
    found = [article_id.rstrip("x") for article_id in ids(path)]
    batches = [found[start : start + 20] for start in range(0, len(found), 20)]
    expected = [[f"{name}-{number}-{part}" for part in range(20)] for name in "abcd" for number in range(25)]
    assert sorted(batches) == sorted(expected)


def test_the_lock_is_given_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two services take turns at one file; neither waits for the other to end."""
    monkeypatch.setattr(audit_log, "LOCK_S", 0.0)
    one, other = opened(path), opened(path)
    for log, article_id in ((one, "a"), (other, "b"), (one, "c")):
        log.append([release(article_id)])
    assert ids(path) == ["a", "b", "c"]


def test_several_threads_append_while_the_file_is_rotated(path: Path) -> None:
    """Every line is in the old file or in the new one."""
    log = opened(path)
    stop = threading.Event()
    written: list[str] = []

    def append(name: str) -> None:
        number = 0
        while not stop.is_set():
            log.append([release(f"{name}-{number}")])
            written.append(f"{name}-{number}")
            number += 1

    threads = [threading.Thread(target=append, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    try:
        until_s = time.monotonic() + DEADLINE_S
        for number in range(5):
            path.rename(path.with_suffix(f".{number}"))
            while not path.exists():
                # The next line makes it.
                assert time.monotonic() < until_s
                stop.wait(0.001)
    finally:
        stop.set()
        for thread in threads:
            thread.join(DEADLINE_S)
    found = [article_id for file in path.parent.iterdir() for article_id in ids(file)]
    assert sorted(found) == sorted(written)


def test_a_file_that_was_renamed_or_removed(path: Path) -> None:
    """The next line goes to a file of the name, whether logrotate has made one or not."""
    log = opened(path)
    log.append([release("a")])
    path.rename(path.with_suffix(".1"))
    log.append([release("b")])
    path.rename(path.with_suffix(".2"))
    path.touch(0o600)
    log.append([release("c")])
    path.unlink()
    log.append([release("d")])
    assert [ids(path.with_suffix(suffix)) for suffix in (".1", ".2", ".jsonl")] == [["a"], ["b"], ["d"]]


def test_a_line_that_was_torn(path: Path) -> None:
    """It stays alone: the next line begins at the beginning of a line."""
    whole, torn = line_of(release("a")), line_of(release("b"))[:30]
    path.write_bytes(whole + torn)
    log = opened(path)
    log.append([release("c")])
    log.append([release("d")])
    assert path.read_bytes() == whole + torn + b"\n" + line_of(release("c")) + line_of(release("d"))


def test_a_full_disk(path: Path, file_size: None) -> None:
    """The caller is told, nothing of the lines is left, and they can be appended when there is space."""
    reported: list[object] = []
    log = opened(path, reported)
    log.append([release("a")])
    before = path.read_bytes()
    many = [release(f"b{number}") for number in range(1_000)]
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5_000, resource.RLIM_INFINITY))
    with pytest.raises(SinkError, match=f"the audit log {path} cannot be written: File too large"):
        log.append(many)
    assert path.read_bytes() == before
    assert reported[1:] == [ChangesUnrecorded(1_000, "File too large")]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    log.append(many)
    assert len(ids(path)) == 1_001


def test_a_disk_that_fails_when_it_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told, and the lock is given back."""
    reported: list[object] = []
    log = opened(path, reported, LASTING)

    def failing(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(SinkError, match="Input/output error"):
            log.append([release("a")])
    assert reported == [ChangesUnrecorded(1, "Input/output error")]
    log.append([release("a")])
    assert ids(path) == ["a", "a"]


def test_a_folder_that_is_gone_for_a_while(path: Path) -> None:
    """Each change is refused meanwhile; then it goes on."""
    log = opened(path)
    path.unlink()
    path.parent.rmdir()
    for _ in range(2):
        with pytest.raises(SinkError, match="No such file"):
            log.append([release("a")])
    path.parent.mkdir()
    log.append([release("b")])
    assert ids(path) == ["b"]


def test_a_lock_that_is_not_given_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told after a while, instead of hanging."""
    monkeypatch.setattr(audit_log, "LOCK_S", 0.1)
    log = opened(path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(SinkError, match=r"another process has kept it locked for 0\.1 s"):
            log.append([release("a")])
    finally:
        os.close(descriptor)
    log.append([release("b")])
    assert ids(path) == ["b"]


def test_what_is_not_a_file(path: Path) -> None:
    """A folder, a named pipe and a place that does not exist are refused at the start."""
    os.mkfifo(path)
    for place, why in ((path.parent, "Is a directory"), (path, "not a regular file"), (path / "x", "Not a directory")):
        with pytest.raises(SinkError, match=f"cannot be written: .*{why}"):
            opened(place)
