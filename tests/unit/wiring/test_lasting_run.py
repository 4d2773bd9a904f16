"""The metrics of a whole run over topics, with worker processes, on the client library's mock cluster."""

import gc
import io
import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.kafka.mock_cluster import mock_cluster
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import MAIN, ThreadProgressed
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.pipeline.feed_kind import Streams
from consumer.telemetry.metrics.batches import TIMED_STAGES
from consumer.wiring import stores
from consumer.wiring.components import judge_settings, lexicon_of
from consumer.wiring.lasting_run import LastingRun, prepared_lasting_run
from storage.errors import StoreUnavailable
from storage.interface import Store
from tests.cli.command import text
from tests.kafka.topics import ordered_producer

ARTICLES = 120
BATCH_RECORDS = 4
WAIT_S = 120
TOPICS = ["articles", *(f"judged.{suffix}" for suffix in ("duplicates", "verdicts", "dead-letters"))]


class Until:
    """Asks the run to stop when ``wanted`` records have an answer."""

    def __init__(self, wanted: int, stopping: StopSignal) -> None:
        self._left = wanted
        self._stopping = stopping

    def listen(self, hooks: Hooks) -> None:
        """Listen to commits."""
        hooks.on(BatchCommitted, self._committed)

    def _committed(self, batch: BatchCommitted) -> None:
        # Slower than the client reads, so that the client has to wait.
        time.sleep(0.01)
        self._left -= len(batch.verdicts) + len(batch.letters)
        if self._left <= 0:
            self._stopping.requested_by, self._stopping.requested_at_s = 15, time.monotonic()


def configured(address: str, folder: Path, workers: int, **more: dict[str, Any]) -> Config:
    """Configure a run over a topic of the cluster."""
    overrides: dict[str, Any] = {
        "source": {"url": f"kafka://{address}/articles", "batch_records_max": BATCH_RECORDS},
        "sink": {"url": f"kafka://{address}/judged", "emit": "all"},
        "store": {"url": f"lmdb:{folder / 'store'}", "durability": "process"},
        "http": {"listen": "127.0.0.1:0", "sources_max": 2},
        "rules": {"pinned": {"flag": "never"}},
        "workers": workers,
    }
    for section, settings in more.items():
        overrides[section] = overrides.get(section, {}) | settings
    return load_config(None, overrides)


def send(address: str) -> None:
    """Send articles of three sources, every fifth a copy of the one before, and one invalid record."""
    producer = ordered_producer(address)
    for number in range(ARTICLES):
        body = text(number - (number % 5 == 4))
        value = json.dumps({"body": body, "source": f"source {number // 5 % 3}"})
        producer.produce("articles", value, f"a{number}", partition=0)
    producer.produce("articles", b"{", "bad", partition=0)
    assert producer.flush(WAIT_S) == 0


def scraped(run: LastingRun) -> dict[str, Metric]:
    """Return the metrics of a run by name."""
    with urllib.request.urlopen(f"{run.address}/metrics", timeout=WAIT_S) as answer:
        page = answer.read().decode()
    return {family.name: family for family in text_string_to_metric_families(page)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, dict[str, Metric]]:
    """The configuration of a run that has judged everything, and its metrics by name."""
    with mock_cluster(TOPICS) as address:
        send(address)
        config, stopping = configured(address, tmp_path_factory.mktemp("finished"), 1), StopSignal(interrupts=False)
        streams = Streams(io.BytesIO(), io.BytesIO())
        gc.unfreeze()
        with prepared_lasting_run(config, streams, Hooks(Until(ARTICLES + 1, stopping)), stopping) as run:
            assert gc.get_freeze_count() > 0, "the collector goes through all that was loaded"
            run.pipeline.run()
            return config, scraped(run)


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    """Return the sum of the samples with this name and these labels."""
    samples = [sample for family in families.values() for sample in family.samples if sample.name == name]
    chosen = [sample.value for sample in samples if labels.items() <= sample.labels.items()]
    assert chosen, f"there is no {name} with {labels}"
    return sum(chosen)


