"""``dupwatch evaluate``: find thresholds for a feed with labelled pairs, or measure how well parts are found."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from consumer.cli import render
from consumer.cli.evaluation.evaluate_reviews import evaluate_reviewed
from consumer.cli.evaluation.evaluation_feed import articles_of, check_known, lines_of, skipped_sentences
from consumer.cli.evaluation.evaluation_plot import plot
from consumer.cli.evaluation.evaluation_tables import NOTE, interval, profile_tables, rate, tables
from consumer.cli.options import ConfigOption, JsonOption, SetOption, command_config
from consumer.cli.plots import check_plot
from consumer.cli.results import answer
from consumer.config.config import Config
from consumer.config.profiles import settings_by_profile
from consumer.decode.codecs import compressions_for_help, formats_for_help
from consumer.evaluation.curves import Evaluation, ProfileFigures, evaluation_of, measure
from consumer.evaluation.labelled_pairs import LabelCut, LabelledPair, LabelledPairs, labelled_pairs
from consumer.evaluation.part_pairs import PartEvaluation, named_pairs, part_evaluation
from consumer.evaluation.recommendations import Recommendation, recommend
from consumer.fingerprint import Lexicon, Scheme
from consumer.judge.common_hashes import CommonHashes
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.model.errors import ConfigError
from consumer.model.verdict import Verdict
from consumer.pipeline.loop import parts_with_distinct_ids
from consumer.text.counts import counted
from consumer.wiring.components import engine, judge_settings, lexicon_of, version_builder
from consumer.wiring.stores import unstored_binding
from storage.memory import MemoryStore
from storage.records import StoredVersion


@dataclass(slots=True)
class _NamedArticles:
    """The articles that the pairs name, without texts, and counts of skipped records. Both grow while the feed is read.

    ``by_scheme`` has the articles by id, fingerprinted with each scheme: first the scheme of the settings, then those
    of profiles.
    """

    by_scheme: dict[Scheme, dict[str, StoredVersion]]
    bad_records: Counter[str]
    repeated_ids: int

    @property
    def articles(self) -> dict[str, StoredVersion]:
        """The articles with the scheme of the settings."""
        return next(iter(self.by_scheme.values()))


class _Report(msgspec.Struct, frozen=True):
    """The output of ``--json``."""

    articles: int
    bad_records: Counter[str]
    repeated_ids: int
    left_out_pairs: int
    repeated_pairs: int
    evaluation: Evaluation
    recommended: tuple[Recommendation, ...]
    profiles: tuple[ProfileFigures, ...]
    note: str = NOTE


def evaluate(
    feed: Annotated[
        str | None,
        typer.Argument(metavar="FEED|-", help=f"Articles as {formats_for_help()}; - for standard input."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help=f'Labelled pairs, one ["id", "id", label] per line, {compressions_for_help()}.', metavar="FILE"
        ),
    ] = None,
    reviews: Annotated[
        Path | None,
        typer.Option(
            help=f"Reviewed flags and near misses, one per line, {compressions_for_help()}; needs no feed.",
            metavar="FILE",
        ),
    ] = None,
    precision: Annotated[
        float, typer.Option(help="Find thresholds with at least this precision.", min=0, max=1)
    ] = 0.995,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Also plot the curves into this file.", metavar="FILE.png|FILE.svg")
    ] = None,
    duplicate_from: Annotated[
        float, typer.Option(help="A numeric label means duplicate from this similarity on.", min=0, max=1)
    ] = LabelCut().duplicate_from,
    unique_below: Annotated[
        float,
        typer.Option(
            help="A numeric label means unique below this similarity; labels in between are ignored.", min=0, max=1
        ),
    ] = LabelCut().unique_below,
    parts: Annotated[
        bool,
        typer.Option("--parts", help="Measure judge.parts: the pairs say which articles share a stretch of text."),
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Find thresholds for a feed: precision, recall and F1 of each, on pairs that you have labelled or reviewed."""
    chosen = command_config(config, overrides, judge__parts=True if parts else None)
    _check(LabelCut(duplicate_from, unique_below), plot_file, parts=parts)
    if reviews is not None and (feed is not None or pairs is not None or parts):
        raise ConfigError("--reviews cannot be combined with FEED, --pairs or --parts; leave these out")
    if reviews is not None:
        evaluate_reviewed(chosen, reviews, precision, plot_file, json=json)
        return
    if feed is None or pairs is None:
        raise ConfigError("nothing to evaluate; name a FEED with --pairs FILE, or --reviews FILE")
    lexicon = lexicon_of(chosen)
    settings = judge_settings(chosen, lexicon)
    labelled = labelled_pairs(lines_of(pairs), LabelCut(duplicate_from, unique_below))
    if parts:
        evaluate_parts(chosen, feed, labelled, settings, lexicon, json=json)
        return
    report = _report(feed, labelled, chosen, settings, lexicon, precision)
    evaluation, recommended = report.evaluation, report.recommended
    console = render.console(stderr=True)
    for sentence in skipped_sentences(report.bad_records, report.repeated_ids, labelled.left_out, labelled.repeated):
        console.print(sentence)
    text = chain(tables(evaluation, recommended, settings, precision), profile_tables(report.profiles, precision))
    answer(json=json, lines=[report], text=text)
    if plot_file is not None:
        plot(plot_file, evaluation, recommended, chosen.files.bits)
        console.print(f"Plot: {render.plain(str(plot_file))}")


