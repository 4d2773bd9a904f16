"""The help of every command, which needs no network."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.main import get_command

from consumer.cli.commands import GROUPS
from consumer.cli.main import app
from tests.cli.command import DUPWATCH, SAMPLE, TIMEOUT_S, Command, environment, json_lines

COMMANDS = {
    ("run",): ("--source", "--sink", "--store", "--emit", "--workers", "--show", "--config", "--set"),
    ("show",): ("ID", "--store", "--json", "--config", "--set"),
    ("explain",): ("A", "B", "--store", "--json", "--config", "--set"),
    ("release",): (
        "ID",
        "--version",
        "--store",
        "--by",
        "--reason",
        "--yes",
        "--dry-run",
        "--json",
        "--config",
        "--set",
    ),
    ("backfill",): ("FILE", "--store", "--state", "--workers", "--config", "--set"),
    ("demo",): ("--rate", "--store"),
    ("produce",): ("FILE|-", "--to", "--rate", "--in-order", "--config", "--set"),
    ("replay",): ("--source", "--from", "--until", "--store", "--against"),
    ("size",): ("--articles-a-day", "--lang", "--window", "--copies", "--sample", "--calibrate", "--json", "--config"),
    ("stress",): ("--source", "--sink", "--service", "--rate", "--copies", "--burst", "--plot", "--json", "--config"),
    ("doctor",): ("--source", "--sink", "--store", "--json", "--config", "--set"),
    ("top",): ("URL", "--once", "--interval", "--user", "--password-file", "--ca", "--config", "--set"),
    ("health",): ("--ready", "--config", "--set"),
    ("migrate",): ("--from-group", "--from-store", "--anew", "--store", "--group", "--allow-gap", "--json", "--config"),
    ("topics", "init"): ("--sink", "--source", "--partitions", "--replication", "--print", "--config", "--set"),
    ("topics",): ("init",),
    ("poison",): ("list", "resume"),
    ("poison", "list"): ("--source", "--group", "--json", "--config", "--set"),
    ("poison", "resume"): ("PARTITION", "--until", "--skip-to", "--source", "--group", "--config", "--set"),
    ("query",): ("FILE|-", "--store", "--config", "--set"),
    ("store", "stats"): ("--store", "--json"),
    ("store", "verify"): ("--store", "--json", "--dangling", "--pending-s"),
    ("store", "export"): ("--store", "--no-bodies"),
    ("store", "pack"): ("--store", "--before", "--bucket-s", "--row-postings-min", "--json"),
    ("store", "unpack"): ("--store", "--json"),
    ("tokens",): ("add", "list", "revoke"),
    ("tokens", "add"): ("NAME", "--role", "--owner", "--expires", "--tokens", "reader", "90d", "--config", "--set"),
    ("tokens", "list"): ("--tokens", "--json", "--config", "--set"),
    ("tokens", "revoke"): ("NAME", "--tokens", "--config", "--set"),
    ("console",): ("--store", "--sink", "--rebuild", "sink", "topic", "store", "--config", "--set"),
    ("people",): ("add", "list", "role", "disable", "enable", "password"),
    ("people", "add"): ("NAME", "--role", "--password-stdin", "reviewer", "admin", "--config", "--set"),
    ("people", "list"): ("--json", "--config", "--set"),
    ("people", "role"): ("NAME", "ROLE", "--config", "--set"),
    ("people", "disable"): ("NAME", "--config", "--set"),
    ("people", "enable"): ("NAME", "--config", "--set"),
    ("people", "password"): ("NAME", "--password-stdin", "--config", "--set"),
    ("reviews",): ("--config", "--set"),
    ("config", "show"): ("FILE", "--comments", "--config", "--set"),
    ("config", "check"): ("FILE", "--config", "--set", "--elsewhere"),
    ("store",): ("stats", "verify", "export", "init", "pack", "unpack"),
    ("config",): ("show", "check"),
    (): (
        "run",
        "demo",
        "backfill",
        "replay",
        "serve",
        "console",
        "migrate",
        "doctor",
        "top",
        "health",
        "show",
        "explain",
        "query",
        "release",
        "topics",
        "store",
        "tokens",
        "people",
        "config",
        "143",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_help(dupwatch: Command, command: tuple[str, ...]) -> None:
    """The help of a command names its options, of which flags have no type, and that of ``dupwatch`` its commands."""
    ended = dupwatch(*command, "--help")
    assert ended.code == 0
    assert ended.err == ""
    shown = ended.out.decode()
    assert [name for name in COMMANDS[command] if name not in shown] == []
    assert "<bool>" not in shown
    assert "--help" in shown


def test_every_command_is_listed_by_its_name(dupwatch: Command) -> None:
    """Below what people do with it. Groups of commands too."""
    shown = dupwatch("--help").out.decode()
    panels = dict(re.findall(r"╭─ ([^─]+) ─+╮\n(.*?)╰", shown, re.DOTALL))
    assert list(panels) == ["Options", *GROUPS]
    for group, names in GROUPS.items():
        listed = [line.split()[1] for line in panels[group].splitlines() if line.startswith("│ ") and line[2] != " "]
        assert listed == list(names)


def test_help_keeps_what_stands_in_brackets(dupwatch: Command) -> None:
    """Brackets in a help text are not treated as markup."""
    assert "those of [http] in" in " ".join(dupwatch("top", "--help").out.decode().split())
    texts = list(help_texts(get_command(app)))
    assert any("\\[http]" in text for text in texts)
    assert [text for text in texts if Text.from_markup(text).plain != text.replace("\\[", "[")] == []


def test_the_terminal_alone_breaks_the_lines_of_a_help(dupwatch: Command) -> None:
    """The line breaks of a docstring are not kept: they would break lines twice on a narrow terminal."""
    for command in (["run"], ["poison", "resume"]):
        described = dupwatch(*command, "--help", COLUMNS="600").out.decode().split("╭")[0]
        _, *lines = [line.strip() for line in described.splitlines() if line.strip()]
        assert len(lines) > 1
        assert [line for line in lines if not line.endswith(".")] == []


def help_texts(command: Any) -> Iterator[str]:  # noqa: ANN401  # Typer's own type of commands is not public
    """Return the help texts of a command, of its options and of its subcommands."""
    yield from filter(None, (command.help, *(getattr(parameter, "help", None) for parameter in command.params)))
    for below in getattr(command, "commands", {}).values():
        yield from help_texts(below)


def test_a_command_imports_no_other_and_no_client_that_it_does_not_use() -> None:
    """``--version``, or judging a file, loads neither HBase's client nor other commands."""
    asked = (
        "import sys; from consumer.cli.main import app; app(['run', '--help'], standalone_mode=False);"
        "print(*(name for name in sys.modules if name.startswith(('happybase', 'consumer.cli.', 'consumer.doctor'))))"
    )
    ended = subprocess.run([sys.executable, "-c", asked], capture_output=True, timeout=TIMEOUT_S, check=True, text=True)
    imported = ended.stdout.splitlines()[-1].split()
    assert "consumer.cli.runs.run" in imported
    assert not {"happybase", "consumer.cli.runs.replay", "consumer.doctor", "consumer.cli.operations.store"} & set(
        imported
    )


