"""``dupwatch dead-letters``: list, show and replay records that could not be judged."""

import base64
import itertools
import time
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Final

import typer
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, argument_or_option, command_config
from consumer.cli.results import answer, results, write_json
from consumer.config.config import Config
from consumer.kafka.sink.letter_replay import LetterReplay, ReplayRefused
from consumer.kafka.sink.topic_letters import TopicLetterReader
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.model.article import Reason
from consumer.model.errors import ConfigError
from consumer.model.letter import Letter, LetterFilter, LetterReader
from consumer.text.counts import counted
from consumer.text.timestamps import TIME_HELP, option_time_ms, shown_time
from consumer.wiring.components import kafka_options
from consumer.wiring.feeds import open_letters
from consumer.wiring.kafka_parts import letters_topic
from storage.clock import MS_PER_S

ROWS_MAX: Final = 100
"""The maximum number of rows of a table without ``--limit``."""
_KAFKA: Final = "kafka://"
_CHARS_MAX: Final = 200
_NO_REASON: Final = "–"

app = typer.Typer(no_args_is_help=True, help="List, show or replay records that could not be judged.")

LettersOption = Annotated[
    str | None,
    typer.Option(
        "--sink",
        help="The sink of the run, which also has its dead letters: "
        "kafka://HOST:PORT/PREFIX, or a file (replay needs a topic).",
        metavar="FILE|KAFKA",
    ),
]
LettersArgument = Annotated[
    str | None,
    typer.Argument(metavar="FILE|KAFKA", help="The dead letters, or the sink of the run, as with --sink."),
]
ReasonOption = Annotated[
    list[str] | None, typer.Option("--reason", help="Only this reason. May be repeated.", metavar="REASON")
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", help=f"Only records from this time on: {TIME_HELP}.", metavar="TIME"),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", help="Only records before this time; same format as --since.", metavar="TIME")
]
KeyOption = Annotated[
    str | None, typer.Option("--key", help="Only records with this key; in a file, with this article id.")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, help="Stop after N dead letters.", metavar="N")]


