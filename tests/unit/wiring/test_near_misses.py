"""Near misses are looked for where they are asked for, and where they can be sent."""

from collections.abc import Mapping
from typing import Any

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.judge.near_misses import NearMisses
from consumer.kafka.opening import message_routing
from consumer.lifecycle.interruption import UNINTERRUPTED
from consumer.model.errors import ConfigError
from consumer.model.near_miss import SCHEMA as NEAR_MISS
from consumer.wiring.components import judge_settings, lexicon_of
from consumer.wiring.feeds import sink_opening
from consumer.wiring.kafka_parts import sink_topics
from consumer.wiring.pipeline_factory import interruptible_detector
from storage.memory import MemoryStore
from tests.builders import answers

ASKED = {"near_miss_share": 0.02, "near_miss_margin": 0.1}
TOPICS = "kafka://127.0.0.1:1/prefix"


def config_of(sink: str, kafka: Mapping[str, Any], **sections: Any) -> Config:  # noqa: ANN401  # sections as in a file
    """The configuration of a run to this sink."""
    return load_config(None, {"sink": {"url": sink}, "kafka": kafka} | sections)


def drawn_with(config: Config) -> NearMisses | None:
    """What the judge of a run draws near misses with."""
    settings = judge_settings(config, lexicon_of(config))
    return interruptible_detector(MemoryStore(), settings, UNINTERRUPTED, config).near_misses


def test_by_default_nothing_is_looked_for() -> None:
    """A topic that is not there yet would keep consumers from starting."""
    config = config_of(TOPICS, {})
    assert drawn_with(config) is None
    assert "prefix.near-misses" not in sink_topics(config).written_topics


def test_topics_get_them_where_they_are_asked_for() -> None:
    """With the configured share and margin; the topic has to be there."""
    config = config_of(TOPICS, ASKED)
    near_misses = drawn_with(config)
    assert near_misses is not None
    assert (near_misses.share, near_misses.margin, near_misses.sampled_in) == (0.02, 0.1, 50.0)
    assert "prefix.near-misses" in sink_topics(config).written_topics


def test_other_sinks_do_not() -> None:
    """They would be found in vain."""
    assert drawn_with(config_of("verdicts.jsonl", ASKED)) is None


@pytest.mark.parametrize(("events", "named"), [("plain", set()), ("cloudevents", {"ce_type"})])
def test_their_headers_are_as_configured(events: str, named: set[str]) -> None:
    """As those of verdicts are."""
    config = config_of(TOPICS, ASKED | {"events": events})
    messages = message_routing(sink_topics(config), sink_opening(config, feed="articles"))
    (answer,) = answers(b"{}")
    for headers in (messages.headers_of(answer), messages.side_headers_of(answer, NEAR_MISS)):
        assert {name for name, _ in headers if name == "ce_type"} == named


def test_plain_simhash_is_told_that_it_has_none() -> None:
    """It compares no similarities."""
    with pytest.raises(ConfigError, match=r"near_miss_share has no effect with verify = false"):
        config_of(TOPICS, ASKED, judge={"verify": False, "lane1": False})