@pytest.mark.parametrize(
    ("statement", "unused"),
    [
        ("import dupwatch", {"confluent_kafka"}),
        ("call('--help')", set()),
        (
            f"call('run', '--source', {str(SAMPLE)!r}, '--sink', 'verdicts.jsonl', '--set', 'http.listen=')",
            {"confluent_kafka"},
        ),
        ("import consumer.cli.runs.lasting_run, consumer.web.page_server", set()),
    ],
    ids=["public module", "help", "run over a file", "run over topics"],
)
def test_consumers_import_only_what_they_use(statement: str, unused: set[str], tmp_path: Path) -> None:
    """Nobody who uses dupwatch without its servers, or without topics, pays for the import of their packages."""
    call = "from consumer.cli.main import app; call = lambda *words: app(words, standalone_mode=False)"
    shown = "import sys; print('imported:', *{name.partition('.')[0] for name in sys.modules})"
    ended = subprocess.run(
        [sys.executable, "-c", f"{call}; {statement}; {shown}"],
        capture_output=True, timeout=TIMEOUT_S, check=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    imported = set(ended.stdout.splitlines()[-1].split())
    assert {"imported:", "consumer"} <= imported
    assert not imported & {"fastapi", "h11", "starlette", "uvicorn", *unused}


def test_no_network(tmp_path: Path) -> None:
    """A run works without any network, even without a loopback interface."""
    unshared = ["unshare", "-Urn"]
    if subprocess.run([*unshared, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow namespaces")
    ended = subprocess.run(
        [*unshared, DUPWATCH, "run", "--source", SAMPLE, "--emit", "all"],
        capture_output=True, timeout=TIMEOUT_S, env=environment(), check=True, cwd=tmp_path,
    )  # fmt: skip
    assert len(json_lines(ended.stdout)) == len(SAMPLE.read_bytes().splitlines())


@pytest.mark.parametrize("command", ["replay", "dead-letters list", "dead-letters replay", "store pack"])
def test_the_help_says_how_times_are_written(dupwatch: Command, command: str) -> None:
    """It names the default time zone, the same for every command that takes a time."""
    shown = dupwatch(*command.split(), "--help", COLUMNS="200").out.decode()
    assert "without a zone it is UTC" in " ".join(shown.replace("│", " ").split())
