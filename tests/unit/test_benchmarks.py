"""The benchmarks measure what they say, shown at tiny sizes; none of the peers is needed."""

import gc
import json
import random
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import near_misses_cost, store_sizes
from benchmarks.console import intake
from benchmarks.quality.compare import SETTINGS, compare, judge_with_dupwatch
from benchmarks.quality.feed import Article, write_lines
from benchmarks.quality.pairs import similar_pairs
from benchmarks.quality.reviews import CASES, People, line_row, rates_row
from benchmarks.quality.sample_corpus import SAMPLE, first_versions
from benchmarks.service.layers import OTHER, layer_shares
from benchmarks.service.vegeta import answers_of
from benchmarks.service.window import COPIED_EVERY, questions
from benchmarks.speed import growth, look_up
from benchmarks.speed.codes import CodeModel, bits_of, codes_of, near_copies, row_skew
from benchmarks.speed.harness import Contender, Spread, Timing, ratios, spread, take_turns
from benchmarks.speed.ours import LIKE_FOR_LIKE, Dupwatch, synthetic_records
from benchmarks.speed.peers import shingles
from benchmarks.speed.preload import Entries, draw_entries, lmdb_store, memory_store
from benchmarks.speed.profiles import Spent
from benchmarks.speed.profiles import rows as profile_rows
from benchmarks.speed.report import publish
from benchmarks.speed.stages import STORE_CALLS, measure
from benchmarks.speed.workers import rows as worker_rows
from consumer.config.loading import load_config
from consumer.fingerprint import BlockPlan
from consumer.judge.plan_choice import LookUpSettings, look_up_cost
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.store_tools.text_sizes import Language
from consumer.stress.made_texts import make_feed
from consumer.wiring.components import lexicon_of
from consumer.workers.word_files import load_lexicon
from storage.interface import PostingStore
from storage.memory import MemoryStore
from storage.records import ID_HASH_BYTES
from storage.watched import WatchedStore
from tests.unit.reviews.made import database_in, rows_of

PLANS = [name for name in BlockPlan.NAMES if name in {"4x16", "16x28"}]


@pytest.fixture(autouse=True)
def _without_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks collect garbage before they measure; a process of tests has a million objects to go through."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


def _model() -> CodeModel:
    """A model in which the first bit is nearly always set, so that rows differ in length."""
    codes = np.random.default_rng(1).integers(0, 1 << 64, 500, dtype=np.uint64)
    codes[:450] |= np.uint64(1 << 63)
    return CodeModel.fitted(codes, classes=2)


def _rows(store: PostingStore, keys: list[bytes]) -> list[bytes]:
    return [row.packed for row in store.look_up(keys)]


def test_contenders_take_turns_and_warm_up_is_not_counted() -> None:
    """Every round gives each contender its turn, and the clock of the first round is thrown away."""
    turns: list[str] = []
    ticks = iter(range(100))

    def work(name: str, units: int) -> Contender:
        return Contender(name, lambda number: turns.append(f"{name}{number}") or units)  # type: ignore[func-returns-value]

    timings = take_turns([work("a", 2), work("b", 4)], 2, clock=lambda: float(next(ticks)))
    assert turns == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert timings == [Timing("a", (2, 2), (1.0, 1.0)), Timing("b", (4, 4), (1.0, 1.0))]
    assert ratios(timings[1], timings[0]) == Spread(2.0, 2.0, 2.0)
    assert timings[0].microseconds == Spread(5e5, 5e5, 5e5)


def test_ratios_are_taken_round_by_round() -> None:
    """A round that was slow for both does not change their ratio."""
    slow, fast = Timing("slow", (10, 10, 10), (1.0, 8.0, 2.0)), Timing("fast", (10, 10, 10), (0.5, 2.0, 0.5))
    assert ratios(fast, slow) == Spread(4.0, 2.0, 4.0)
    with pytest.raises(ValueError, match="no round"):
        spread([])


