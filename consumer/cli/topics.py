"""``dupwatch topics``: the topics that a run writes to."""

from typing import Annotated

import typer

from consumer.cli.options import ConfigOption, SetOption, configured
from consumer.cli.results import results, write
from consumer.kafka import topics
from consumer.kafka.client_settings import KafkaPlace, admin_settings, is_kafka, parse_kafka
from consumer.kafka.topics import PlannedTopic, Report, Shape, SinkTopics
from consumer.model.errors import ConfigError, SinkError
from consumer.wiring.parts import kafka_options
from storage.clock import MS_PER_S

app = typer.Typer(no_args_is_help=True, help="Make the topics that a run writes to.")


@app.callback()
def topics_group() -> None:
    """Make the topics that a run writes to."""


@app.command()
def init(
    sink: Annotated[
        str | None,
        typer.Option("--sink", help="The prefix of the topics: kafka://HOST:PORT[,HOST:PORT]/PREFIX.", metavar="SINK"),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="Make the topics of articles as well: kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC].",
            metavar="SOURCE",
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help=f"How many partitions a topic has: {topics.PARTITIONS} for a new one when left out."),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many copies a topic has: as many as there are brokers, up to "
            f"{topics.REPLICATION_MAX}, for a new one when left out.",
        ),
    ] = None,
    print_: Annotated[
        bool, typer.Option("--print", help="Write what would be made, and ask no broker for anything.")
    ] = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Make the topics that are missing, and say what is wrong with those that are there, which are not touched.

    Without --sink the topics of the configured sink are made, and of the configured source. Ends with exit code 6
    when one that is there differs from what it has to be.
    """
    chosen = configured(config, settings)
    if sink is None:
        sink = chosen.sink.url
        source = source or (chosen.source.url if is_kafka(chosen.source.url) else None)
    place, feed = _prefix(sink), None if source is None else parse_kafka(source)
    if feed is not None and feed.brokers != place.brokers:
        raise ConfigError("--source and --sink have to name the same brokers; make the source's topics where they are")
    wanted = topics.planned(
        SinkTopics(place.names[0]), () if feed is None else feed.names, chosen.lifetime_s * MS_PER_S
    )
    shape = Shape(partitions, replication)
    if print_:
        with results():
            write("".join(_plan_lines(topic, shape) for topic in wanted).encode())
        return
    reports = topics.init(admin_settings(place.brokers, kafka_options(chosen)), wanted, shape)
    with results():
        write("".join(_report_lines(report) for report in reports).encode())
    if any(report.differences for report in reports):
        raise typer.Exit(SinkError.exit_code)


def _prefix(sink: str) -> KafkaPlace:
    place = parse_kafka(sink)
    if len(place.names) != 1:
        raise ConfigError(f"{sink!r} names {len(place.names)} prefixes; a sink has one")
    return place


def _plan_lines(topic: PlannedTopic, shape: Shape) -> str:
    made = {"partitions": str(shape.partitions or topics.PARTITIONS)}
    made |= {} if shape.replication is None else {"replication": str(shape.replication)}
    words = " ".join(f"{name}={value}" for name, value in (made | dict(topic.settings)).items())
    return f"{topic.name}: {words}\n    may be compacted: {topic.compaction}\n"


def _report_lines(report: Report) -> str:
    said = "made" if report.made else "differs" if report.differences else "is as it has to be"
    lines = [f"{report.topic.name}: {said}", f"    may be compacted: {report.topic.compaction}"]
    return "".join(f"{line}\n" for line in lines + [f"    {one}" for one in report.differences])
