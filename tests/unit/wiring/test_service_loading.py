"""Where verdicts on requests go, and what is refused."""

import io
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import dupwatch
from consumer.config.config import Config
from consumer.files.kind import NOWHERE_URL
from consumer.files.sinks import NullSink
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import ConfigError, Fatal, SinkError, Unanswered
from consumer.model.hooks import Hooks, Outage
from consumer.model.limits import ReadLimits
from consumer.pipeline.feed_kind import Streams
from consumer.service.answering import AnsweringSink
from consumer.service.inbox import Inbox, InboxLimits
from consumer.wiring.pipeline_factory import JudgingParts
from consumer.wiring.service_loading import build_requests_pipeline, build_sink
from consumer.wiring.stores import opened_store
from consumer.workers.pool import InlineFingerprinting
from storage.clock import now_ms
from tests.builders import answers
from tests.unit.service.gate import Gate
from tests.unit.service.serving import WAIT_S

EVENT = b'{"schema":"dupwatch.verdict/1"}'


def built(url: str, out: io.BytesIO, **sections: Any) -> AnsweringSink:  # noqa: ANN401  # as Config takes them
    """The sink with this URL."""
    config = Config(sink={"url": url, "emit": "all"}, **sections)  # type: ignore[arg-type]  # pydantic makes the section
    return build_sink(config, Streams(out, io.BytesIO()), Hooks(), lambda: None)


@pytest.mark.parametrize(("url", "written"), [("-", EVENT + b"\n"), (NOWHERE_URL, b"")])
def test_standard_output_and_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, written: bytes) -> None:
    """Nowhere only where it is asked for by its name; it makes no file of that name."""
    monkeypatch.chdir(tmp_path)
    out = io.BytesIO()
    sink = built(url, out)
    sink.release(answers(EVENT)[0])
    sink.close()
    assert (out.getvalue(), list(tmp_path.iterdir())) == (written, [])


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("verdicts.jsonl.gz", ConfigError, "as plain text only"),
        ("feed.jsonl", SinkError, "is not a file of verdicts"),
        ("store/data.mdb", ConfigError, "belongs to the store"),
        ("none/verdicts.jsonl", SinkError, "create the directory"),
    ],
)
def test_a_file_that_must_not_be_written_is_refused(tmp_path: Path, name: str, error: type[Fatal], why: str) -> None:
    """Whatever is in it stays."""
    store = f"lmdb:{tmp_path / 'store'}"
    with opened_store(Config(store={"url": store})):  # type: ignore[arg-type]  # pydantic makes the section
        pass
    (tmp_path / "feed.jsonl").write_bytes(b'{"id": "a", "body": "b"}')
    with pytest.raises(error, match=why):
        built(str(tmp_path / name), io.BytesIO(), store={"url": store})
    assert (tmp_path / "feed.jsonl").read_bytes() == b'{"id": "a", "body": "b"}'


def test_exactly_once_is_refused() -> None:
    """There are no offsets to commit with the verdicts."""
    with pytest.raises(ConfigError, match="at least once"):
        built("kafka://127.0.0.1:1/dupwatch", io.BytesIO(), kafka={"delivery": "exactly-once"})


def test_a_batch_is_given_up_when_there_is_no_time_left() -> None:
    """The store is away, and the service was asked to stop: who waits is told, and the process ends."""
    hooks, stopping, away = Hooks(), StopSignal(interrupts=False), threading.Event()
    hooks.on(Outage, lambda outage: away.set() if outage.reason else None)
    interruption = Drain(stopping, 0.1)
    inbox = Inbox(0, InboxLimits(10, 10_000), ReadLimits(), hooks.report)
    gate = Gate()
    gate.is_away = True
    with dupwatch.open("memory:") as window:
        detector = Detector(gate.around(window._store), window._detector.settings, now_ms)
        judging = JudgingParts(Binding(detector.settings), InlineFingerprinting(window._engine), detector)
        pipeline = build_requests_pipeline(Config(), judging, inbox, AnsweringSink(NullSink()), interruption, hooks)
        running = threading.Thread(target=pipeline.run, daemon=True)
        running.start()
        submission = inbox.put([b'{"id": "a", "body": "b"}'])
        assert away.wait(WAIT_S)
        stopping.requested_by, stopping.requested_at_s = 15, time.monotonic()
        inbox.close()
        running.join(WAIT_S)
        assert not running.is_alive()
    inbox.end()
    with pytest.raises(Unanswered):
        submission.replies.result(WAIT_S)