def test_published_lines_stand_for_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each row is one JSON line with part, date, arguments and machine; a second run is appended."""
    for _ in range(2):
        path = publish("part", "Title", [{"what": "x", "rate": Spread(1.0, 0.5, 2.0)}], out=tmp_path, size=3)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 2
    assert lines[0]["row"] == {"what": "x", "rate": [1.0, 0.5, 2.0]}
    assert lines[0]["arguments"] == {"size": 3}
    assert lines[0]["machine"]["versions"]["numpy"] == np.__version__
    assert "1  (0.5 – 2)" in capsys.readouterr().out


def test_made_texts_have_their_length_and_copies_resemble_their_originals() -> None:
    """Lengths are as asked, the share of copies too, equal seeds give equal feeds, and only copies are alike."""
    feed = make_feed(200, 500, copies_share=0.3)
    assert all(500 <= len(text.body) <= 520 for text in feed)
    assert 40 <= sum(text.original is not None for text in feed) <= 80
    assert feed == make_feed(200, 500, copies_share=0.3)
    parts = {text.id: shingles(text.body) for text in feed}
    alike = [
        len(parts[text.id] & parts[text.original]) / len(parts[text.id] | parts[text.original])
        for text in feed
        if text.original
    ]
    assert np.median(alike) > 0.8
    own = [parts[text.id] for text in feed if text.original is None]
    assert max(len(own[0] & other) / len(own[0] | other) for other in own[1:]) < 0.2


def test_the_model_draws_codes_with_the_shares_and_rows_it_was_fitted_to() -> None:
    """Two groups of codes with opposite bits come out as two groups, not as their mean."""
    rng = np.random.default_rng(2)
    centre = np.full(2_000, 0x00FF00FF00FF00FF, np.uint64)
    flips = codes_of(rng.random((2_000, 64)) < 0.2)
    codes = np.concatenate([centre[:1_500], ~centre[1_500:]]) ^ flips
    drawn = CodeModel.fitted(codes, classes=2).sample(2_000, rng)
    assert np.abs(bits_of(drawn).mean(axis=0) - bits_of(codes).mean(axis=0)).max() < 0.05
    assert row_skew(drawn) == pytest.approx(row_skew(codes), rel=0.25)
    assert row_skew(codes) > 50
    assert row_skew(rng.integers(0, 1 << 64, 20_000, dtype=np.uint64)) == pytest.approx(1.0, abs=0.1)


def test_near_copies_differ_in_as_many_bits_as_asked() -> None:
    """Three flips are three different bits."""
    codes = np.arange(50, dtype=np.uint64)
    assert set(np.bitwise_count(codes ^ near_copies(codes, 3, np.random.default_rng(1))).tolist()) == {3}


@pytest.mark.parametrize("name", PLANS)
def test_preloaded_rows_are_those_that_adding_makes(name: str, tmp_path: Path) -> None:
    """Both loaders leave, byte for byte, the rows that a store's own call makes of the same records."""
    rng = np.random.default_rng(3)
    plan = BlockPlan.named(name)
    entries = draw_entries(_model(), 300, rng)
    # Copies: rows with several postings, and postings with equal codes.
    entries = Entries(*(np.concatenate([part, part[:40]]) for part in entries))
    settings = JudgeSettings(plan=plan, scheme_digest="")
    loaded = memory_store(plan, entries)
    keys = sorted(loaded._rows)
    stored = lmdb_store(tmp_path / "store", plan, entries)
    try:
        assert _rows(stored, keys) == _rows(loaded, keys)
        assert stored.stats().postings == loaded.stats().postings
    finally:
        stored.close()
    added = MemoryStore()
    records = synthetic_records(VersionBuilder("x", plan, lane1=True), entries, "x", 0, rng)
    added.add(records)
    assert sorted(added._rows) == keys
    widths = [[len(row) for row in _rows(store, keys)] for store in (added, loaded)]
    assert widths[0] == widths[1]
    codes = [[row[:8] for row in _rows(store, keys)] for store in (added, loaded)]
    assert codes[0] == codes[1]
    assert settings.plan.key_bytes == len(keys[0])
    # Postings of one id are versions of one article, of which only the last is a candidate.
    ids = {bytes(posting["reference"])[:ID_HASH_BYTES] for row in loaded.look_up(keys) for posting in row.postings}
    assert len(ids) == 340