@app.command("list")
def list_(
    letters: LettersArgument = None,
    sink: LettersOption = None,
    reason: ReasonOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    key: KeyOption = None,
    limit: LimitOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """List dead letters in order of position, the first 100 unless --limit is given; with --json all of them."""
    chosen = command_config(config, overrides, sink__url=_named_sink(letters, sink))
    selection = _selection(chosen, reason, since, until, key)
    rows_max = limit if json or limit is not None else ROWS_MAX
    with open_letters(chosen) as written:
        selected = filter(selection.takes, written.letters())
        with results():
            if json:
                for letter in itertools.islice(selected, rows_max):
                    write_json(_json_fields(letter))
            else:
                render.console().print(_table(itertools.islice(selected, rows_max)))
        if limit is None and next(selected, None) is not None:
            render.console(stderr=True).print(f"Showing the first {rows_max}; use --limit to show more.")


@app.command()
def show(
    position: Annotated[
        str,
        typer.Argument(metavar="POSITION", help="PARTITION:OFFSET in a topic, or a line number in a file; see list."),
    ],
    letters: LettersArgument = None,
    sink: LettersOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Show one dead letter, with the original value of the record."""
    chosen = command_config(config, overrides, sink__url=_named_sink(letters, sink))
    with open_letters(chosen) as written:
        letter = written.letter(position)
    if letter is None:
        raise ConfigError(f"no dead letter at {position} in {chosen.sink.url}; dupwatch dead-letters list shows all")
    headers = [{"name": name, **_text_or_base64("value", value)} for name, value in letter.headers]
    whole = _json_fields(letter) | {"headers": headers} | _text_or_base64("value", letter.value)
    answer(json=json, lines=[whole], text=_text(letter))


@app.command()
def replay(
    sink: LettersOption = None,
    to: Annotated[
        str | None, typer.Option(help="Send all records to this topic instead of their own.", metavar="TOPIC")
    ] = None,
    reason: ReasonOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    key: KeyOption = None,
    limit: LimitOption = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Send at most N per second.", metavar="N")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Send nothing; count what would be sent.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Send the records of dead letters back to their topics to be judged again, for example after fixing a setting.

    Key, value, headers and time are those of the original record; one extra header counts its replays. The dead letters
    remain, so a second replay sends the same records again, which then get the same verdicts. Dead letters written
    during a replay are left for the next one. A dead letter with a truncated value is refused.
    """
    chosen = command_config(config, overrides, sink__url=sink)
    selection = _selection(chosen, reason, since, until, key)
    brokers, topic = letters_topic(chosen)
    options = kafka_options(chosen)
    stopping = StopSignal()
    with stopping.handle_signals(), TopicLetterReader(brokers, topic, options) as letters:
        ahead_ms_max = int(chosen.kafka.ahead_s_max * MS_PER_S)
        letter_replay = LetterReplay(brokers, options, topic, to, ahead_ms_max, dry_run=dry_run)
        selected = itertools.islice(filter(selection.takes, letters.letters()), limit)
        refused = _send(letter_replay, letters, stopping.until_requested(selected), rate, stopping)
    sent = letter_replay.sent
    counts = {"sent": 0 if dry_run else sent, "would_be_sent": sent if dry_run else 0, "refused": refused}
    rows = {"would be sent" if dry_run else "sent": f"{sent}", "refused": f"{refused}"}
    answer(json=json, lines=[counts], text=[render.value_table("Replayed", rows.items())])
    if stopping.requested_by is not None:
        render.console(stderr=True).print("Stopped.")
        raise typer.Exit(SIGNAL_EXIT_BASE + stopping.requested_by)


def _named_sink(letters: str | None, sink: str | None) -> str | None:
    return argument_or_option(letters, sink, "the argument and --sink")


def _send(
    letter_replay: LetterReplay,
    letters: LetterReader,
    selected: Iterator[Letter],
    rate: float | None,
    stopping: StopSignal,
) -> int:
    """Send the letters, print each refusal, and return the number of refusals."""
    console = render.console(stderr=True)
    refused = 0
    began_s = time.monotonic()
    with render.progress(console) as bar:
        task = bar.add_task("replaying", total=letters.progress()[1])
        for letter in selected:
            if rate is not None:
                letter_replay.pace(rate, began_s, lambda: stopping.requested_by is not None)
            if stopping.requested_by is not None:
                break
            try:
                letter_replay.send(letter)
            except ReplayRefused as reason:
                refused += 1
                console.print(f"Not replayed: {letter.position}: {render.plain(str(reason))}")
            bar.update(task, completed=letters.progress()[0])
        letter_replay.finish()
    return refused


def _selection(
    config: Config, reasons: Sequence[str] | None, since: str | None, until: str | None, key: str | None
) -> LetterFilter:
    for reason in reasons or ():
        if reason not in frozenset(str(known) for known in Reason):
            suggestion = "".join(f" Did you mean {close}?" for close in get_close_matches(reason, sorted(Reason), n=1))
            raise ConfigError(f"--reason {reason}: unknown reason.{suggestion} docs/use/events.md lists all reasons.")
    if (since or until) and not config.sink.url.startswith(_KAFKA):
        raise ConfigError("--since and --until need a topic; dead letters in a file have no time")
    return LetterFilter(
        frozenset(reasons or ()),
        None if since is None else option_time_ms("--since", since),
        None if until is None else option_time_ms("--until", until),
        key,
    )


def _table(letters: Iterator[Letter]) -> Table:
    columns = [Column(name, no_wrap=True) for name in ("position", "time", "reason")]
    rows = (
        (
            letter.position,
            "" if letter.time_ms is None else shown_time(letter.time_ms),
            render.plain(letter.reason or _NO_REASON),
            render.plain(letter.article_id, _CHARS_MAX),
            render.plain(letter.detail, _CHARS_MAX),
        )
        for letter in letters
    )
    return render.table([*columns, "key", Column("detail", overflow="fold")], rows)


def _text(letter: Letter) -> Iterator[RenderableType]:
    size = counted(letter.size_bytes, "byte")
    rows = {
        "time": "" if letter.time_ms is None else shown_time(letter.time_ms),
        "reason": letter.reason or _NO_REASON,
        "detail": letter.detail,
        "came from": letter.place if letter.origin is None else "{} {}:{}".format(*letter.origin),
        "key": letter.article_id,
        "size": f"{size}, truncated to the first {len(letter.value or b'')}" if letter.cut else size,
        "sha256": letter.sha256 or "",
        "replayed": counted(letter.replays, "time") if letter.replays else "",
    }
    shown = [(name, text) for name, text in rows.items() if text]
    shown += [(f"header {render.plain(name)}", _value_text(value)) for name, value in letter.headers]
    yield render.value_table(letter.position, [(name, render.plain(text)) for name, text in shown])
    yield Text("\nnull" if letter.value is None else "\nvalue", "bold")
    for line in _value_text(letter.value).split("\n") if letter.value is not None else ():
        yield Text(render.plain(line))


def _value_text(value: bytes | None) -> str:
    """Return the bytes as text, with escapes for bytes that are not UTF-8; "null" for None."""
    return "null" if value is None else value.decode(errors="backslashreplace")


def _json_fields(letter: Letter) -> dict[str, Any]:
    """Return the fields of a letter for JSON, without its headers and value."""
    return {
        "position": letter.position,
        "time": None if letter.time_ms is None else shown_time(letter.time_ms),
        "reason": letter.reason,
        "detail": letter.detail,
        "origin": None if letter.origin is None else letter.origin._asdict(),
        "place": letter.place,
        **_text_or_base64("key", letter.key),
        "size_bytes": letter.size_bytes,
        "sha256": letter.sha256,
        "cut": letter.cut,
        "replays": letter.replays,
    }


def _text_or_base64(name: str, value: bytes | None) -> dict[str, str | None]:
    """Return bytes as two JSON fields: text under ``name``, or base64 under ``name_base64`` if they are not UTF-8."""
    try:
        return {name: None if value is None else value.decode(), f"{name}_base64": None}
    except UnicodeDecodeError:
        return {name: None, f"{name}_base64": base64.b64encode(value or b"").decode()}
