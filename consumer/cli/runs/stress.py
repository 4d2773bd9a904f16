"""``dupwatch stress``: send a generated feed at a given rate, and measure the time from arrival to verdict."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, command_config
from consumer.cli.plots import check_plot
from consumer.cli.results import answer
from consumer.cli.runs.stress_options import (
    SEEDS,
    AuthoritiesOption,
    BurstOption,
    CharsOption,
    CheckOption,
    ConnectionsOption,
    CopiesOption,
    LanguageOption,
    PlotOption,
    RateOption,
    SecondsOption,
    SeedOption,
    ServiceOption,
    SinkOption,
    SourceOption,
    TokenFileOption,
    WaitOption,
    WarmUpOption,
)
from consumer.cli.runs.stress_plot import plot_waits
from consumer.cli.runs.stress_view import json_fields, missing_sentence, text
from consumer.config.config import Config
from consumer.feeds.kinds import source_of
from consumer.kafka.client_settings import parse_kafka, parse_prefix
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.model.errors import ConfigError, DupwatchError
from consumer.stress.kafka_load import KafkaLoad
from consumer.stress.load import Load, encoded, prepared_feed
from consumer.stress.made_texts import FeedText, made_feed
from consumer.stress.schedule import due_times, parse_burst
from consumer.stress.service_load import CHECK, STORE, ServiceAddress, ServiceLoad
from consumer.stress.trial import Trial
from consumer.stress.vocabularies import LANGUAGES
from consumer.text.counts import counted
from consumer.text.redaction import remember
from consumer.wiring import components


class _Service(NamedTuple):
    """The options about the service; ``url`` is None if articles go to a topic."""

    url: str | None
    check: bool
    token_file: Path | None
    authorities: Path | None
    connections: int


def stress(
    source: SourceOption = None,
    sink: SinkOption = None,
    service: ServiceOption = None,
    check: CheckOption = False,
    token_file: TokenFileOption = None,
    ca: AuthoritiesOption = None,
    connections: ConnectionsOption = 64,
    rate: RateOption = 50.0,
    seconds: SecondsOption = 60.0,
    burst: BurstOption = None,
    warm_up: WarmUpOption = 0.0,
    copies: CopiesOption = 0.2,
    chars: CharsOption = 2_000,
    language: LanguageOption = None,
    seed: SeedOption = None,
    wait: WaitOption = 30.0,
    plot_file: PlotOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Send generated articles at a steady rate, and report how long each one waits for its verdict.

    Use a deployment for trials, because the articles are stored like any others. Its consumers must write all verdicts
    (run --emit all). Articles are sent when they are due, even if earlier ones still wait, and the time of each counts
    from then. The exit code is 1 if an article gets no verdict.
    """
    chosen = command_config(config, overrides, source__url=source, sink__url=sink)
    languages = _checked_languages(language)
    due_s = due_times(rate, seconds, None if burst is None else parse_burst(burst))
    if warm_up >= seconds:
        raise ConfigError(f"--warm-up {warm_up:g} leaves nothing of --seconds {seconds:g}; choose a shorter warm-up")
    if plot_file is not None:
        check_plot(plot_file)
    options = _Service(service, check, token_file, ca, connections)
    _check_target(chosen, options, names_topics=source is not None or sink is not None)
    trial = Trial(f"stress-{secrets.token_hex(4)}", due_s)
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    texts = made_feed(chars, languages=languages, copies_share=copies, seed=seed, prefix=trial.prefix)
    first = next(made_feed(chars, languages=languages, seed=SEEDS + seed, prefix=f"{trial.prefix}-first"))
    console, stopping = render.console(stderr=True), StopSignal(interrupts=False)
    with stopping.handle_signals(), closing(_load(chosen, options, wait)) as load:
        console.print("Waiting for the verdict on a first article …")
        load.try_out(first.id, encoded(first, chosen.source.fields))
        _run(console, stopping, load, trial, texts, chosen)
    report = trial.report(warm_up)
    answer(json=json, lines=[json_fields(trial.prefix, seed, report)], text=text(trial.prefix, seed, report))
    if plot_file is not None and report.waits.articles:
        plot_waits(plot_file, trial, chosen.files.bits)
        console.print(f"Plot: {render.plain(str(plot_file))}")
    if stopping.requested_by is not None:
        raise typer.Exit(SIGNAL_EXIT_BASE + stopping.requested_by)
    if report.missing:
        raise DupwatchError(missing_sentence(report))


def _run(
    console: Console, stopping: StopSignal, load: Load, trial: Trial, texts: Iterator[FeedText], config: Config
) -> None:
    """Generate all articles, and then send them."""
    articles, fields, stop = len(trial.due_s), config.source.fields, stopping.requested
    with ExitStack() as stack:
        with render.progress(console) as progress:
            task = progress.add_task("generating articles", total=articles)
            lines = stack.enter_context(
                prepared_feed(texts, trial, fields, lambda done: progress.update(task, completed=done), stop)
            )
        # No bar from here on: drawing one would delay the measured threads.
        console.print(f"Sending {counted(articles, 'article')} in {trial.due_s[-1]:,.0f} s …")
        load.run(iter(lines), trial, stop)


def _checked_languages(languages: Sequence[str] | None) -> tuple[str, ...]:
    unknown = [language for language in languages or () if language not in LANGUAGES]
    if unknown:
        raise ConfigError(f"--language {unknown[0]}: choose from {', '.join(LANGUAGES)}")
    return tuple(languages or LANGUAGES[:1])


def _check_target(config: Config, service: _Service, *, names_topics: bool) -> None:
    """Raise ``ConfigError`` unless the options name topics or a service, and not both."""
    if service.url is not None:
        if names_topics:
            raise ConfigError("--service cannot be combined with --source or --sink; name one place to send to")
        return
    if service.check or service.token_file is not None or service.authorities is not None:
        raise ConfigError("--check, --token-file and --ca are for a service; name it with --service URL")
    if not source_of(config.source.url).is_shared or config.sink.url == "-":
        raise ConfigError("nowhere to send articles to; name --source TOPIC and --sink PREFIX, or --service URL")
    if config.kafka.value_format != "json":
        raise ConfigError(f"articles are sent as JSON, but kafka.value_format is {config.kafka.value_format}")


def _load(config: Config, service: _Service, wait_s: float) -> Load:
    """Return the service or the topics, after a look at the topics."""
    if service.url is not None:
        address = ServiceAddress(service.url, _token(service.token_file), service.authorities)
        return ServiceLoad(address, CHECK if service.check else STORE, service.connections, wait_s)
    source = parse_kafka(config.source.url)
    if len(source.names) != 1:
        raise ConfigError(f"{config.source.url} names {len(source.names)} topics; name one with --source")
    return KafkaLoad(source, parse_prefix(config.sink.url), components.kafka_options(config), wait_s)


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