def test_every_index_finds_what_brute_force_finds(tmp_path: Path) -> None:
    """Memory, LMDB and LMDB in an open transaction find just the fingerprints within 3 bits, one by one and batched."""
    rng = np.random.default_rng(4)
    model, plan = _model(), BlockPlan.named("4x16")
    stored = model.sample(1_000, rng)
    codes = look_up.draw_queries(stored, model, 64, rng)
    with look_up.indexes(stored, plan, tmp_path) as built:
        ours = [index for index in built if index.name.startswith(("dupwatch", "brute"))]
        assert len(ours) == 4
        assert look_up.check(ours, codes) >= 32
        single = look_up.measure(ours, codes, 1, 1)
        rows = look_up.rows(ours, single, look_up.measure(ours, codes, 16, 1))
    assert [timing.units for timing in single] == [(32,), (64,), (64,), (64,)]
    assert [row["what"] for row in rows] == [index.name for index in ours]


def test_indexes_that_disagree_are_not_measured() -> None:
    """A contender that overlooks something is an error, not a faster contender."""
    built = [look_up.Index("a", lambda _: 2, 1.0), look_up.Index("b", lambda _: 1, 1.0)]
    with pytest.raises(ValueError, match="do not find the same"):
        look_up.check(built, np.zeros(1, np.uint64))


def test_samples_count_for_the_layer_of_the_innermost_frame_that_has_one() -> None:
    """Helpers of the standard library count for their callers."""
    loop, front = "run (/usr/lib/asyncio/runners.py:1)", "__call__ (/x/consumer/web/front.py:73)"
    shares = layer_shares(
        [
            f"{loop};{front};uuid4 (/usr/lib/uuid.py:7) 3",
            f"{loop};{front};_run (/x/consumer/service/context.py:9);look_up (/x/storage/lmdb/store.py:4) 5",
            "_bootstrap (/usr/lib/runpy.py:5) 2",
        ]
    )
    assert {layer: share for layer, share in shares.items() if share} == {
        "access, limits, request id": 0.3,
        "store": 0.5,
        OTHER: 0.2,
    }


def test_growth_counts_rows_and_postings_and_computes_larger_windows(tmp_path: Path) -> None:
    """Eight rows an article; postings read grow with the window in proportion, and so does what is stored."""
    settings, draw = growth.settings_of(BlockPlan.named("4x16"), None), partial(draw_entries, _model())
    points = [growth.measure(settings, size, draw, 1, tmp_path / str(size)) for size in (500, 4_000)]
    assert [point.rows_read for point in points] == [8.0, 8.0]
    assert points[1].postings_read > 2 * points[0].postings_read
    assert [len(timing.seconds) for timing in (points[0].look_up, points[0].write)] == [1, 1]
    rows = growth.window_rows({"4x16": points})
    assert [row["articles"] for row in rows] == [1 << 30, 1 << 34, 1 << 37]
    assert rows[1]["postings read"] == pytest.approx(16 * rows[0]["postings read"])
    assert rows[0]["bytes read"] == rows[0]["postings read"] * 56
    growth.draw_growth(tmp_path / "growth.svg", {"4x16": points})
    assert (tmp_path / "growth.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_growth_counts_the_candidates_that_chance_brings_to_posts(tmp_path: Path) -> None:
    """As many as the choice of a plan expects, since the generated posts are on different subjects."""
    settings = growth.settings_of(BlockPlan.named("4x16"), "posts")
    draw = partial(growth.draw_posts, settings.scheme)
    point = growth.measure(settings, 20_000, draw, 1, tmp_path / "store")
    expected = look_up_cost(settings.plan, 20_000, LookUpSettings.of(settings))
    assert point.rows_read == 18.0
    assert point.postings_read == pytest.approx(expected.postings, rel=0.25)
    assert point.candidates == pytest.approx(expected.candidates, rel=0.5)


def test_fits_recover_coefficients_and_none_is_negative() -> None:
    """An exact sum is found again; what would need a negative coefficient goes without it."""
    columns = np.array([[1.0, 10.0], [1.0, 1_000.0], [1.0, 100_000.0]])
    assert growth.fit(columns, columns @ np.array([5.0, 0.25])) == pytest.approx([5.0, 0.25])
    assert growth.fit(columns, np.array([10.0, 9.0, 8.0]))[1] == 0.0
    with pytest.raises(ValueError, match="positive"):
        growth.fit(columns, np.array([1.0, 0.0, 1.0]))


@pytest.mark.parametrize("overrides", [{}, LIKE_FOR_LIKE], ids=["default", "like for like"])
def test_preloaded_articles_change_no_verdict(overrides: dict[str, object], tmp_path: Path) -> None:
    """What was preloaded is in the store, kept, and near to nothing that is judged after it."""
    feed = make_feed(60, 500, copies_share=0.3)
    lexicon = load_lexicon()
    outcomes = []
    for preloaded in (0, 200):
        with ExitStack() as stack:
            ours = Dupwatch.opened(stack, lexicon, f"lmdb:{tmp_path}/{preloaded}", overrides)
            ours.preload(_model(), preloaded, np.random.default_rng(5))
            stats = ours.detector.store.stats()
            assert (stats.versions, stats.verdicts) == (preloaded, preloaded)
            assert stats.postings == preloaded * (4 if overrides else 8)
            outcomes.append([event.verdict.outcome for event in ours.judge(feed)])
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].count("duplicate") > 5


