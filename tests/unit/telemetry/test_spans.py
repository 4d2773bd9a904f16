"""The spans of a run: one for each batch, with its stages and outcomes, and links to the traces of its articles."""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks
from consumer.model.record import RawBatch
from consumer.pipeline.batches import (
    BatchAbandoned,
    BatchCommitted,
    BatchStarted,
    SinglePieceStage,
    StageEnded,
    report_stage,
)
from consumer.telemetry.spans import BatchSpans, RequestSpans, Tracing, tracing_to
from consumer.telemetry.trace_context import TracedFeed
from consumer.web.requests import RequestEnded
from storage.memory import MemoryStore
from tests.builders import raw_message
from tests.unit.pipeline.fakes import Ends, line, pipeline
from tests.unit.telemetry.collector import collecting

TRACE = "0af7651916cd43dd8448eb211c80319c"


FEED = TracedFeed("kafka", "group")


class SpanListening:
    """A listener, and the spans that it has made."""

    def __init__(self, links_max: int = 256, feed: TracedFeed = FEED) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.listener = BatchSpans(provider.get_tracer("test"), feed, links_max)
        self.hooks = Hooks(self.listener)

    @property
    def spans(self) -> list[ReadableSpan]:
        """All that have ended."""
        return list(self.exporter.get_finished_spans())

    @property
    def batches(self) -> list[ReadableSpan]:
        """Those of batches."""
        return [span for span in self.spans if span.kind is SpanKind.CONSUMER]


@pytest.fixture
def tracing() -> SpanListening:
    """A listener that has heard nothing yet."""
    return SpanListening()


def batch(*places: tuple[str, int, int], parents: int = 0) -> RawBatch:
    """Messages of these topics, partitions and offsets; the first ones with a trace each."""
    records = []
    for number, (topic, partition, offset) in enumerate(places):
        parent = f"00-{TRACE}-{number + 1:016x}-01".encode()
        headers = (("traceparent", parent), ("tracestate", b"vendor=x")) if number < parents else ()
        message = raw_message(
            b"secret body", b"secret-id", offset=offset, topic=topic, partition=partition, headers=headers
        )
        records.append(message)
    return RawBatch(tuple(records))


def test_a_run_makes_a_span_for_each_batch(tracing: SpanListening) -> None:
    """Its stages are its children, in their order and within its time; outcomes are attributes."""
    ends = Ends([line("a"), b"{", line("b")], [line("c", None)])
    running = pipeline(ends, MemoryStore())
    tracing.listener.listen(running.hooks)
    running.run()
    first, second = tracing.batches
    assert first.attributes is not None
    assert second.attributes is not None
    attributes = {name: value for name, value in first.attributes.items() if name.startswith("dupwatch.")}
    assert attributes.items() >= {
        "dupwatch.articles.unique": 1,
        "dupwatch.articles.duplicate": 1,
        "dupwatch.articles.retracted": 0,
        "dupwatch.dead_letters": 1,
    }.items()  # fmt: skip
    assert second.attributes["dupwatch.articles.retracted"] == 1
    assert first.status.status_code is StatusCode.UNSET
    for batch_span in (first, second):
        children = [span for span in tracing.spans if span.parent is not None and span.parent == batch_span.context]
        assert {"decode", "emit", "commit"} <= {span.name for span in children}
        children.sort(key=lambda span: span.start_time or 0)
        names = [span.name for span in children]
        assert names[0] == "decode"
        assert names[-2:] == ["emit", "commit"]
        for child in children:
            assert (batch_span.start_time or 0) <= (child.start_time or 0)
            assert (child.end_time or 0) <= (batch_span.end_time or 0)
            assert (child.start_time or 0) <= (child.end_time or 0)
    # Every listener hears of every stage.
    assert ends.listener.stages.count("decode") == 2


