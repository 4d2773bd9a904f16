"""The factory of pipelines: what it takes from the configuration."""

import math

import pytest

from consumer.config.loading import load_config
from consumer.files.lines import Position
from consumer.files.sinks import NullSink
from consumer.files.source import FileSource
from consumer.judge.binding import Binding
from consumer.lifecycle.interruption import UNINTERRUPTED, Drain
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks
from consumer.pipeline.arrivals import StreamArrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import NoJournal
from consumer.wiring import components
from consumer.wiring.pipeline_factory import (
    Control,
    JudgingParts,
    PipelinePorts,
    build_pipeline,
    interruptible_detector,
)
from storage.memory import MemoryStore
from tests.builders import TIME_MS


def test_versions_are_swept_after_the_configured_lifetime() -> None:
    """The window and the slack."""
    config = load_config(None, {"judge": {"window_s": 100}, "store": {"slack_s": 20}})
    lexicon = components.lexicon_of(config)
    settings = components.judge_settings(config, lexicon)
    pipeline = build_pipeline(
        config,
        JudgingParts(
            Binding(settings),
            components.fingerprinting(config, Binding(settings), lexicon),
            interruptible_detector(MemoryStore(), settings, UNINTERRUPTED, config),
        ),
        PipelinePorts(
            FileSource(None, components.read_limits(config), Position()),
            components.file_decoder(config),
            StreamArrivals(lambda: TIME_MS),
            NullSink(),
            DeadLetterPolicy(config.source.url, NullSink()),
            NoJournal(),
        ),
        Control(StopSignal()),
        Hooks(),
    )
    assert pipeline.expiry.keep_ms == 120_000


def test_a_detector_can_be_interrupted_before_each_call_of_the_store() -> None:
    """A batch whose partitions were revoked is not judged to its end."""
    config = load_config(None, {})
    settings = components.judge_settings(config, components.lexicon_of(config))

    stopping = StopSignal()
    stopping.requested_at_s = -math.inf
    detector = interruptible_detector(MemoryStore(), settings, Drain(stopping, 0), config)
    with pytest.raises(Abandoned, match="asked to stop"):
        detector.store.stats()
