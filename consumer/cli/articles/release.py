"""``dupwatch release``: undo a flag."""

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import typer
from rich.text import Text

from consumer.cli import render
from consumer.cli.articles.show import print_article, print_link
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, command_config
from consumer.cli.prompts import ask_confirmation, check_terminal
from consumer.cli.results import results, write
from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent
from consumer.store_tools.inspection import DuplicateLink, History, chain, id_hash_of
from consumer.store_tools.released_record import ReturnObstacle
from consumer.store_tools.releases import (
    Attribution,
    FlaggedVersion,
    preview_release,
    read_flagged,
    references_in_force,
    releasable_version,
)
from consumer.store_tools.releases import release as release_version
from consumer.wiring.feeds import is_followed
from consumer.wiring.kafka_parts import sink_topics
from consumer.wiring.release_run import send_release
from consumer.wiring.source_records import SourceRecords
from consumer.wiring.stores import completed_config, opened_store
from storage.clock import now_ms
from storage.records import StoredVersion


def release(
    article_id: Annotated[str, typer.Argument(metavar="ID", help="The article's id.")],
    store: LastingStoreOption = None,
    version: Annotated[
        str | None,
        typer.Option(help="Version to release, as in events; default: the latest.", metavar="HEX"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Who releases the article; recorded in the event.", metavar="NAME")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; recorded in the event.", metavar="TEXT")] = None,
    sink: Annotated[
        str | None,
        typer.Option(help="Send the event to the topics of this sink: kafka://HOST:PORT/PREFIX.", metavar="PREFIX"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Undo a flag: the article becomes unique, and this pair will not be flagged again.

    Later articles may be flagged as duplicates of this article. If the sink has a clean feed (kafka.unique), the
    article is sent there again, provided that its record is still in its topic and the version is still the latest.
    Releasing an article again changes nothing and shows the current state; with a Kafka sink, the event is sent again.
    """
    if json and not (yes or dry_run):
        raise ConfigError("--json cannot prompt; add --yes or --dry-run")
    if not (yes or dry_run):
        check_terminal("--yes or --dry-run")
    chosen = command_config(config, overrides, store__url=store, sink__url=sink)
    attribution = Attribution(by, reason)
    id_hash_of(article_id)
    with opened_store(chosen, readonly=True) as opened:
        flagged = releasable_version(opened, article_id, version)
        links = chain(opened, flagged.stored)
        histories = [opened.history(link.stored.record.id_hash) for link in links]
    with closing(SourceRecords(completed_config(chosen))) as records:
        record_or_obstacle = records.record_of(flagged)
    if not json:
        with results():
            _show_effect(links, histories)
    _show_return(chosen, record_or_obstacle, json=json)
    if dry_run:
        event = preview_release(flagged, attribution, now_ms)
    elif yes or ask_confirmation("Release it?"):
        event = _release(chosen, flagged, attribution, record_or_obstacle)
        if sink is not None and not is_followed(chosen):
            _warn(
                f"No event is sent to {render.plain(sink)}: releases go only to topics; use --sink "
                "kafka://HOST:PORT/PREFIX."
            )
    else:
        return
    _show_outcome(flagged.stored, histories[0], event, json=json, dry_run=dry_run)


def _release(
    config: Config,
    flagged: FlaggedVersion,
    attribution: Attribution,
    record_or_obstacle: RawRecord | ReturnObstacle | None,
) -> VerdictEvent:
    """Release a version, send the event if the sink writes to topics, and return the event."""
    reference = flagged.reference
    with opened_store(config) as opened:
        # A newer version may have arrived while the command waited for confirmation.
        current = read_flagged(opened, reference)
        event = release_version(opened, current, attribution, now_ms)
    if not is_followed(config):
        return event
    record = record_or_obstacle if isinstance(record_or_obstacle, RawRecord) else None
    is_latest = current.stored.ends_at is None
    send_release(config, event, record if is_latest else None)
    if record is not None:
        with opened_store(config, readonly=True) as opened:
            is_still_latest = is_latest and bool(references_in_force(opened, [reference]))
        if not is_still_latest:
            _warn(
                f"A newer version of {render.plain(flagged.stored.record.id)} arrived during the release. Compare its "
                f"last message in {sink_topics(config).unique_topic} with its source, and send it again if they differ."
            )
    return event


def _show_effect(links: Sequence[DuplicateLink], histories: Sequence[History]) -> None:
    """Show the article and the effect of a release."""
    print_article(links, histories)
    verdict = links[0].verdict
    if verdict is None or verdict.duplicate_of is None:
        return
    name, other = render.plain(verdict.id), render.plain(verdict.duplicate_of)
    render.console().print(
        f"\nA release makes {name} unique. {name} and {other} will not be flagged as duplicates of each other again. "
        f"Later articles may be flagged as duplicates of {name}."
    )


def _show_return(config: Config, record_or_obstacle: RawRecord | ReturnObstacle | None, *, json: bool) -> None:
    """Show whether the article returns to the clean feed. With ``json``, only print why it does not."""
    if record_or_obstacle is None:
        return
    topic = sink_topics(config).unique_topic
    if isinstance(record_or_obstacle, ReturnObstacle):
        _warn(f"The article cannot be sent to {topic}: {render.plain(record_or_obstacle.reason)}.")
    elif record_or_obstacle.partition is not None and not json:
        origin = "{} [{}] offset {}".format(*record_or_obstacle.partition, record_or_obstacle.start)
        with results():
            render.console().print(f"A release sends the article to {topic} again, from {origin}.")


def _warn(sentence: str) -> None:
    render.console(stderr=True).print(sentence)


def _show_outcome(flagged: StoredVersion, history: History, event: VerdictEvent, *, json: bool, dry_run: bool) -> None:
    with results():
        if json:
            write(event.encoded + b"\n")
            return
        console = render.console()
        if flagged.released_from is not None:
            console.print("\nAlready released; nothing was changed.")
        elif dry_run:
            console.print("\nDry run; nothing was changed.")
        else:
            console.print(Text("\nafter the release\n", "bold"))
            print_link(DuplicateLink(flagged, event.verdict), history)
