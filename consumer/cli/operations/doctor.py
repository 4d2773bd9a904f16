"""``dupwatch doctor``: find the problems that would stop a run, and say what to do about them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, command_config
from consumer.cli.results import results, write_json
from consumer.doctor.examination import CONFIGURATION, checks_of
from consumer.doctor.finding import CheckFindings, Status, examine, exit_code, sentence, unchecked, wrong
from consumer.model.errors import ConfigError
from consumer.text.counts import counted
from consumer.text.redaction import redacted

_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "wrong": ("✗", "bold red"),
    "unchecked": ("?", "cyan"),
}


def doctor(
    source: Annotated[str | None, typer.Option(help="Same as for dupwatch run.", metavar="FILE|-|TOPIC")] = None,
    sink: Annotated[str | None, typer.Option(help="Same as for dupwatch run.", metavar="FILE|-|PREFIX")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Check configuration, brokers, topics, group, gateways, tables, clocks and this machine. Changes nothing.

    Use the same options as for the run. Each check prints what it found and, if there is a problem, how to fix it.
    The exit code is 0 if nothing is wrong, even with warnings. If something is wrong, a run would exit with the same
    code.
    """
    examined = map(_without_secrets, _results(config, overrides, source__url=source, sink__url=sink, store__url=store))
    if json:
        shown = list(examined)
        with results():
            write_json(_json_fields(shown))
    else:
        shown = _print_all(examined)
    code = exit_code(shown)
    if code:
        raise typer.Exit(code)


def _results(config: Path | None, overrides: Sequence[str] | None, **flags: str | None) -> Iterator[CheckFindings]:
    try:
        chosen = command_config(config, overrides, **flags)
    except ConfigError as error:
        yield CheckFindings(
            CONFIGURATION,
            (
                wrong(
                    ConfigError, sentence(str(error)), "Correct the setting; dupwatch config show lists all settings."
                ),
            ),
        )
        yield CheckFindings(
            "all other checks", (unchecked("The configuration is invalid.", "Fix the configuration first."),)
        )
    else:
        yield from examine(checks_of(chosen))


def _without_secrets(result: CheckFindings) -> CheckFindings:
    """Return the result without any secrets that a server or a library may have quoted in it."""
    findings = (
        finding._replace(found=redacted(finding.found), remedy=finding.remedy and redacted(finding.remedy))
        for finding in result.findings
    )
    return result._replace(findings=tuple(findings))


def _print_all(examined: Iterator[CheckFindings]) -> list[CheckFindings]:
    """Print each result as soon as it is known, since a check may take seconds. Return all results."""
    console, shown = render.console(), []
    with results():
        for result in examined:
            shown.append(result)
            _print(console, result)
        console.print(_summary(shown))
    return shown


def _print(console: Console, result: CheckFindings) -> None:
    console.print(Text(render.plain(result.name), "bold"))
    for finding in result.findings:
        mark, style = _MARKS[finding.status]
        # The word shows the status where colours do not: in a pipe, and to readers who cannot tell them apart.
        word = "" if finding.status == "ok" else f"{finding.status}: "
        console.print(Text.assemble("  ", (mark, style), " ", (word, style), render.plain(finding.found)))
        if finding.remedy is not None:
            console.print(Text(f"      → {render.plain(finding.remedy)}"))


def _summary(examined: Sequence[CheckFindings]) -> Text:
    count = dict.fromkeys(_MARKS, 0)
    for result in examined:
        for finding in result.findings:
            count[finding.status] += 1
    warnings = counted(count["warning"], "warning")
    counts = f"{count['wrong']} wrong, {warnings}, {count['unchecked']} unchecked, {count['ok']} ok"
    return Text(f"{counts}.", _MARKS["wrong"][1] if count["wrong"] else "bold")


def _json_fields(examined: Sequence[CheckFindings]) -> dict[str, object]:
    findings = [
        {"check": result.name, "status": finding.status, "found": finding.found, "remedy": finding.remedy}
        for result in examined
        for finding in result.findings
    ]
    return {"wrong": sum(finding["status"] == "wrong" for finding in findings), "findings": findings}