def _report(
    feed: str, labelled: LabelledPairs, config: Config, settings: JudgeSettings, lexicon: Lexicon, precision: float
) -> _Report:
    named = _read_named(feed, labelled.pairs, config, settings, lexicon)
    check_known(labelled.pairs, named.articles)
    evaluation = evaluation_of(measure(labelled.pairs, named.articles, settings))
    return _Report(
        len(named.articles),
        named.bad_records,
        named.repeated_ids,
        labelled.left_out,
        labelled.repeated,
        evaluation,
        recommend(evaluation, settings, precision),
        tuple(
            ProfileFigures(name, evaluation_of(measure(labelled.pairs, named.by_scheme[profile.scheme], profile)).judge)
            for name, profile in settings_by_profile(settings).items()
        ),
    )


def _check(cut: LabelCut, plot_file: Path | None, *, parts: bool) -> None:
    if cut.unique_below > cut.duplicate_from:
        raise ConfigError(
            f"--unique-below {cut.unique_below:g} is above --duplicate-from {cut.duplicate_from:g}; lower the first "
            "or raise the second"
        )
    if plot_file is not None:
        if parts:
            raise ConfigError("--plot draws curves of thresholds, which parts do not have; leave out --plot or --parts")
        check_plot(plot_file)


def _read_named(
    feed: str, pairs: Sequence[LabelledPair], config: Config, settings: JudgeSettings, lexicon: Lexicon
) -> _NamedArticles:
    """Fingerprint the articles that the pairs name. If an id occurs more than once, the first article counts."""
    ids = {article_id for pair in pairs for article_id in (pair.a, pair.b)}
    by_scheme = {each.scheme: each for each in (settings, *settings_by_profile(settings).values())}
    bindings = [unstored_binding(config, each) for each in by_scheme.values()]
    building = [(engine(config, bound, lexicon, sketched=True), version_builder(bound)) for bound in bindings]
    named = _NamedArticles({scheme: {} for scheme in by_scheme}, Counter(), 0)
    for articles in articles_of(feed, config, named.bad_records):
        fresh = _new_articles(articles, ids, named)
        if not fresh:
            continue
        bodies = [article.body or "" for article in fresh]
        # All articles arrive at the same time, as in a run over a file, so that the window excludes no pair.
        arrivals = [ArrivalTime(0, len(named.articles) + index) for index in range(len(fresh))]
        for known, (fingerprinting, builder) in zip(named.by_scheme.values(), building, strict=True):
            fingerprints = fingerprinting.fingerprint(bodies, [article.lang for article in fresh])
            for version in builder.versions(fresh, arrivals, fingerprints):
                known[version.record.id] = StoredVersion(version.record, None, None)
    return named


def _new_articles(articles: Sequence[Article], ids: set[str], named: _NamedArticles) -> list[Article]:
    """Return the articles with these ids that are not in ``named`` yet, and count repeated ids in ``named``.

    Retractions are left out, because they have no text to compare.
    """
    fresh: dict[str, Article] = {}
    for article in articles:
        if article.id in ids and article.body is not None:
            if article.id in fresh or article.id in named.articles:
                named.repeated_ids += 1
            else:
                fresh[article.id] = article
    return list(fresh.values())


class _PartsReport(msgspec.Struct, frozen=True):
    """The output of ``--parts --json``."""

    articles: int
    bad_records: dict[str, int]
    left_out_pairs: int
    repeated_pairs: int
    evaluation: PartEvaluation


def evaluate_parts(
    config: Config, feed: str, labelled: LabelledPairs, settings: JudgeSettings, lexicon: Lexicon, *, json: bool
) -> None:
    """Judge the whole feed in memory, with parts, and print how many of the labelled pairs the verdicts name."""
    bad_records: Counter[str] = Counter()
    ids: set[str] = set()
    parts, near = named_pairs(_verdicts(config, feed, settings, lexicon, bad_records, ids))
    check_known(labelled.pairs, ids)
    evaluation = part_evaluation(labelled.pairs, parts, near)
    errors = render.console(stderr=True)
    for sentence in skipped_sentences(bad_records, 0, labelled.left_out, labelled.repeated):
        errors.print(sentence)
    report = _PartsReport(len(ids), dict(bad_records), labelled.left_out, labelled.repeated, evaluation)
    answer(json=json, lines=[report], text=_sentences(evaluation))


def _verdicts(
    config: Config, feed: str, settings: JudgeSettings, lexicon: Lexicon, bad_records: Counter[str], ids: set[str]
) -> Iterator[Verdict]:
    """Judge the feed as a run over a file would, yield its verdicts, and add the ids of its articles to ``ids``."""
    detector = Detector(MemoryStore(), settings, lambda: 0, common=CommonHashes())
    bound = unstored_binding(config, settings)
    fingerprinting, builder = engine(config, bound, lexicon), version_builder(bound)
    for batch in articles_of(feed, config, bad_records):
        articles = [article for article in batch if article.body is not None]
        fingerprints = fingerprinting.fingerprint(
            [article.body or "" for article in articles], [article.lang for article in articles]
        )
        arrivals = [ArrivalTime(0, len(ids) + place) for place in range(len(articles))]
        ids.update(article.id for article in articles)
        for group in parts_with_distinct_ids(builder.versions(articles, arrivals, fingerprints)):
            yield from (event.verdict for event in detector.judge(group))


def _sentences(evaluation: PartEvaluation) -> Iterator[str]:
    figures = evaluation.figures
    yield (
        f"Verdicts name {figures.right:,} of {evaluation.parts:,} labelled parts, "
        f"and {figures.wrong:,} of {evaluation.others:,} pairs that are labelled as not parts."
    )
    yield (
        f"precision {rate(figures.precision)} ({interval(figures.precision)}), "
        f"recall {rate(figures.recall)} ({interval(figures.recall)})"
    )
    yield f"Named as parts without a label: {counted(evaluation.unlabelled, 'pair')}."
