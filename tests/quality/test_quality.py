"""How good the verdicts are with the settings that come with the program: floors, so that nothing falls unseen."""

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from benchmarks.quality.feed import read_feed, read_lines
from benchmarks.quality.pairs import similar_pairs
from benchmarks.quality.score import Verdict as ScoredVerdict
from benchmarks.quality.score import measure
from consumer.config.loading import load_config
from consumer.judge.tally import Tally
from consumer.lifecycle.stopping import StopSignal
from consumer.model.dead_letter import DeadLetter
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict, decode_verdict
from consumer.pipeline.batches import BatchCommitted
from consumer.pipeline.feed_kind import Streams
from consumer.wiring.file_run import prepared_run
from tests.dev_feed import FOLDER_VARIABLE, REQUIRED_VARIABLE, dev_data_dir

SAMPLE = Path(__file__).resolve().parents[2] / "sample"
ARTICLES = 3_000
PLAIN_SIMHASH = {"judge": {"verify": False, "lane1": False}}


class Label(msgspec.Struct, frozen=True):
    """What is read of a label of the sample feed."""

    id: str
    operator: str
    expected: str
    of: str | None


@dataclass(slots=True)
class _Letters:
    """Keeps the dead letters of a run."""

    letters: list[DeadLetter] = field(default_factory=list)

    def listen(self, hooks: Hooks) -> None:
        """Keep those of each batch."""
        hooks.on(BatchCommitted, lambda batch: self.letters.extend(batch.letters))


class Outcome(NamedTuple):
    """What a run gave and what it cost."""

    lines: list[bytes]
    tally: Tally

    def verdicts(self) -> list[Verdict]:
        """The verdicts in the order of the feed."""
        return [decode_verdict(line) for line in self.lines]


@pytest.fixture
def dev_folder() -> Path:
    """Where the development feed is; found before ``judged`` takes the variable away that may name it."""
    return dev_data_dir()


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Judges a feed in memory with the production code, by the default settings and these."""
    for name in (FOLDER_VARIABLE, REQUIRED_VARIABLE):
        # They look like settings, and no unknown one is passed over.
        monkeypatch.delenv(name, raising=False)

    def judge(feed: Path, **overrides: Any) -> Outcome:  # noqa: ANN401  # any setting
        config = load_config(None, {"source": {"url": str(feed)}, "sink": {"emit": "all"}} | overrides)
        streams, observer = Streams(io.BytesIO(), io.BytesIO()), _Letters()
        with prepared_run(config, streams, Hooks(observer), StopSignal()) as run:
            run.pipeline.run()
            tally = run.tally
        assert observer.letters == []
        return Outcome(streams.out.getvalue().splitlines(), tally)  # type: ignore[attr-defined]  # a BytesIO

    return judge


def test_the_development_feed_is_judged_as_well_as_promised(
    dev_folder: Path, judged: Callable[..., Outcome], tmp_path: Path
) -> None:
    """Precision ≥ 0.995, recall ≥ 0.99, at most 2 % of the flags between, with at most 8 row reads an article.

    On its beginning: to compare all pairs of the whole feed would take longer than all else here.
    """
    with gzip.open(dev_folder / "articles-dev.jsonl.gz") as whole:
        beginning = b"".join(islice(whole, ARTICLES))
    feed = tmp_path / "beginning.jsonl"
    feed.write_bytes(beginning)
    outcome = judged(feed)
    scored = [msgspec.json.decode(line, type=ScoredVerdict) for line in outcome.lines]
    articles = read_feed(feed)
    quality = measure([article.id for article in articles], similar_pairs(articles), scored)
    assert quality.flags > 200
    assert (quality.precision.value or 0) >= 0.995
    assert (quality.recall.value or 0) >= 0.99
    assert quality.between <= 0.02 * quality.flags
    assert outcome.tally.row_reads <= 8 * outcome.tally.versions
    assert outcome.tally.truncated == 0


def test_the_sample_feed_is_judged_by_its_labels(judged: Callable[..., Outcome]) -> None:
    """Every article that its label calls a duplicate or unique gets that verdict."""
    labels = list(read_lines(SAMPLE / "labels.jsonl", Label))
    verdicts = [verdict for verdict in judged(SAMPLE / "feed.jsonl").verdicts() if verdict.outcome != "retracted"]
    assert [verdict.id for verdict in verdicts] == [label.id for label in labels]
    wrong = [
        (label.id, label.expected)
        for label, verdict in zip(labels, verdicts, strict=True)
        if label.expected in {"duplicate", "unique"} and label.expected != verdict.outcome
    ]
    assert wrong == []


def test_plain_simhash_is_the_published_method(judged: Callable[..., Outcome]) -> None:
    """With lane 1 and verification off a flag is a distance of at most 3 bits, four rows are read, and no sketch."""
    outcome = judged(SAMPLE / "feed.jsonl", **PLAIN_SIMHASH)
    verdicts = outcome.verdicts()
    flags = [verdict for verdict in verdicts if verdict.outcome == "duplicate"]
    assert len(flags) > 50
    assert {verdict.similarity for verdict in verdicts} == {None}
    assert {match.similarity for flag in flags for match in flag.matches} == {None}
    assert {flag.distance for flag in flags} <= {0, 1, 2, 3}
    assert outcome.tally.row_reads <= 4 * outcome.tally.versions


def test_plain_simhash_finds_more_the_farther_it_may_look(judged: Callable[..., Outcome]) -> None:
    """With 7 bits the neighbours of each block are read as well, and flags farther than 3 bits appear."""
    judge = PLAIN_SIMHASH["judge"] | {"max_distance": 7}
    flags = [
        verdict for verdict in judged(SAMPLE / "feed.jsonl", judge=judge).verdicts() if verdict.outcome == "duplicate"
    ]
    assert {flag.distance for flag in flags} <= set(range(8))
    assert max(flag.distance or 0 for flag in flags) > 3
