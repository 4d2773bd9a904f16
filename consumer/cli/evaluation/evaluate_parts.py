"""``dupwatch evaluate --parts``: how well verdicts name articles that have a stretch in common."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from consumer.cli.evaluation.evaluation_feed import articles_of, check_known, skipped
from consumer.cli.evaluation.evaluation_tables import interval, rate
from consumer.cli.render import console
from consumer.cli.results import results, write_json
from consumer.config.config import Config
from consumer.evaluation.labelled_pairs import LabelledPairs
from consumer.evaluation.part_pairs import PartEvaluation, pairs_named, part_evaluation
from consumer.fingerprint import Lexicon
from consumer.judge.common_hashes import CommonHashes
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivedAt
from consumer.model.verdict import Verdict
from consumer.pipeline.loop import distinct_ids
from consumer.wiring.components import engine, version_builder
from consumer.wiring.stores import unstored_binding
from storage.memory import MemoryStore


class _Report(msgspec.Struct, frozen=True):
    """The output of ``--json``."""

    articles: int
    bad_records: dict[str, int]
    left_out_pairs: int
    repeated_pairs: int
    evaluation: PartEvaluation


def evaluate_parts(
    config: Config, feed: str, labelled: LabelledPairs, settings: JudgeSettings, lexicon: Lexicon, *, json: bool
) -> None:
    """Judge the whole feed in memory, with parts, and print how many labelled pairs are named."""
    bad_records: Counter[str] = Counter()
    ids: set[str] = set()
    parts, near = pairs_named(_verdicts(config, feed, settings, lexicon, bad_records, ids))
    check_known(labelled.pairs, ids)
    evaluation = part_evaluation(labelled.pairs, parts, near)
    for sentence in skipped(bad_records, 0, labelled.left_out, labelled.repeated):
        console(stderr=True).print(sentence)
    with results():
        if json:
            write_json(_Report(len(ids), dict(bad_records), labelled.left_out, labelled.repeated, evaluation))
        else:
            for sentence in _sentences(evaluation):
                console().print(sentence)


def _verdicts(
    config: Config, feed: str, settings: JudgeSettings, lexicon: Lexicon, bad_records: Counter[str], ids: set[str]
) -> Iterator[Verdict]:
    """Judge the feed as a run over a file does; add the ids of its articles to ``ids``."""
    detector = Detector(MemoryStore(), settings, lambda: 0, common=CommonHashes())
    bound = unstored_binding(config, settings)
    fingerprinting, builder = engine(config, bound, lexicon), version_builder(bound)
    for batch in articles_of(feed, config, bad_records):
        articles = [article for article in batch if article.body is not None]
        fingerprints = fingerprinting.fingerprint(
            [article.body or "" for article in articles], [article.lang for article in articles]
        )
        arrivals = [ArrivedAt(0, len(ids) + place) for place in range(len(articles))]
        ids.update(article.id for article in articles)
        for part in distinct_ids(builder.versions(articles, arrivals, fingerprints)):
            yield from (event.verdict for event in detector.judge(part))


def _sentences(evaluation: PartEvaluation) -> Iterator[str]:
    figures = evaluation.figures
    yield (
        f"{figures.right:,} of {evaluation.parts:,} labelled parts are named, "
        f"and {figures.wrong:,} of {evaluation.others:,} pairs labelled as none."
    )
    yield (
        f"precision {rate(figures.precision)} ({interval(figures.precision)}), "
        f"recall {rate(figures.recall)} ({interval(figures.recall)})"
    )
    yield f"Named as parts without a label: {evaluation.unlabelled:,} pairs."
