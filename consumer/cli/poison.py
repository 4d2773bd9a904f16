"""``dupwatch poison``: partitions that are held since their records cannot be judged, or not even be read."""

from typing import Annotated

import msgspec
import typer
from rich.table import Table

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, configured
from consumer.cli.results import results, write, write_json
from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.wiring.resume_partitions import HeldPartition, Way, holding

app = typer.Typer(no_args_is_help=True, help="Partitions that are held for poison: see them, and let them go on.")

SourceOption = Annotated[
    str | None, typer.Option("--source", help="kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC].", metavar="TOPIC")
]
GroupOption = Annotated[str | None, typer.Option("--group", help="The group of the consumers.")]


@app.command("list")
def list_(
    source: SourceOption = None,
    group: GroupOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """List the partitions that are held: where each waits, how much waits behind it, and why.

    Consumers may be running. It changes nothing.
    """
    chosen = configured(config, settings, source__url=source, kafka__group=group)
    with holding(chosen) as found:
        held = found.waiting()
    with results():
        if json:
            write_json([_plain(one) for one in held])
        elif held:
            render.console().print(_table(held))
        else:
            write(_none_held(chosen).encode())


@app.command()
def resume(
    partitions: Annotated[
        list[str] | None,
        typer.Argument(help="Which ones, as list names them: TOPIC:PARTITION. All when left out.", metavar="PARTITION"),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until", min=1, help="Do not hold it again before this offset, however bad its records are.",
            metavar="OFFSET",
        ),
    ] = None,
    skip_to: Annotated[
        int | None,
        typer.Option(
            "--skip-to", min=1, help="Go on at this offset: what is before it is neither judged nor buried.",
            metavar="OFFSET",
        ),
    ] = None,
    source: SourceOption = None,
    group: GroupOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:  # fmt: skip
    """Let partitions that are held go on.

    The consumers of the group have to be stopped: brokers take a group's offsets from nobody else while it has members.
    Start them again afterwards. Counting begins anew, so a partition that is still bad is held again after at most
    kafka.poison_records_min records. With --until each record up to that offset gets its answer, be it a dead letter.
    """
    if until is not None and skip_to is not None:
        raise ConfigError("--until and --skip-to are two ways past a stretch: choose one")
    chosen = configured(config, settings, source__url=source, kafka__group=group)
    with holding(chosen) as found:
        done = found.resume(partitions or [], Way(until, skip_to))
    with results():
        said = "".join(f"{_sentence(one, until, skip_to)}\n" for one in done) or _none_held(chosen)
        write(said.encode())


def _none_held(chosen: Config) -> str:
    return (
        f"No partition of {render.plain(chosen.source.url)} is held in the group {render.plain(chosen.kafka.group)}.\n"
    )


def _sentence(one: HeldPartition, until: int | None, skip_to: int | None) -> str:
    name = render.plain(one.name)
    if skip_to is not None:
        return (
            f"{name} goes on at offset {skip_to}. Offsets {one.offset} to {skip_to - 1} are skipped: what is there was"
            " neither judged nor buried."
        )
    goes_on = f"{name} goes on at offset {one.offset}, where up to {one.waiting:,} records wait."
    if until is None:
        return goes_on
    return f"{goes_on} Up to offset {until} every one that cannot be judged becomes a dead letter."


def _plain(one: HeldPartition) -> dict[str, object]:
    topic, number = one.partition
    return {
        "topic": topic,
        "partition": number,
        "offset": one.offset,
        "waiting": one.waiting,
        "bad": one.held.bad,
        "records": one.held.records,
        "reason": one.held.reason,
        "batch_offset": None if one.held.batch_offset is msgspec.UNSET else one.held.batch_offset,
    }


def _table(held: list[HeldPartition]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("partition", no_wrap=True)
    table.add_column("offset", justify="right", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in held:
        table.add_row(render.plain(one.name), str(one.offset), f"{one.waiting:,}", render.plain(one.held.sentence()))
    return table