def test_every_stage_is_timed(finished: tuple[Config, dict[str, Metric]]) -> None:
    """Also the worker's stage, in another process, and the wait for the client."""
    _, families = finished
    batches = value(families, "dupwatch_batch_records_count")
    assert batches >= (ARTICLES + 1) / BATCH_RECORDS
    for stage in TIMED_STAGES:
        assert value(families, "dupwatch_stage_seconds_sum", stage=stage) > 0
    for stage in ("fingerprint", "look_up", "settle", "emit", "commit"):
        assert value(families, "dupwatch_stage_seconds_count", stage=stage) == batches
    assert value(families, "dupwatch_workers") == 1


def test_articles_are_counted_by_source_and_drift_by_distribution(finished: tuple[Config, dict[str, Metric]]) -> None:
    """Sources with rules have names, and so has the first other one; keywords and similarities match the feed."""
    _, families = finished
    name = "dupwatch_source_articles_total"
    assert value(families, name) == value(families, "dupwatch_articles_total") == ARTICLES
    sources = {sample.labels["source"] for sample in families["dupwatch_source_articles"].samples if sample.value}
    assert sources >= {"source 0", "other"}
    by_source = {source: value(families, name, source=source) for source in ("pinned", "source 0", "other", "none")}
    assert by_source == {"pinned": 0, "source 0": 40, "other": 80, "none": 0}
    assert value(families, "dupwatch_article_keywords_count") == ARTICLES
    assert value(families, "dupwatch_article_keywords_sum") > 10 * ARTICLES
    copies = value(families, "dupwatch_duplicates_total", kind="copy")
    assert value(families, "dupwatch_duplicate_similarity_ratio_sum") == copies == ARTICLES / 5
    assert value(families, "dupwatch_duplicate_distance_bucket", le="0.0") == copies
    assert value(families, "dupwatch_batch_fill_ratio_bucket", le="+Inf") > 0


def test_calls_of_the_store_are_counted_and_timed(finished: tuple[Config, dict[str, Metric]]) -> None:
    """Every call of the run has succeeded; each is timed as often as it is counted."""
    _, families = finished
    name = "dupwatch_store_operations_total"
    for operation in ("agree", "create", "read", "add", "look_up", "settle", "sweep"):
        calls = value(families, name, operation=operation, outcome="ok")
        assert calls == value(families, "dupwatch_store_operation_seconds_count", operation=operation) > 0
    assert value(families, name, operation="retract") == 0
    assert value(families, name, outcome="unavailable") == 0


def test_the_build_is_shown(finished: tuple[Config, dict[str, Metric]]) -> None:
    """With the digest of the settings that the store is bound to."""
    config, families = finished
    settings = judge_settings(config, lexicon_of(config))
    (build,) = islice(families["dupwatch_build_info"].samples, 2)
    assert build.labels["settings"] == settings.digest()
    assert (build.labels["scheme"], build.labels["plan"]) == (settings.scheme.name, settings.plan.name)


def test_a_run_that_has_judged_everything_rests(finished: tuple[Config, dict[str, Metric]]) -> None:
    """It is not busy, and shows when each thread last made progress."""
    _, families = finished
    assert value(families, "dupwatch_busy") == 0
    now_s = time.time()
    for thread in ("client", "main"):
        turned_s = value(families, "dupwatch_loop_heartbeat_timestamp_seconds", thread=thread)
        assert now_s - 3_600 < turned_s <= now_s
    assert now_s - 3_600 < value(families, "dupwatch_last_processed_timestamp_seconds") <= now_s