def test_a_batch_is_described_by_where_it_came_from(tracing: SpanListening) -> None:
    """Topic and partition where there is one; ranges of offsets in any case; and nothing of an article."""
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 5), ("articles", 0, 9))))
    tracing.hooks.report(BatchCommitted([], []))
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 5), ("articles", 1, 7), ("more", 0, 1))))
    tracing.hooks.report(BatchCommitted([], []))
    single, several = tracing.batches
    assert (single.name, several.name) == ("process articles", "process")
    assert single.attributes is not None
    assert several.attributes is not None
    assert single.attributes["messaging.destination.name"] == "articles"
    assert single.attributes["messaging.destination.partition.id"] == "0"
    assert single.attributes["messaging.batch.message_count"] == 2
    assert single.attributes["messaging.consumer.group.name"] == "group"
    assert single.attributes["dupwatch.offsets"] == ("articles[0]: 5 to 9",)
    assert several.attributes["dupwatch.offsets"] == ("articles[0]: 5 to 5", "articles[1]: 7 to 7", "more[0]: 1 to 1")
    assert "messaging.destination.name" not in several.attributes
    assert "secret" not in single.to_json() + several.to_json()


def test_a_batch_names_the_system_of_its_source() -> None:
    """Kafka and its group, or another kind of source, which has no groups."""
    for feed, group in ((TracedFeed("kafka", "group"), "group"), (TracedFeed("queue"), None)):
        tracing = SpanListening(feed=feed)
        tracing.hooks.report(BatchStarted(batch(("articles", 0, 5))))
        tracing.hooks.report(BatchCommitted([], []))
        (span,) = tracing.batches
        assert span.attributes is not None
        assert span.attributes["messaging.system"] == feed.system
        assert span.attributes.get("messaging.consumer.group.name") == group


def test_a_batch_links_to_the_traces_of_its_articles() -> None:
    """Up to a limit. They are not its parents, because one batch has articles of many traces."""
    tracing = SpanListening(links_max=2)
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 1), ("articles", 0, 2), ("articles", 0, 3), parents=3)))
    tracing.hooks.report(BatchCommitted([], []))
    (span,) = tracing.batches
    assert span.parent is None
    assert [link.context.span_id for link in span.links] == [1, 2]
    assert {link.context.trace_id for link in span.links} == {int(TRACE, 16)}
    assert all(link.context.is_remote for link in span.links)
    assert span.links[0].context.trace_state.get("vendor") == "x"
    assert span.attributes is not None
    assert span.attributes["dupwatch.links_dropped"] == 1


def test_what_comes_in_pieces_is_an_attribute(tracing: SpanListening) -> None:
    """Stages done in pieces are attributes of the batch; outside of a batch they are dropped."""
    tracing.hooks.report(StageEnded("look_up", 1.0))
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 1))))
    tracing.hooks.report(StageEnded("look_up", 0.25))
    tracing.hooks.report(BatchCommitted([], []))
    (span,) = tracing.batches
    assert span.attributes is not None
    assert span.attributes["dupwatch.look_up.seconds"] == 0.25


def test_a_batch_that_was_given_up_is_an_error(tracing: SpanListening) -> None:
    """A batch that is open when the run ends is an error, too."""
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 1))))
    tracing.hooks.report(BatchAbandoned())
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 1))))
    tracing.listener.end_unfinished()
    given_up, cut_short = tracing.batches
    assert given_up.status.status_code is cut_short.status.status_code is StatusCode.ERROR
    assert given_up.attributes is not None
    assert given_up.attributes["error.type"] == "abandoned"
    tracing.listener.end_unfinished()
    assert len(tracing.batches) == 2


def test_batches_that_are_decoded_ahead_keep_their_times(tracing: SpanListening) -> None:
    """Each span begins with the decoding of its own batch, even after one that was given up before it began."""
    with report_stage(tracing.hooks, "decode"):
        pass
    time.sleep(0.01)
    with report_stage(tracing.hooks, "decode"):
        pass
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 1))))
    time.sleep(0.01)
    with report_stage(tracing.hooks, "decode"):
        pass
    tracing.hooks.report(BatchCommitted([], []))
    tracing.hooks.report(BatchAbandoned())
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 3))))
    tracing.hooks.report(BatchCommitted([], []))
    decoded = [span.start_time for span in tracing.spans if span.name == "decode"]
    first, third = tracing.batches
    assert [first.start_time, third.start_time] == decoded
    assert (third.start_time or 0) - (first.start_time or 0) > 15_000_000