def test_the_stages_of_an_article_add_up(tmp_path: Path) -> None:
    """Every step of the judge is timed, and no stage takes longer than the whole."""
    feed = make_feed(20, 500, copies_share=0.3)
    with ExitStack() as stack:
        found = measure(Dupwatch.opened(stack, load_lexicon(), f"lmdb:{tmp_path}/store", {}), feed)
    steps = {f"judge: {name}" for name in ("find_candidates", "compare_all", "decide", "the rest")}
    assert steps | {f"store: {name}" for name in STORE_CALLS} <= found.keys()
    assert found["judge"] + found["fingerprint"] + found["versions"] == pytest.approx(found["whole"])


def test_workers_are_compared_without_their_start() -> None:
    """The time of a run over one article is taken off, and the article with it."""
    whole, starts = [Timing("a", (101,), (3.0,))], [Timing("a", (1,), (1.0,))]
    (row,) = worker_rows(whole, starts)
    assert row["articles/s"] == Spread(50.0, 50.0, 50.0)


def test_profiles_are_compared_without_their_start() -> None:
    """By the clock and by processor time, round by round."""
    found = {
        "news": [(Spent(3.0, 2.0), Spent(1.0, 1.0)), (Spent(5.0, 2.0), Spent(1.0, 1.0))],
        "posts": [(Spent(5.0, 3.0), Spent(1.0, 1.0)), (Spent(5.0, 3.0), Spent(1.0, 1.0))],
    }
    table = profile_rows(found, 101)
    assert [(row["profile"], row["by"]) for row in table] == [
        ("news", "clock"),
        ("posts", "clock"),
        ("news", "processor"),
        ("posts", "processor"),
    ]
    assert table[1]["articles/s"] == Spread(25.0, 25.0, 25.0)
    assert table[1]["times news"] == Spread(0.75, 0.5, 1.0)
    assert table[3]["times news"] == Spread(0.5, 0.5, 0.5)


def test_dupwatch_is_run_as_configured_and_scored(tmp_path: Path) -> None:
    """Each setting gives one verdict an article and reads as many rows as it says; the table has a row for each."""
    texts = make_feed(40, 500, copies_share=0.3)
    articles = [Article(id=text.id, body=text.body, lang="zh") for text in texts]
    feed, pairs = tmp_path / "feed.jsonl", tmp_path / "pairs.jsonl"
    write_lines(feed, articles)
    write_lines(pairs, similar_pairs(articles))
    reads = []
    for overrides in SETTINGS.values():
        judged = judge_with_dupwatch(feed, overrides)
        assert [verdict.id for verdict in judged.verdicts] == [article.id for article in articles]
        reads.append(judged.reads)
    assert reads[0] <= 8 < reads[2] <= 12
    assert reads[1] <= 4
    rows = compare(feed, pairs)
    assert [row["detector"] for row in rows][:3] == list(SETTINGS)
    assert rows[0]["missed"] == 0


