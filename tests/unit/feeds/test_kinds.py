"""The registry of sources and sinks: which URLs name which kind, and which pairs make a run."""

import pytest

from consumer.config.loading import load_config
from consumer.feeds.kinds import KINDS, pair_fault, sink_of, source_of
from consumer.files.kind import FILE, NOWHERE, STREAM
from consumer.kafka.kind import KAFKA
from consumer.model.errors import ConfigError
from consumer.pipeline.feed_kind import FeedKind
from consumer.wiring.banks import read_banks
from consumer.wiring.feeds import check_settings
from consumer.wiring.lasting_run import traced_feed

TOPICS, FILES = "kafka://127.0.0.1:1/articles", "feed.jsonl"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (FILES, FILE),
        ("./nowhere:", FILE),
        ("-feed", FILE),
        ("two\nlines", FILE),
        ("-", STREAM),
        (TOPICS, KAFKA),
        ("kafka://", KAFKA),
        ("nowhere:", NOWHERE),
    ],
)
def test_a_url_names_one_kind(url: str, kind: FeedKind) -> None:
    """Also one whose rest is wrong, which the kind itself says."""
    assert [found for found in KINDS if found.matches(url)] == [kind]


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:1", "lmdb://store", "a://b"])
def test_another_url_is_refused_with_the_forms_of_all(url: str) -> None:
    """As a source and as a sink."""
    for section, name in (("source", "TOPIC"), ("sink", "PREFIX")):
        with pytest.raises(ConfigError, match=rf"{section}\.url: write it as a file, - or kafka://HOST:PORT/{name} "):
            load_config(None, {section: {"url": url}})
    with pytest.raises(ConfigError, match=r"banks\.url: write it as a file or kafka://HOST:PORT/PREFIX$"):
        read_banks(load_config(None, {"banks": {"url": url}}))


def test_spans_call_a_source_by_its_kind() -> None:
    """Only topics have a group."""
    assert traced_feed(load_config(None, {"source": {"url": TOPICS}})) == ("kafka", "dupwatch")
    assert traced_feed(load_config(None, {"source": {"url": FILES}})) == ("file", None)


def test_nowhere_is_no_source() -> None:
    """There is nothing to read."""
    with pytest.raises(ValueError, match="write it as a file, - or kafka://HOST:PORT/TOPIC"):
        source_of("nowhere:")
    assert sink_of("nowhere:") is NOWHERE.sink


@pytest.mark.parametrize("source", [FILES, "-", TOPICS])
@pytest.mark.parametrize("sink", ["verdicts.jsonl", "-", "kafka://127.0.0.1:1/judged", "nowhere:"])
def test_a_pair_that_makes_no_run_is_refused_in_words(source: str, sink: str) -> None:
    """Files are judged into files and streams, topics into topics and streams."""
    refused = {
        (FILES, "kafka"): "a kafka:// sink needs a kafka:// source",
        (FILES, "nowhere"): "is a sink of dupwatch serve",
        (TOPICS, "verdicts.jsonl"): "a run over topics writes to topics or to standard output",
        (TOPICS, "nowhere"): "a run over topics writes to topics or to standard output",
    }
    why = refused.get((TOPICS if source == TOPICS else FILES, sink.partition(":")[0]))
    found = pair_fault(source, sink, exactly_once=False)
    assert (found is None) if why is None else (found is not None and why in found)


@pytest.mark.parametrize(
    ("source", "sink", "why"),
    [
        (TOPICS, "kafka://127.0.0.1:1/judged", None),
        (TOPICS, "-", "needs a kafka:// sink: its transactions hold the offsets"),
        (FILES, "verdicts.jsonl", None),
        ("-", "-", None),
    ],
)
def test_exactly_once_takes_a_pair(source: str, sink: str, why: str | None) -> None:
    """A run over a file takes no notice: it has a checkpoint, as with any other setting of topics."""
    found = pair_fault(source, sink, exactly_once=True)
    assert (found is None) if why is None else (found is not None and found.endswith(why))


@pytest.mark.parametrize("section", ["source", "sink"])
def test_the_settings_of_a_kind_are_checked(section: str) -> None:
    """Time limits too; for files, which take none of these, they do not matter."""
    kafka = {"revoke_s": 290.0, "grace_s": 400.0}
    with pytest.raises(ConfigError, match=r"kafka\.revoke_s is 290"):
        check_settings(load_config(None, {section: {"url": TOPICS}, "kafka": kafka}), create=False)
    check_settings(load_config(None, {"source": {"url": FILES}, "kafka": kafka}))


def test_a_sink_is_one_prefix() -> None:
    """As found before a run begins, and without asking anybody."""
    with pytest.raises(ConfigError, match="names several prefixes; name one"):
        check_settings(load_config(None, {"sink": {"url": "kafka://127.0.0.1:1/a,b"}}), create=False)
