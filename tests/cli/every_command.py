"""All commands with valid arguments, for tests that cover every command."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from typer.main import get_command

from consumer.cli.main import app
from tests.cli.command import Outcome

LINES_MAX: Final = 3
COLUMNS: Final = 80
NOWHERE: Final = "127.0.0.1:1"
"""Nobody listens at this port, and nobody unprivileged can."""
IMPATIENT: Final = ("--set", "store.hbase.deadline_s=1", "--set", "store.hbase.call_s=1")
Name = tuple[str, ...]


class Entry(NamedTuple):
    """Arguments of a command, with the placeholders ``{folder}``, ``{feed}``, ``{store}``, ``{kafka}`` and ``{path}``.

    ``given`` is a command line that is right; ``works`` says whether the command then ends with 0 where no server and
    no consumer runs. ``reads`` are command lines that read from ``{path}``, ``writes`` some that write to it, each with
    its exit code where that fails. ``from_stdin`` reads standard input.
    """

    given: Name = ()
    works: bool = True
    reads: tuple[tuple[int, Name], ...] = ()
    writes: tuple[tuple[int, Name], ...] = ()
    from_stdin: Name | None = None


_LETTERS: Final = ("--sink", "{folder}/verdicts")
_BANKS: Final = ("--banks", "{folder}/banks")
_PEOPLE: Final = ("--set", "console.database=sqlite:///{folder}/people.db")
_PEOPLE_AT_PATH: Final = ("--set", "console.database=sqlite:///{path}")
_TOKEN: Final = ("crawler", "--role", "reader", "--owner", "An Na")

EVERY: Final[dict[Name, Entry]] = {
    ("run",): Entry(
        ("--source", "{feed}", "--sink", "{folder}/out"),
        reads=((3, ("--source", "{path}")),),
        writes=((6, ("--source", "{feed}", "--sink", "{path}")),),
        from_stdin=("--source", "-"),
    ),
    ("serve",): Entry(("--store", "memory:", "--set", "service.listen=127.0.0.1:0"), works=False),
    ("console",): Entry(
        ("--store", "{store}", "--sink", "{kafka}", "--set", "console.listen=127.0.0.1:0", *_PEOPLE), works=False
    ),
    ("backfill",): Entry(
        ("{feed}", "--store", "lmdb:{folder}/filled", "--state", "{folder}/state"),
        reads=((3, ("{path}", "--store", "lmdb:{folder}/filled", "--state", "{folder}/state")),),
    ),
    ("demo",): Entry(("--feed", "{feed}", "--rate", "1000"), reads=((3, ("--feed", "{path}")),)),
    ("produce",): Entry(
        ("{feed}", "--to", "{kafka}", "--wait", "0.2"), works=False, reads=((3, ("{path}", "--to", "{kafka}")),)
    ),
    ("replay",): Entry(("--source", "{kafka}", "--from", "0", "--store", "lmdb:{folder}/replayed"), works=False),
    ("migrate",): Entry(
        ("--from-group", "g", "--anew", "--source", "{kafka}", "--store", "lmdb:{folder}/moved", "--group", "h"),
        works=False,
    ),
    ("size",): Entry(("--articles-a-day", "1000")),
    ("stress",): Entry(
        ("--source", "{kafka}", "--sink", "{kafka}", "--wait", "0.2"),
        works=False,
        reads=((2, ("--service", f"http://{NOWHERE}", "--token-file", "{path}")),),
    ),
    ("doctor",): Entry(("--source", "{feed}")),
    ("top",): Entry(
        ("--once", "--interval", "0.1", f"http://{NOWHERE}"),
        works=False,
        reads=((2, ("--once", "--password-file", "{path}")),),
    ),
    ("health",): Entry(works=False),
    ("show",): Entry(("a4", "--store", "{store}")),
    ("explain",): Entry(("a3", "a4", "--store", "{store}")),
    ("query",): Entry(
        ("{feed}", "--store", "{store}"),
        reads=((3, ("{path}", "--store", "{store}")),),
        from_stdin=("-", "--store", "{store}"),
    ),
    ("release",): Entry(("a4", "--store", "{store}", "--dry-run")),
    ("bank", "create"): Entry(
        ("new", "--action", "deny", *_BANKS), writes=((2, ("new", "--action", "deny", "--banks", "{path}")),)
    ),
    ("bank", "add"): Entry(
        ("spam", "--article", "a3", "--item", "copied", "--store", "{store}", *_BANKS),
        reads=((3, ("spam", "{path}", *_BANKS)),),
        from_stdin=("spam", "-", *_BANKS),
    ),
    ("bank", "list"): Entry(_BANKS, reads=((2, ("--banks", "{path}")),)),
    ("bank", "show"): Entry(("spam", *_BANKS), reads=((2, ("spam", "--banks", "{path}")),)),
    ("bank", "disable"): Entry(("off", *_BANKS)),
    ("bank", "enable"): Entry(("off", *_BANKS)),
    ("bank", "confirm"): Entry(("spam", "offer", *_BANKS)),
    ("bank", "remove"): Entry(("spam", "copied", *_BANKS)),
    ("bank", "import"): Entry(("spam", "{folder}/items.csv", *_BANKS), reads=((3, ("spam", "{path}", *_BANKS)),)),
    ("bank", "export"): Entry(_BANKS, reads=((2, ("--banks", "{path}")),)),
    ("bank", "test"): Entry(
        ("--text", "Win a ferry ticket", *_BANKS),
        reads=((3, ("{path}", *_BANKS)),),
        from_stdin=("-", *_BANKS),
    ),
    ("bank", "matches"): Entry(("spam", "--store", "{store}", *_BANKS), reads=((2, ("spam", "--banks", "{path}")),)),
    ("bank", "scan"): Entry(
        ("--store", "{store}", *_BANKS),
        reads=((3, ("{path}", *_BANKS)), (2, ("{feed}", "--banks", "{path}"))),
        from_stdin=("-", *_BANKS),
    ),
    ("evaluate",): Entry(
        ("{feed}", "--pairs", "{folder}/pairs"),
        reads=((3, ("{path}", "--pairs", "{folder}/pairs")), (3, ("{feed}", "--pairs", "{path}"))),
        from_stdin=("-", "--pairs", "{folder}/pairs"),
    ),
    ("fingerprint",): Entry(("{folder}/text",), reads=((3, ("{path}",)),), from_stdin=("-",)),
    ("compare",): Entry(
        ("{folder}/text", "{folder}/text"), reads=((3, ("{folder}/text", "{path}")),), from_stdin=("{folder}/text", "-")
    ),
    ("idf", "build"): Entry(
        ("{feed}", "-o", "{folder}/idf"),
        reads=((3, ("{path}", "-o", "{folder}/idf")),),
        writes=((6, ("{feed}", "-o", "{path}")),),
        from_stdin=("-", "-o", "{folder}/idf"),
    ),
    ("store", "stats"): Entry(("--store", "{store}")),
    ("store", "verify"): Entry(("--store", "{store}")),
    ("store", "export"): Entry(("--store", "{store}")),
    ("store", "secret", "export"): Entry(("{folder}/secret", "--store", "{store}")),
    ("store", "init"): Entry(("--store", f"hbase://{NOWHERE}/feed", "--print")),
    ("store", "pack"): Entry(("--store", f"hbase://{NOWHERE}/feed", *IMPATIENT), works=False),
    ("store", "unpack"): Entry(("--store", f"hbase://{NOWHERE}/feed", *IMPATIENT), works=False),
    ("dead-letters", "list"): Entry(
        _LETTERS,
        reads=(
            (3, ("--sink", "{path}.dead-letters.jsonl")),
            (3, ("{path}.dead-letters.jsonl",)),
            (3, ("--sink", "{path}/verdicts")),
        ),
    ),
    ("dead-letters", "show"): Entry(("1", *_LETTERS), reads=((3, ("1", "--sink", "{path}.dead-letters.jsonl")),)),
    ("dead-letters", "replay"): Entry(("--sink", "{kafka}"), works=False),
    ("poison", "list"): Entry(("--source", "{kafka}"), works=False),
    ("poison", "resume"): Entry(("--source", "{kafka}"), works=False),
    ("topics", "init"): Entry(("--sink", "{kafka}", "--print")),
    ("tokens", "add"): Entry(
        (*_TOKEN, "--tokens", "{folder}/new-tokens"), writes=((6, (*_TOKEN, "--tokens", "{path}")),)
    ),
    ("tokens", "list"): Entry(("--tokens", "{folder}/tokens"), reads=((2, ("--tokens", "{path}")),)),
    ("tokens", "revoke"): Entry(
        ("crawler", "--tokens", "{folder}/tokens"), reads=((2, ("crawler", "--tokens", "{path}")),)
    ),
    ("people", "add"): Entry(
        ("Cy", "--set", "console.database=sqlite:///{folder}/new-people.db"), writes=((2, ("Cy", *_PEOPLE_AT_PATH)),)
    ),
    ("people", "list"): Entry(_PEOPLE),
    ("people", "role"): Entry(("Bo", "reviewer", *_PEOPLE)),
    ("people", "disable"): Entry(("Bo", *_PEOPLE)),
    ("people", "enable"): Entry(("Bo", *_PEOPLE)),
    ("people", "password"): Entry(("Bo", *_PEOPLE)),
    ("reviews",): Entry(_PEOPLE),
    ("config", "show"): Entry(reads=((2, ("{path}",)),)),
    ("config", "check"): Entry(reads=((2, ("{path}",)),)),
}


def commands() -> dict[Name, Any]:
    """Return every command by its name, without groups."""
    return dict(_commands((), get_command(app)))


def _commands(name: Name, command: Any) -> Iterator[tuple[Name, Any]]:  # noqa: ANN401  # Typer's own is not public
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
    else:
        for subcommand in below:
            yield from _commands((*name, subcommand), below[subcommand])


def options_of(name: Name) -> set[str]:
    """Return the options of a command."""
    return {option for parameter in commands()[name].params for option in parameter.opts if option.startswith("-")}


def filled(arguments: Name, **places: str | Path) -> list[str]:
    """Return the arguments with their placeholders replaced."""
    return [argument.format(**places) for argument in arguments]


def sentence_of(ended: Outcome) -> str:
    """Return the message of a command that failed: at most three lines of 80 columns, and no traceback.

    A Kafka client may have written lines of its log before.
    """
    assert "Traceback" not in ended.err, ended.err
    lines = [line for line in ended.err.splitlines() if not line.startswith('{"time"')]
    assert lines, ended
    assert lines[0].startswith("dupwatch: "), ended.err
    assert len([part for line in lines for part in textwrap.wrap(line, COLUMNS)]) <= LINES_MAX, ended.err
    return "\n".join(lines)