def test_a_stage_that_fails_says_with_what_and_not_with_which_words(tracing: SpanListening) -> None:
    """The span has the type of the error, not its text, which may quote an article."""

    def fail(stage: AbstractContextManager[None]) -> None:
        with stage:
            raise SinkError("secret body")

    tracing.hooks.report(BatchStarted(batch(("articles", 0, 1))))
    with pytest.raises(SinkError):
        fail(report_stage(tracing.hooks, "emit"))
    tracing.listener.end_unfinished()
    (emit,) = [span for span in tracing.spans if span.name == "emit"]
    assert emit.status.status_code is StatusCode.ERROR
    assert emit.attributes is not None
    assert emit.attributes["error.type"] == "SinkError"
    assert not [span for span in tracing.spans if "secret" in span.to_json()]


@pytest.mark.parametrize("stage", ["poll", "decode"])
def test_what_belongs_to_no_batch_makes_no_span(tracing: SpanListening, stage: SinglePieceStage) -> None:
    """Neither waiting nor the decoding of a later batch makes a span."""
    tracing.hooks.report(BatchStarted(batch(("articles", 0, 1))))
    with report_stage(tracing.hooks, stage):
        pass
    tracing.hooks.report(BatchCommitted([], []))
    assert [span.name for span in tracing.spans] == ["process articles"]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Threads that were left behind end before another test is run."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(("tracing-close", "OtelBatch")):
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No OpenTelemetry variables; changes to its loggers are undone."""
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    logger = logging.getLogger("opentelemetry")
    handlers, propagate = list(logger.handlers), logger.propagate
    yield monkeypatch
    logger.handlers, logger.propagate = handlers, propagate


def judge_one(tracing: Tracing, parents: int = 0) -> None:
    """Make the span of one batch."""
    hooks = Hooks(tracing.spans)
    hooks.report(BatchStarted(batch(("articles", 0, 1), ("articles", 0, 2), parents=parents)))
    hooks.report(BatchCommitted([], []))


def test_a_collector_gets_the_spans(no_variables: pytest.MonkeyPatch) -> None:
    """Spans go by OTLP over HTTP; the last ones are sent when the run ends."""
    with collecting() as collector:
        tracing = tracing_to(f"{collector.endpoint}/", FEED, "1.2.3", 256)
        judge_one(tracing, parents=2)
        tracing.close(20)
        assert [span.name for span in collector.spans] == ["process articles"]
        assert len(collector.spans[0].links) == 2
        assert collector.services == {"dupwatch"}
        assert collector.paths == {"/v1/traces"}


def test_opentelemetrys_own_variables_hold(no_variables: pytest.MonkeyPatch) -> None:
    """Endpoint, service name, headers and sampling come from the variables."""
    with collecting() as collector:
        no_variables.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        no_variables.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=feeds")
        no_variables.setenv("OTEL_SERVICE_NAME", "feed-watch")
        no_variables.setenv("OTEL_SPAN_LINK_COUNT_LIMIT", "1")
        tracing = tracing_to(None, FEED, "1.2.3", 256)
        judge_one(tracing, parents=2)
        tracing.close(20)
        assert collector.services == {"feed-watch"}
        assert collector.headers["x-tenant"] == "feeds"
        assert len(collector.spans[0].links) == 1
        for name, value in (("OTEL_TRACES_SAMPLER", "always_off"), ("OTEL_SDK_DISABLED", "true")):
            with no_variables.context() as inner:
                inner.setenv(name, value)
                tracing = tracing_to(None, FEED, "1.2.3", 256)
                judge_one(tracing)
                tracing.close(20)
        assert len(collector.spans) == 1


@pytest.mark.parametrize("refuses", [True, False])
def test_a_collector_that_takes_nothing_delays_nothing(no_variables: pytest.MonkeyPatch, *, refuses: bool) -> None:
    """Spans never delay the run, and its end waits only for the given time."""
    # What is left behind gives up soon.
    no_variables.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with collecting() as collector:
        if refuses:
            collector.status = 503
        else:
            collector.answering.clear()
        tracing = tracing_to(collector.endpoint, FEED, "1.2.3", 256)
        began_s = time.monotonic()
        for _ in range(3_000):
            judge_one(tracing)
        handed_over_s = time.monotonic() - began_s
        tracing.close(0.2)
        # Each of a hundred exports would have waited a second at least.
        assert handed_over_s < 30
        assert time.monotonic() - began_s < 45


@pytest.mark.parametrize("closes", [True, False])
def test_the_process_ends_although_the_collector_hangs(*, closes: bool) -> None:
    """Nothing that OpenTelemetry leaves behind delays the exit, even if tracing is not closed."""
    work = (
        "import sys; from consumer.telemetry.spans import tracing_to\n"
        "from consumer.telemetry.trace_context import TracedFeed\n"
        "from consumer.model.hooks import Hooks\n"
        "from consumer.model.record import RawBatch\n"
        "from consumer.pipeline.batches import BatchStarted, BatchCommitted\n"
        "tracing = tracing_to(sys.argv[1], TracedFeed('kafka'), '1', 1)\n"
        "hooks = Hooks(tracing.spans)\n"
        "hooks.report(BatchStarted(RawBatch(()))); hooks.report(BatchCommitted([], []))\n"
        "sys.argv[2:] and tracing.close(0.2)"
    )
    with collecting() as collector:
        collector.answering.clear()
        ended = subprocess.run(
            [sys.executable, "-c", work, collector.endpoint, *(["close"] if closes else [])],
            capture_output=True, text=True, check=False, timeout=120,
            env=os.environ | {"OTEL_EXPORTER_OTLP_TIMEOUT": "300"},
        )  # fmt: skip
        assert (ended.returncode, ended.stdout) == (0, "")
        assert ("did not accept the last spans within 0.2 s" in ended.stderr) is closes


class Failing(InMemorySpanExporter):
    """Rejects spans while ``failing``."""

    failing = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Fail in the worst way, or take them."""
        if self.failing:
            raise OSError("no route")
        return super().export(spans)


