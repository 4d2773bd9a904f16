"""``dupwatch topics``: create the topics that a run uses, and check existing ones."""

from typing import Annotated

import typer

from consumer.cli.options import ConfigOption, SetOption, command_config
from consumer.cli.results import results, write
from consumer.feeds.kinds import source_of
from consumer.kafka import topics
from consumer.kafka.client_settings import TopicsAddress, admin_settings, parse_kafka
from consumer.kafka.planned_topics import topic_plan
from consumer.kafka.topics import PlannedTopic, Shape, SinkTopics, TopicReport
from consumer.model.errors import ConfigError, SinkError
from consumer.wiring.components import kafka_options
from storage.clock import MS_PER_S

app = typer.Typer(no_args_is_help=True, help="Create the topics that a run needs.")


@app.callback()
def topics_group() -> None:
    """Create the topics that a run needs."""


@app.command()
def init(
    sink: Annotated[
        str | None,
        typer.Option("--sink", help="The prefix of the topics: kafka://HOST:PORT/PREFIX.", metavar="SINK"),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="Also create the topics of articles: kafka://HOST:PORT/TOPIC[,TOPIC].",
            metavar="SOURCE",
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help=f"Partitions of each topic; default for a new topic: {topics.PARTITIONS}."),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Replicas of each topic; default for a new topic: the number of brokers, at most "
            f"{topics.REPLICATION_MAX}.",
        ),
    ] = None,
    print_: Annotated[
        bool, typer.Option("--print", help="Print the topics that a run needs, without connecting to a broker.")
    ] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Create missing topics, and report what is wrong with existing ones without changing them.

    Without --sink, the command creates the topics of the configured sink and source. It exits with 6 if a run would not
    work with the settings of an existing topic.
    """
    chosen = command_config(config, overrides)
    if sink is None:
        sink = chosen.sink.url
        source = source or (chosen.source.url if source_of(chosen.source.url).is_shared else None)
    place, feed = _prefix(sink), None if source is None else parse_kafka(source)
    if feed is not None and feed.brokers != place.brokers:
        raise ConfigError("--source and --sink name different brokers; run the command once for each")
    planned = topic_plan(SinkTopics(place.names[0]), () if feed is None else feed.names, chosen.lifetime_s * MS_PER_S)
    shape = Shape(partitions, replication)
    if print_:
        with results():
            write("".join(_plan_lines(topic, shape) for topic in planned).encode())
        return
    reports = topics.init(admin_settings(place.brokers, kafka_options(chosen)), planned, shape)
    with results():
        write("".join(_report_lines(report) for report in reports).encode())
    if any(report.differences for report in reports):
        raise typer.Exit(SinkError.exit_code)


def _prefix(sink: str) -> TopicsAddress:
    place = parse_kafka(sink)
    if len(place.names) != 1:
        raise ConfigError(f"{sink!r} names {len(place.names)} prefixes; a sink takes exactly one")
    return place


def _plan_lines(topic: PlannedTopic, shape: Shape) -> str:
    values = {"partitions": str(shape.partitions or topics.PARTITIONS)}
    values |= {} if shape.replication is None else {"replication": str(shape.replication)}
    values |= topic.settings
    words = " ".join(f"{name}={value}" for name, value in values.items())
    return f"{topic.name}: {words}\n    may be compacted: {topic.compaction}\n"


def _report_lines(report: TopicReport) -> str:
    state = "created" if report.created else "differs" if report.differences else "ok"
    lines = [f"{report.topic.name}: {state}", f"    may be compacted: {report.topic.compaction}"]
    return "".join(f"{line}\n" for line in lines + [f"    {difference}" for difference in report.differences])
