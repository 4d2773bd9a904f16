"""Runs ``dupwatch stress``. Only the command imports this module, so that --help does not load what it needs."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console

from consumer.cli import render
from consumer.cli.options import command_config
from consumer.cli.plots import check_plot
from consumer.cli.results import answer
from consumer.cli.runs.stress_options import StressRequest
from consumer.cli.runs.stress_plot import plot_waits
from consumer.cli.runs.stress_view import json_fields, missing_sentence, text
from consumer.config.config import Config
from consumer.feeds.kinds import source_of
from consumer.kafka.client_settings import parse_kafka, parse_prefix
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.model.errors import ConfigError, DupwatchError
from consumer.stress import LANGUAGES, SEEDS
from consumer.stress.kafka_load import KafkaLoad
from consumer.stress.load import Load, encoded, prepared_feed
from consumer.stress.made_texts import FeedText, made_feed
from consumer.stress.schedule import due_times, parse_burst
from consumer.stress.service_load import CHECK, STORE, ServiceAddress, ServiceLoad
from consumer.stress.trial import Trial
from consumer.text.counts import counted
from consumer.text.redaction import remember
from consumer.wiring import components


class _Feed(NamedTuple):
    """The kind of texts to generate."""

    chars: int
    languages: Sequence[str]
    copies: float
    seed: int

    def texts(self, prefix: str, other_seeds: int = 0) -> Iterator[FeedText]:
        """Yield texts without end, whose ids begin with ``prefix``; ``other_seeds`` makes them others."""
        return made_feed(
            self.chars, languages=self.languages, copies_share=self.copies, seed=self.seed + other_seeds, prefix=prefix
        )


def run_stress(request: StressRequest, config: Path | None, settings: Sequence[str] | None) -> None:
    """Run the command. Raises ``DupwatchError`` if an article gets no verdict, and ``typer.Exit`` after a signal."""
    chosen = command_config(config, settings, source__url=request.source, sink__url=request.sink)
    _check(chosen, request)
    burst = None if request.burst is None else parse_burst(request.burst)
    trial = Trial(f"stress-{secrets.token_hex(4)}", due_times(request.rate, request.seconds, burst))
    seed = secrets.randbelow(SEEDS) if request.seed is None else request.seed
    feed = _Feed(request.chars, request.languages or LANGUAGES[:1], request.copies, seed)
    console, stopping = render.console(stderr=True), StopSignal(interrupts=False)
    with stopping.handle_signals(), closing(_load(chosen, request)) as load:
        _send(console, stopping, load, trial, feed, chosen)
    report = trial.report(request.warm_up)
    answer(json=request.json, lines=[json_fields(trial.prefix, seed, report)], text=text(trial.prefix, seed, report))
    if request.plot_file is not None and report.waits.articles:
        plot_waits(request.plot_file, trial, chosen.files.bits)
        console.print(f"Plot: {render.plain(str(request.plot_file))}")
    if stopping.requested_by is not None:
        raise typer.Exit(SIGNAL_EXIT_BASE + stopping.requested_by)
    if report.missing:
        raise DupwatchError(missing_sentence(report))


def _send(console: Console, stopping: StopSignal, load: Load, trial: Trial, feed: _Feed, config: Config) -> None:
    """Send a first article, generate all others, and then send them."""
    articles, fields, stop = len(trial.due_s), config.source.fields, stopping.requested
    first = next(feed.texts(f"{trial.prefix}-first", SEEDS))
    console.print("Waiting for the verdict on a first article …")
    load.try_out(first.id, encoded(first, fields))
    texts = feed.texts(trial.prefix)
    with ExitStack() as stack:
        with render.progress(console) as progress:
            task = progress.add_task("generating articles", total=articles)
            lines = stack.enter_context(
                prepared_feed(texts, trial, fields, lambda done: progress.update(task, completed=done), stop)
            )
        # No bar from here on: drawing one would delay the measured threads.
        console.print(f"Sending {counted(articles, 'article')} in {trial.due_s[-1]:,.0f} s …")
        load.run(iter(lines), trial, stop)


def _check(config: Config, request: StressRequest) -> None:
    """Raise ``ConfigError`` for options that do not fit together."""
    unknown = [language for language in request.languages if language not in LANGUAGES]
    if unknown:
        raise ConfigError(f"--language {unknown[0]}: choose from {', '.join(LANGUAGES)}")
    if request.warm_up >= request.seconds:
        raise ConfigError(f"--warm-up {request.warm_up:g} must be less than --seconds {request.seconds:g}")
    if request.plot_file is not None:
        check_plot(request.plot_file)
    if request.service is not None:
        if request.source is not None or request.sink is not None:
            raise ConfigError("--service cannot be combined with --source or --sink; name one place to send to")
        return
    if request.check or request.token_file is not None or request.authorities is not None:
        raise ConfigError("--check, --token-file and --ca are for a service; name it with --service URL")
    if not source_of(config.source.url).is_shared or config.sink.url == "-":
        raise ConfigError("nowhere to send articles to; name --source TOPIC and --sink PREFIX, or --service URL")
    if config.kafka.value_format != "json":
        raise ConfigError(f"articles are sent as JSON, but kafka.value_format is {config.kafka.value_format}")


def _load(config: Config, request: StressRequest) -> Load:
    """Return the service or the topics, after a look at the topics."""
    if request.service is not None:
        address = ServiceAddress(request.service, _token(request.token_file), request.authorities)
        return ServiceLoad(address, CHECK if request.check else STORE, request.connections, request.wait_s)
    source = parse_kafka(config.source.url)
    if len(source.names) != 1:
        raise ConfigError(f"{config.source.url} names {len(source.names)} topics; name one with --source")
    return KafkaLoad(source, parse_prefix(config.sink.url), components.kafka_options(config), request.wait_s)


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not ASCII"
        raise ConfigError(f"cannot read the token from {path}: {reason}") from error
    if not token:
        raise ConfigError(f"the token file {path} is empty; write the token into it")
    remember(token)
    return token