def test_a_run_that_had_to_wait_for_its_store_rests_once_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on it waits for records, for any time, and must not look as if it hung."""
    opened, refusals = stores.opened_store, [StoreUnavailable("no gateway answers")]

    @contextmanager
    def late(*given: Any, **named: Any) -> Iterator[Store]:  # noqa: ANN401  # as they are given
        if refusals:
            raise refusals.pop()
        with opened(*given, **named) as store:
            yield store

    monkeypatch.setattr(stores, "opened_store", late)
    stopping, streams = StopSignal(interrupts=False), Streams(io.BytesIO(), io.BytesIO())
    with (
        mock_cluster(TOPICS) as address,
        prepared_lasting_run(configured(address, tmp_path, 0), streams, Hooks(), stopping) as run,
    ):
        families = scraped(run)
        stopping.requested_by = 15
        run.pipeline.run()
    assert value(families, "dupwatch_outages_total", part="store") == 1
    assert value(families, "dupwatch_recoveries_total", part="store") == 1
    assert value(families, "dupwatch_busy") == 0


@pytest.mark.parametrize(("url", "judges"), [("hbase://gateway/feed", 5), ("lmdb:store", 1), ("memory:", 1)])
def test_only_a_store_that_is_waited_for_has_several_judges(url: str, judges: int) -> None:
    """The others write one batch after the other."""
    config = load_config(None, {"store": {"url": url, "hbase": {"judges_max": 5}}})
    assert stores.judges_max(config) == judges


@pytest.mark.parametrize("judges", [1, 3])
def test_partitions_are_judged_by_as_many_threads_as_are_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judges: int
) -> None:
    """With one it is the main thread; otherwise threads judge the three partitions."""
    monkeypatch.setattr(stores, "judges_max", lambda _: judges)
    stopping, streams, hooks = StopSignal(interrupts=False), Streams(io.BytesIO(), io.BytesIO()), Hooks()
    Until(ARTICLES, stopping).listen(hooks)
    threads: set[str] = set()
    hooks.on(ThreadProgressed, lambda turned: threads.add(turned.thread))
    with mock_cluster(TOPICS) as address:
        producer = ordered_producer(address)
        for number in range(ARTICLES):
            producer.produce("articles", json.dumps({"body": text(number)}), f"a{number}", partition=number % 3)
        assert producer.flush(WAIT_S) == 0
        # One batch, which is waited for until it is full.
        whole = {"source": {"batch_records_max": ARTICLES}, "kafka": {"linger_s": WAIT_S // 2}}
        config = configured(address, tmp_path, 0, **whole)
        with prepared_lasting_run(config, streams, hooks, stopping) as run:
            run.pipeline.run()
            families = scraped(run)
    judging = {thread for thread in threads if thread.startswith("judge_")}
    assert MAIN in threads
    # A thread that is done soon may get another part.
    assert (len(judging) > 0, len(judging) <= judges) == (judges > 1, True)
    assert value(families, "dupwatch_articles_total", outcome="unique") == ARTICLES
    assert value(families, "dupwatch_busy") == 0


def test_pages_are_read_as_the_store_has_them(tmp_path: Path) -> None:
    """The configuration need not say that bodies are pages: a store that is bound to an extractor does."""
    page = f"<html><body><nav><a href=/>Home</a></nav><div><p>{text(1)}</p><p>{text(2)}</p></div></body></html>"
    with mock_cluster(TOPICS) as address:
        named = configured(address, tmp_path, 0, source={"body_format": "article"})
        with stores.opened_store(named) as store:
            stores.bind(store, judge_settings(named, lexicon_of(named)), named)
        producer = ordered_producer(address)
        producer.produce("articles", json.dumps({"body": page}), "a", partition=0)
        assert producer.flush(WAIT_S) == 0
        stopping, streams = StopSignal(interrupts=False), Streams(io.BytesIO(), io.BytesIO())
        config = configured(address, tmp_path, 0)
        with prepared_lasting_run(config, streams, Hooks(Until(1, stopping)), stopping) as run:
            run.pipeline.run()
            assert value(scraped(run), "dupwatch_pages_total", extracted="article") == 1


@pytest.mark.parametrize(("seconds", "looked_up"), [(5.0, True), (0.0, False)])
def test_a_store_is_warmed_up_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, *, looked_up: bool
) -> None:
    """Made-up articles are looked up, once where rows are empty, while no consumer is in the group; 0 turns it off."""
    monkeypatch.setattr(stores, "warm_up_s", lambda config: seconds)
    with mock_cluster(TOPICS) as address:
        streams, stopping = Streams(io.BytesIO(), io.BytesIO()), StopSignal(interrupts=False)
        with prepared_lasting_run(configured(address, tmp_path, 0), streams, Hooks(), stopping) as run:
            families = scraped(run)
    calls = value(families, "dupwatch_store_operations_total", operation="look_up", outcome="ok")
    assert (calls > 0) is looked_up
    assert value(families, "dupwatch_articles_total") == 0