def test_that_spans_are_lost_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """The loss is logged once, and so is its end; an exporter that raises does no harm."""
    exporter = Failing()
    with caplog.at_level(logging.WARNING, logger="dupwatch"):
        tracing = Tracing(exporter, FEED, "1.2.3", 256)
        for _ in range(3):
            judge_one(tracing)
            tracing._provider.force_flush()
        assert [record.message for record in caplog.records if "does not accept spans" in record.message] == [
            "The collector does not accept spans; they are lost until it does: OSError('no route')"
        ]
        exporter.failing = False
        judge_one(tracing)
        tracing.close(20)
    assert caplog.records[-1].message == "The collector accepts spans again"
    assert len(exporter.get_finished_spans()) == 1


def test_a_request_is_a_span_in_the_trace_of_its_client() -> None:
    """With route and status, and neither path nor texts; a client that sends none begins a trace."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    hooks = Hooks(RequestSpans(provider.get_tracer("test")))
    parent = f"00-{TRACE}-00f067aa0ba902b7-01"
    hooks.report(RequestEnded("/v1/check", "POST", 200, 5_000, 0.5, "one", parent))
    hooks.report(RequestEnded("/v1/stats", "GET", 503, 5_000, 0.5, "two", None))
    answered, failed = exporter.get_finished_spans()
    assert (answered.name, answered.kind) == ("POST /v1/check", SpanKind.SERVER)
    assert answered.attributes == {
        "http.request.method": "POST",
        "http.route": "/v1/check",
        "http.response.status_code": 200,
        "dupwatch.request_id": "one",
    }
    assert (answered.start_time, answered.end_time) == (5_000, 500_005_000)
    assert answered.parent is not None
    assert f"{answered.parent.trace_id:x}" == TRACE.lstrip("0")
    assert (failed.parent, failed.status.status_code) == (None, StatusCode.ERROR)
