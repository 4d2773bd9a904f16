"""``dupwatch top``: its picture of consumers that answer, and of one that does not."""

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from consumer.cli.operations.top_view import bar, milliseconds
from tests.cli.command import DUPWATCH, TIMEOUT_S, Command, environment
from tests.unit.doctor.consumer_pages import flag, flags_page, served

QUICK = ("--once", "--interval", "0.1")


def test_one_picture(dupwatch: Command) -> None:
    """Figures, stages in the order of an article's way, and the latest flag."""
    with served() as pages:
        pages.answers["/flags.json"] = (200, flags_page(flag("a2", "2026-11-21T10:00:00.123Z", "苍浦降温")))
        ended = dupwatch("top", pages.url, *QUICK)
    assert ended.code == 0, ended.err
    shown = ended.out.decode()
    (row,) = [line for line in shown.splitlines() if line.startswith(pages.url)]
    # Nothing happened within the interval, so there are no rates and no latency.
    assert row.split()[1:] == ["0.0", "–", "1,234", "–", "–", "5", "0", "2", "3", "ready"]
    stages = [line.split()[0] for line in shown.splitlines() if line.startswith(("decode", "look_up", "commit"))]
    assert stages == ["decode", "look_up", "commit"]
    (row,) = [line for line in shown.splitlines() if line.startswith("11-21")]
    assert row.split() == ["11-21", "10:00:00", "a2", "a2-original", "3", "0.95", "苍浦降温"]


def test_several_consumers_and_one_that_is_away(dupwatch: Command) -> None:
    """The unreachable one is marked, the others are summed, and the exit code is 0 while any answers."""
    with served() as gone:
        away = gone.url
    with served() as first, served() as other:
        other.answers["/readyz"] = (503, b'{"ready": false, "reasons": ["store: gateway \\u001b[31m down"]}')
        ended = dupwatch("top", first.url, other.url, away, *QUICK)
    assert ended.code == 0, ended.err
    shown = ended.out.decode()
    assert "2,468" in shown
    assert "2 of 3 answer" in shown
    assert "unreachable: Connection refused" in shown
    assert "not ready: store: gateway" in shown
    assert "\x1b" not in shown
    assert dupwatch("top", away, *QUICK).code == 3


def test_what_a_consumer_holds_is_named(dupwatch: Command) -> None:
    """It is still ready, for its other partitions."""
    with served() as pages:
        status, metrics = pages.answers["/metrics"]
        samples = (
            b'dupwatch_partition_held{topic="articles",partition="0"} 1\n'
            b'dupwatch_partition_held{topic="articles",partition="1"} 0\n'
        )
        pages.answers["/metrics"] = (status, metrics + samples)
        ended = dupwatch("top", pages.url, *QUICK)
    (row,) = [line for line in ended.out.decode().splitlines() if line.startswith(pages.url)]
    assert row.endswith("ready; holds articles:0")


def test_why_one_is_not_ready_is_told_in_a_pipe(dupwatch: Command) -> None:
    """In one line with its figures, even if lines are limited to 80 characters."""
    with served() as pages:
        pages.answers["/readyz"] = (
            503,
            b'{"ready": false, "reasons": ["store: the gateway gateway-1 does not answer"]}',
        )
        ended = dupwatch("top", pages.url, *QUICK, COLUMNS="80")
    (row,) = [line for line in ended.out.decode().splitlines() if line.startswith(pages.url)]
    assert row.endswith("not ready: store: the gateway gateway-1 does not answer")


def test_nothing_of_an_article_steers_the_terminal(dupwatch: Command) -> None:
    """Escapes and markup in ids and titles are shown as text."""
    with served() as pages:
        evil = flag("\x1b]0;x\x07id[bold]", "2026-11-21T10:00:00\x1b[2J", "\u202etitle\r\n[red]")
        pages.answers["/flags.json"] = (200, flags_page(evil))
        ended = dupwatch("top", pages.url, *QUICK)
    shown = ended.out.decode()
    assert "id[bold]" in shown
    assert "[red]" in shown
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(shown)


@pytest.mark.parametrize(
    "arguments",
    [("ftp://x",), ("foo",), ("http://[x",), ("--set", "http.listen="), ("--interval", "0")],
)
def test_wrong_arguments(dupwatch: Command, arguments: tuple[str, ...]) -> None:
    """The exit code is 2."""
    assert dupwatch("top", *arguments, "--once").code == 2


def test_the_configured_consumer_and_its_password(dupwatch: Command, tmp_path: Path) -> None:
    """Without a URL it uses http.listen; the password comes from a file."""
    (tmp_path / "password").write_text("geheim\n")
    with served() as pages:
        listen = ("--set", f"http.listen=127.0.0.1:{pages.port}")
        ended = dupwatch("top", *QUICK, *listen, "--user", "ops", "--password-file", tmp_path / "password")
        assert ended.code == 0, ended.err
        assert pages.asked["Authorization"] == "Basic b3BzOmdlaGVpbQ=="
    assert "geheim" not in ended.out.decode()


def test_a_terminal_is_drawn_anew_until_somebody_ends_it() -> None:
    """On a terminal the picture follows the figures; Ctrl-C ends it with 0 and restores the screen."""
    with served() as pages:
        main, worker = pty.openpty()
        process = subprocess.Popen(
            [DUPWATCH, "top", pages.url, "--interval", "0.1"],
            stdin=worker, stdout=worker, stderr=worker, start_new_session=True,
            env=environment(TERM="xterm-256color", LINES="40"),
        )  # fmt: skip
        os.close(worker)
        seen = b""
        try:

            def wait_for(word: bytes) -> None:
                nonlocal seen
                until_s = time.monotonic() + TIMEOUT_S
                while word not in seen:
                    assert time.monotonic() < until_s, seen
                    if select.select([main], [], [], 0.1)[0]:
                        seen += os.read(main, 1 << 16)

            wait_for(b"1,234")
            pages.answers["/metrics"] = (200, pages.answers["/metrics"][1].replace(b" 1234", b" 5678"))
            wait_for(b"5,678")
            process.send_signal(2)
            assert process.wait(TIMEOUT_S) == 0
            # The alternate screen is left.
            wait_for(b"\x1b[?1049l")
        finally:
            process.kill()
            process.wait()
            os.close(main)


def test_bars_and_times() -> None:
    """A bar is as long as its share, in eighths; a time has a suitable unit."""
    assert [bar(share, 2) for share in (0, 0.0625, 0.5, 0.75, 1, 7, -1)] == ["", "▏", "█", "█▌", "██", "██", ""]
    assert [milliseconds(seconds) for seconds in (None, 0.0, 0.0004, 0.0123, 9.9, 42.0)] == [
        "–", "0 ms", "0.4 ms", "12 ms", "9,900 ms", "42 s",
    ]  # fmt: skip
    assert milliseconds(float("inf"), 60.0) == "> 60 s"
