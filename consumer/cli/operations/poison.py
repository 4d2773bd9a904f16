"""``dupwatch poison``: partitions that are held because their records cannot be read or judged."""

from typing import Annotated

import msgspec
import typer
from rich.table import Column, Table

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, command_config
from consumer.cli.results import results, write, write_json
from consumer.config.config import Config
from consumer.kafka.groups import HeldPartition, ResumePoint
from consumer.model.errors import ConfigError
from consumer.text.counts import counted
from consumer.wiring.kafka_parts import held_partitions

app = typer.Typer(no_args_is_help=True, help="List or resume partitions that are held because of bad records.")

SourceOption = Annotated[
    str | None,
    typer.Option("--source", help="Topics of articles: kafka://HOST:PORT/TOPIC[,TOPIC].", metavar="TOPIC"),
]
GroupOption = Annotated[str | None, typer.Option("--group", help="Group of the consumers.", metavar="GROUP")]


@app.command("list")
def list_(
    source: SourceOption = None,
    group: GroupOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """List held partitions: the offset at which each is held, how many records wait, and the reason.

    The command changes nothing, and consumers may be running.
    """
    chosen = command_config(config, overrides, source__url=source, kafka__group=group)
    with held_partitions(chosen) as found:
        partitions = found.partitions()
    with results():
        if json:
            write_json([_json_fields(partition) for partition in partitions])
        elif partitions:
            render.console().print(_table(partitions))
        else:
            write(_none_held(chosen).encode())


@app.command()
def resume(
    partitions: Annotated[
        list[str] | None,
        typer.Argument(help="Partitions to resume, TOPIC:PARTITION as in list; default: all.", metavar="PARTITION"),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until", min=1, help="Do not hold the partition before this offset, however many bad records follow.",
            metavar="OFFSET",
        ),
    ] = None,
    skip_to: Annotated[
        int | None,
        typer.Option(
            "--skip-to", min=1, help="Resume at this offset; earlier records get neither a verdict nor a dead letter.",
            metavar="OFFSET",
        ),
    ] = None,
    source: SourceOption = None,
    group: GroupOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:  # fmt: skip
    """Resume held partitions.

    Stop the consumers of the group first, and start them again afterwards: brokers accept offsets from another client
    only while the group has no members. The count of bad records starts again from zero, so a partition that is still
    bad is held again after at most kafka.poison_records_min records. With --until, each record before that offset gets
    a verdict or a dead letter.
    """
    if until is not None and skip_to is not None:
        raise ConfigError("--until and --skip-to cannot be used together; use one of them")
    chosen = command_config(config, overrides, source__url=source, kafka__group=group)
    with held_partitions(chosen) as found:
        resumed = found.resume(partitions or [], ResumePoint(until, skip_to))
    with results():
        report = "".join(f"{_sentence(partition, until, skip_to)}\n" for partition in resumed) or _none_held(chosen)
        write(report.encode())


def _none_held(chosen: Config) -> str:
    return (
        f"No partition of {render.plain(chosen.source.url)} is held in the group {render.plain(chosen.kafka.group)}.\n"
    )


def _sentence(partition: HeldPartition, until: int | None, skip_to: int | None) -> str:
    name = render.plain(partition.name)
    if skip_to is not None:
        return (
            f"{name} resumes at offset {skip_to}. Offsets {partition.offset} to {skip_to - 1} are skipped: their"
            " records get neither a verdict nor a dead letter."
        )
    resumes = f"{name} resumes at offset {partition.offset}, with up to {counted(partition.waiting, 'record')} waiting."
    if until is None:
        return resumes
    return f"{resumes} Before offset {until}, each bad record becomes a dead letter."


def _json_fields(partition: HeldPartition) -> dict[str, object]:
    topic, number = partition.partition
    return {
        "topic": topic,
        "partition": number,
        "offset": partition.offset,
        "waiting": partition.waiting,
        "bad": partition.held.bad,
        "records": partition.held.records,
        "reason": partition.held.reason,
        "batch_offset": None if partition.held.batch_offset is msgspec.UNSET else partition.held.batch_offset,
    }


def _table(partitions: list[HeldPartition]) -> Table:
    columns = [
        Column("partition", no_wrap=True),
        *render.number_columns("offset", "waiting"),
        Column("why", overflow="fold"),
    ]
    rows = (
        (
            render.plain(partition.name),
            str(partition.offset),
            f"{partition.waiting:,}",
            render.plain(partition.held.sentence()),
        )
        for partition in partitions
    )
    return render.table(columns, rows, header_style="dim")
