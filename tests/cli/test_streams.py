"""Pipes and terminals: what is written where, and how soon."""

import json
import os
import pty
import select
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import (
    FAST,
    SAMPLE,
    TIMEOUT_S,
    articles,
    environment,
    json_lines,
    run_process,
    start,
    write_lines,
)

ESCAPE = b"\x1b"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_slow_pipe_is_answered_at_once(workers: str) -> None:
    """An article from an open pipe has its verdict without waiting for a full batch, which would never come."""
    process = start(
        "run", "--emit", "all", "--workers", workers,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for article in articles(range(5)):
            process.stdin.write(json.dumps(article).encode() + b"\n")
            assert select.select([process.stdout], [], [], TIMEOUT_S)[0]
            assert json.loads(process.stdout.readline())["id"] == article["id"]
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_waiting_for_a_pipe_ends_when_asked() -> None:
    """SIGTERM ends a run that waits for the next article of an open pipe, with and without workers."""
    for workers in ("0", "1"):
        process = start(
            "run", "--emit", "all", "--workers", workers,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(articles([0])[0]).encode() + b"\n")
        assert process.stdout.readline()
        process.terminate()
        err = process.stderr.read() if process.stderr else b""
        assert process.wait(TIMEOUT_S) == 143, err
        assert b"Traceback" not in err
        assert b"rerun" not in err
        process.communicate()


def test_results_alone_on_standard_output() -> None:
    """In a pipe, standard output has verdicts only; neither stream has escape codes or a progress bar."""
    ended = run_process("run", "--emit", "all", "--show", given=SAMPLE.read_bytes())
    assert ended.code == 0
    assert len(json_lines(ended.out)) == len(SAMPLE.read_bytes().splitlines())
    assert ESCAPE not in ended.out + ended.err.encode()
    assert "\r" not in ended.err
    assert "judging" not in ended.err
    assert "repeats" in ended.err


def test_bar_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal there is a progress bar, which is removed at the end."""
    feed = write_lines(tmp_path / "feed.jsonl", articles(range(600)))
    ours, theirs = pty.openpty()
    process = start(
        "run", "--source", feed, "--sink", tmp_path / "out.jsonl", "--set", "source.batch_records_max=20",
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM="xterm-256color"),
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:
        pass  # how a pseudo-terminal says that the other side is gone
    finally:
        os.close(ours)
    assert process.wait(TIMEOUT_S) == 0
    assert b"judging" in seen
    assert b"%" in seen
    assert b"Summary" in seen.rsplit(b"judging", 1)[1]


@pytest.mark.parametrize("store", ["memory:", "lmdb:store"])
def test_named_pipe_is_read_once(tmp_path: Path, store: str) -> None:
    """A named pipe is a stream: its first record is judged like the others, and no checkpoint is kept."""
    pipe = tmp_path / "feed"
    os.mkfifo(pipe)
    feed = write_lines(tmp_path / "feed.jsonl", articles(range(10)))
    process = start(
        "run", "--source", pipe, "--sink", "out.jsonl", "--store", store, "--emit", "all", *FAST,
        cwd=tmp_path, stderr=subprocess.PIPE,
    )  # fmt: skip
    with subprocess.Popen(["sh", "-c", 'cat "$0" > "$1"', feed, pipe]) as writer:
        try:
            _, err = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
            writer.kill()
    assert process.returncode == 0, err
    assert len(json_lines((tmp_path / "out.jsonl").read_bytes())) == 10
    assert not (tmp_path / "out.jsonl.checkpoint.json").exists()
