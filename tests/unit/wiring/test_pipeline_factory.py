"""The factory of pipelines: what it takes from the configuration, and how it names the source of a bad record."""

import io

import pytest

from consumer.config.loading import load_config
from consumer.lifecycle.stopping import Stopping
from consumer.model.article import Reason
from consumer.model.errors import Abandoned, BadRecord
from consumer.model.hooks import Hooks
from consumer.model.record import Message, Position, RawRecord
from consumer.pipeline.arrivals import StreamFeed
from consumer.pipeline.journal import NoJournal
from consumer.sinks.file import StreamSink
from consumer.sources.file import FileSource
from consumer.wiring import parts
from consumer.wiring.pipeline_factory import Control, Judging, Route, build_pipeline, burier, interruptible_detector
from storage.memory import MemoryStore
from tests.builders import TIME_MS

FAULT = BadRecord(Reason.INVALID_JSON, "the record is not JSON")


def record(message: Message | None) -> RawRecord:
    """The third record of a feed."""
    return RawRecord(3, 40, b"{", 1, None, None, Position(), message)


def test_a_dead_letter_names_the_file_or_the_partition() -> None:
    """So that the record can be found again."""
    bury = burier("feed.jsonl")
    assert bury(record(None), FAULT).position.source == "feed.jsonl"
    message = Message("articles", 2, 40, b"key", (), TIME_MS)
    assert bury(record(message), FAULT).position.source == "articles[2]"


def test_versions_are_swept_after_the_configured_lifetime() -> None:
    """The window and the slack."""
    config = load_config(None, {"judge": {"window_s": 100}, "store": {"slack_s": 20}})
    lexicon = parts.lexicon_of(config)
    settings = parts.judge_settings(config, lexicon)
    pipeline = build_pipeline(
        config,
        Judging(
            settings,
            parts.fingerprinting(config, settings, lexicon),
            interruptible_detector(MemoryStore(), settings, lambda: None),
        ),
        Route(
            FileSource(None, parts.read_limits(config), Position()),
            parts.record_decoder(config),
            StreamFeed(lambda: TIME_MS),
            StreamSink(io.BytesIO(), io.BytesIO(), emit="none"),
            NoJournal(),
        ),
        Control(Stopping()),
        Hooks(),
    )
    assert pipeline.keep_ms == 120_000


def test_a_detector_can_be_interrupted_before_each_call_of_the_store() -> None:
    """A batch whose partitions were revoked is not judged to its end."""
    config = load_config(None, {})
    settings = parts.judge_settings(config, parts.lexicon_of(config))

    def refuse() -> None:
        raise Abandoned("revoked")

    detector = interruptible_detector(MemoryStore(), settings, refuse)
    with pytest.raises(Abandoned, match="revoked"):
        detector.store.stats()