def test_the_sample_feed_becomes_a_corpus_of_first_versions() -> None:
    """No id twice, no retraction, and all that is left has a body."""
    articles = list(first_versions(SAMPLE))
    assert len({article.id for article in articles}) == len(articles) == 224
    assert all(article.body for article in articles)


def test_questions_are_new_texts_and_reprints_of_stored_ones() -> None:
    """No text comes twice, in another measurement neither; one in ten is of the window."""
    asked = questions(40, 300, 7, articles=20)
    others = questions(40, 300, 8, articles=20)
    assert len({*asked, *others}) == 80
    stored = {text.body for text in make_feed(20, 300, copies_share=0.1, seed=1_000)}
    reprints = [place for place, text in enumerate(asked) if any(text.endswith(body) for body in stored)]
    assert reprints == list(range(0, 40, COPIED_EVERY))


def test_what_vegeta_prints_is_read() -> None:
    """Answers, requests without one, and those that would have come after the last."""
    lines = [
        {"code": 200, "timestamp": "2026-11-23T20:00:00.5Z", "latency": 2_000_000, "body": "e30=", "error": ""},
        {"code": 0, "timestamp": "2026-11-23T20:00:01Z", "latency": 4_000_000, "body": None, "error": "refused"},
        {"code": 0, "timestamp": "2026-11-23T20:00:09Z", "latency": 0, "body": None, "error": "no targets to attack"},
    ]
    answers = answers_of(b"\n".join(json.dumps(line).encode() for line in lines))
    assert answers.statuses.tolist() == [200, 0]
    assert answers.bodies == (b"{}", b"")
    assert (answers.failed, answers.errors) == (1, ("refused",))
    assert answers.percentile(50) == 3.0
    assert answers.took_s == pytest.approx(0.504)


def test_reviews_are_made_and_intervals_compared() -> None:
    """The line is found in nearly all; only intervals that know what a near miss stands for have the recall."""
    row = line_row(People(0.83), range(8))
    assert row["covered"] >= 6 / 8
    assert 0 < row["width, median"] < 0.1
    rare = rates_row(CASES[-1], 40)
    recall = {name: float(str(rare[name]).split(",")[0]) for name in ("gamma", "bootstrap")}
    assert recall["gamma"] > 0.8 > recall["bootstrap"]


def test_near_misses_cost_is_measured_on_near_misses() -> None:
    """Without, none is sent; with all articles drawn, there are many; verdicts are the same."""
    config = load_config(None, {})
    judging = near_misses_cost.Judging(near_misses_cost.feed(64, 500, 32), config, lexicon_of(config))
    without, drawing = judging.judge(0.0).sent, judging.judge(1.0).sent
    assert drawing.pop("given.near-misses") >= 5
    assert without == drawing


def test_the_intake_of_the_console_is_measured_with_sources_and_without(tmp_path: Path) -> None:
    """In the end both kinds of flags have the same sources; for one of them the store is read."""
    calls: list[object] = []
    store = WatchedStore(MemoryStore(), calls.append)
    made = intake.turn(store, 5, random.Random(1))
    sources = []
    for name, flags in made._asdict().items():
        calls.clear()
        (tmp_path / name).mkdir()
        with closing(database_in(tmp_path / name)) as database:
            assert intake.Console(store, database).take_in(flags) == 5
            assert bool(calls) == (name == "unnamed")
            sources.append({row.article_id: (row.source, row.original_source) for row in rows_of(database).values()})
    assert sources[0] == sources[1]
    assert len(sources[0]) == 5


@pytest.mark.parametrize(("chars", "language", "plan"), [(500, "zh", "16x28"), (3_000, "en", "4x16")])
def test_stores_have_the_size_that_is_computed(chars: int, language: Language, plan: str, tmp_path: Path) -> None:
    """Within 15 %, from length and language alone and from a sample."""
    feed = tmp_path / "feed.jsonl"
    store_sizes.write_made(feed, chars, language, 1_200)
    row = store_sizes.in_lmdb("made", feed, tmp_path / "store", plan)
    assert (row["language"], row["plan"], row["articles"]) == (language, plan, "1,200")
    assert abs(float(row["computed, %"])) < 15
    assert abs(float(row["from a sample, %"])) < 15
