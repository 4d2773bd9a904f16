"""``dupwatch size``: the machines and storage that a feed needs, and the source of each figure."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from consumer.cli.operations.size_request import SizeOptions, SizeRequest, check_measuring, size_request
from consumer.cli.operations.size_view import json_fields, text
from consumer.cli.options import ConfigOption, JsonOption, SetOption, command_config
from consumer.cli.results import answer, standard_error
from consumer.model.errors import ConfigError
from consumer.store_tools import sizing_report
from consumer.store_tools.made_articles import ArticleMaker
from consumer.store_tools.sizing import CHARS, PEAK, Sizing
from consumer.store_tools.sizing_report import ASSUMED, DOCUMENTED, GIVEN, HERE, SAMPLED, Sources
from consumer.store_tools.speeds import documented_speed
from consumer.store_tools.store_plan import StorePlan, store_plan
from consumer.store_tools.text_sizes import assumed_sizes
from consumer.text.counts import counted
from consumer.text.sample_feed import sample_feed, sample_texts
from consumer.text.timestamps import DURATION_HELP, rfc3339
from consumer.wiring.calibration import Calibration, calibrate, calibrate_on_sample
from consumer.wiring.components import scheme_of
from storage.clock import now_ms

_SAMPLE_S: Final = 10.0
"""How long articles of a sample are judged if only their sizes are needed."""
_SAMPLE_LANGUAGES: Final = {"zh": ("zh",), "en": ("en",), "mixed": ("zh", "en")}
_DATE_CHARS: Final = 10


def size(
    articles_a_day: Annotated[
        int, typer.Option("--articles-a-day", help="Articles that arrive in a day.", metavar="N")
    ],
    chars: Annotated[
        int | None, typer.Option(help=f"Characters of an article; default: {CHARS:,}.", metavar="N")
    ] = None,
    lang: Annotated[str, typer.Option(help="Language of the articles: zh, en, or mixed for half of each.")] = "zh",
    window: Annotated[
        str | None, typer.Option(help=f"How far back copies are found: {DURATION_HELP}.", metavar="SPAN")
    ] = None,
    copies: Annotated[
        float | None, typer.Option(help="Share of articles that repeat others: 0.2 (default) is one in five.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Kind of store, lmdb or hbase, or the URL of one.", metavar="STORE")
    ] = None,
    peak: Annotated[
        float | None, typer.Option(help=f"The busiest minute as a multiple of the average; default: {PEAK:g}.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(help="A file of articles, to measure their sizes.", metavar="FILE")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure this machine first, and plan with its throughput.")
    ] = False,
    calibrate_seconds: Annotated[
        float, typer.Option(help="How long to measure this machine.", metavar="SECONDS")
    ] = 60.0,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compute the machines, memory, disks, topics and the plan that a feed needs.

    Each line says where its figure comes from: given, assumed, computed or measured. --sample replaces assumptions
    about articles, and --calibrate replaces speeds that were measured on another machine.

    Both options judge articles into a store in a temporary directory, which takes up to a few GB. Set TMPDIR to a
    directory on the disk of the future store. Nothing else is written.
    """
    numbers = SizeOptions(articles_a_day, chars, lang, window, copies, peak)
    request = size_request(command_config(config, overrides), store, numbers, _options(config, overrides))
    check_measuring(sample, calibrate_seconds)
    found, sources = _sizing(request, sample, calibrate_seconds if calibrate else None)
    topics = found.topics(verdicts=request.config.sink.emit == "all", unique=request.config.kafka.unique)
    groups = list(sizing_report.groups(found, sources, topics))
    answer(json=json, lines=[json_fields(request, found, sources, groups)], text=text(request, found, sources, groups))


def _options(config: Path | None, overrides: Sequence[str] | None) -> tuple[str, ...]:
    """Return the options that the printed commands need: the file, and overrides that decide how a store is made."""
    file = () if config is None else ("--config", str(config))
    decisive = [setting for setting in overrides or () if setting.startswith(("judge.", "fingerprint.", "store."))]
    return (*file, *(word for setting in decisive for word in ("--set", setting)))


def _sizing(request: SizeRequest, sample: str | None, seconds: float | None) -> tuple[Sizing, Sources]:
    """Measure as requested, and return the sizing of the feed and the sources of its figures."""
    measured = None if sample is None and seconds is None else _calibration(request, sample, seconds)
    notes: list[str] = []
    today = rfc3339(now_ms())[:_DATE_CHARS]
    texts, text_source = assumed_sizes(request.chars, request.language), f"{ASSUMED} for {request.language}"
    if measured is not None and sample is not None:
        texts, text_source = measured.sizes, SAMPLED
        notes.append(f"The sample: {counted(texts.sample, 'article')} of {sample}, {today}.")
    plan = _plan(request)
    remote = request.kind.remote
    speed, speed_source = documented_speed(texts.chars, texts.language, plan.plan.name, remote=remote), DOCUMENTED
    if measured is not None and seconds is not None:
        # With a remote store, the speed of this machine matters only for fingerprints.
        speed = speed._replace(fingerprint_us=measured.speed.fingerprint_us) if remote else measured.speed
        speed_source = HERE
        judged = f"{counted(measured.articles, 'article')} in {measured.seconds:,.1f} s"
        notes.append(f"Measured here: {judged}, {today}.")
    given = request.given
    sources = Sources(
        window="judge.window_s" if given.window is None else GIVEN,
        copies=ASSUMED if given.copies is None else GIVEN,
        chars=ASSUMED if given.chars is None else GIVEN,
        texts=text_source,
        speed=speed_source,
        peak=ASSUMED if given.peak is None else GIVEN,
        notes=tuple(notes),
    )
    judge = request.config.judge
    return Sizing(request.feed, texts, plan, speed, remote, request.config.store.keep_bodies, judge.parts), sources


def _plan(request: SizeRequest) -> StorePlan:
    try:
        return store_plan(request.config, scheme_of(request.config), request.feed.in_window, remote=request.kind.remote)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _calibration(request: SizeRequest, sample: str | None, seconds: float | None) -> Calibration:
    """Judge articles of the sample, or generated ones, with the plan that the feed would have."""
    judge = request.config.judge.model_copy(update={"plan": _plan(request).plan.name})
    config = request.config.model_copy(update={"judge": judge})
    limit_s = _SAMPLE_S if seconds is None else seconds
    standard_error().write(f"Judging articles in a temporary store, for up to {limit_s:g} seconds …\n".encode())
    with tempfile.TemporaryDirectory(prefix="dupwatch-size-") as folder:
        if sample is not None:
            return calibrate_on_sample(config, sample, Path(folder), limit_s)
        texts = sample_texts(sample_feed(), _SAMPLE_LANGUAGES[request.language])
        maker = ArticleMaker(texts, request.chars, request.feed.copies)
        return calibrate(config, maker, Path(folder), limit_s)
