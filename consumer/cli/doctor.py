"""``dupwatch doctor``: what is wrong around a run, and what to do about it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured
from consumer.cli.results import results, write_json
from consumer.doctor.examination import CONFIGURATION, checks_of
from consumer.doctor.finding import Result, Status, examine, exit_code, sentence, unchecked, wrong
from consumer.model.errors import ConfigError
from consumer.text.redaction import redacted

_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "wrong": ("✗", "bold red"),
    "unchecked": ("?", "cyan"),
}


def doctor(
    source: Annotated[str | None, typer.Option(help="As of dupwatch run.", metavar="FILE|-|TOPIC")] = None,
    sink: Annotated[str | None, typer.Option(help="As of dupwatch run.", metavar="FILE|-|PREFIX")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Check configuration, brokers, topics, group, gateways, tables, clocks and this machine; changes nothing anywhere.

    Give it the options of the run that it is about. Each check says what it found, and where that is not right what to
    do. Ends with 0 where nothing is wrong, warnings or not; else with the code that a run would end with.
    """
    examined = map(_shareable, _examined(config, settings, source__url=source, sink__url=sink, store__url=store))
    if json:
        found = list(examined)
        with results():
            write_json(_plain(found))
    else:
        found = _shown(examined)
    code = exit_code(found)
    if code:
        raise typer.Exit(code)


def _examined(config: Path | None, settings: Sequence[str] | None, **flags: str | None) -> Iterator[Result]:
    try:
        chosen = configured(config, settings, **flags)
    except ConfigError as error:
        yield Result(
            CONFIGURATION,
            (wrong(ConfigError, sentence(str(error)), "Correct it: dupwatch config show has all names."),),
        )
        yield Result("everything else", (unchecked("There is no configuration to check it with.", "Mend that first."),))
    else:
        yield from examine(checks_of(chosen))


def _shareable(result: Result) -> Result:
    """Without the secrets that a server or a library may have quoted."""
    findings = (
        one._replace(found=redacted(one.found), remedy=one.remedy and redacted(one.remedy)) for one in result.findings
    )
    return result._replace(findings=tuple(findings))


def _shown(examined: Iterator[Result]) -> list[Result]:
    """Print each result as it comes: a check may take seconds."""
    console, found = render.console(), []
    with results():
        for result in examined:
            found.append(result)
            _print(console, result)
        console.print(_summary(found))
    return found


def _print(console: Console, result: Result) -> None:
    console.print(Text(render.plain(result.name), "bold"))
    for one in result.findings:
        mark, style = _MARKS[one.status]
        # No colour alone tells them apart: a pipe and some eyes see none.
        word = "" if one.status == "ok" else f"{one.status}: "
        console.print(Text.assemble("  ", (mark, style), " ", (word, style), render.plain(one.found)))
        if one.remedy is not None:
            console.print(Text(f"      → {render.plain(one.remedy)}"))


def _summary(found: Sequence[Result]) -> Text:
    count = dict.fromkeys(_MARKS, 0)
    for result in found:
        for one in result.findings:
            count[one.status] += 1
    told = f"{count['wrong']} wrong, {count['warning']} warnings, {count['unchecked']} could not be checked"
    return Text(f"{told}, {count['ok']} right.", _MARKS["wrong"][1] if count["wrong"] else "bold")


def _plain(found: Sequence[Result]) -> dict[str, object]:
    findings = [
        {"check": result.name, "status": one.status, "found": one.found, "remedy": one.remedy}
        for result in found
        for one in result.findings
    ]
    return {"wrong": sum(one["status"] == "wrong" for one in findings), "findings": findings}
