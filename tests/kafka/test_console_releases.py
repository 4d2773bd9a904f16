"""Releases of the console over topics: several at once, and what becomes of each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.console.intake.sending import PendingRelease
from consumer.kafka.client_settings import TopicsAddress
from consumer.kafka.source import offset_reader
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.store_tools.releases import Attribution
from consumer.wiring import console_releases
from consumer.wiring.console_releases import SinkReleases, event_sinks
from consumer.wiring.console_store import LazyStore
from consumer.wiring.release_run import FlagReleaser
from consumer.wiring.source_records import SourceRecords
from storage.clock import now_ms
from tests.cli.command import text
from tests.kafka.reading import delete_records, delete_topic
from tests.kafka.running import running
from tests.kafka.test_release import flagged_version, last, without_origins
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers

COPIES = 6


@pytest.fixture
def topics(kafka_address: str, tmp_path: Path) -> Topics:
    """An article and its copies, of which each is flagged; one partition."""
    made = make_topics(kafka_address, 1)
    send(made, [(f"a{number}", article(text(1))) for number in range(COPIES + 1)])
    with running(made, f"lmdb:{tmp_path / 'store'}", tmp_path, "--set", "kafka.unique=true") as consumer:
        wait_for_count(made, ["verdicts", "unique"], COPIES + 1)
        assert consumer.stop() == 0, consumer.log.read_text()
    return made


@pytest.fixture
def config(topics: Topics, tmp_path: Path) -> Config:
    """What a console is configured with."""
    named = {"source": topics.url(), "sink": topics.sink_url(), "store": f"lmdb:{tmp_path / 'store'}"}
    return load_config(None, {"kafka": {"unique": True}} | {name: {"url": url} for name, url in named.items()})


@pytest.fixture
def releases(config: Config) -> Iterator[SinkReleases]:
    """Over the store of the run."""
    with_store = opened(config)
    yield with_store
    with_store.close()


def opened(config: Config) -> SinkReleases:
    """Releases into the store of a configuration."""
    sink, _ = event_sinks(config, Hooks(), lambda: None)
    return SinkReleases(config, LazyStore(config, lambda _: None, None), now_ms, sink, lambda: None)


def pending(topics: Topics, *numbers: int, is_patient: bool = True) -> list[PendingRelease]:
    """Releases of copies."""
    names = [f"a{number}" for number in numbers]
    return [PendingRelease(name, flagged_version(topics, name), Attribution("Ann"), is_patient) for name in names]


def sent(topics: Topics) -> list[str]:
    """The ids of the releases in the topic of flags, in order."""
    events = [message.content for message in read_all(topics, topics.sink("duplicates"))]
    return [event["id"] for event in events if event["outcome"] == "unique"]


def no_search(*_: object) -> Iterator[None]:
    """In place of what reads the topic of flags."""
    raise AssertionError("the topic of flags was read")


def nothing_to_do(*_: object) -> None:
    """In place of what carries out releases."""
    raise AssertionError("there was something to release")


def test_releases_are_carried_out_together(
    releases: SinkReleases, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version but those that cannot be released; one whose record was deleted stays out of the clean feed."""
    monkeypatch.setattr(SourceRecords, "_flags", no_search)
    # The first one loads words and engine.
    monkeypatch.setattr(console_releases, "GATHER_S", 60.0)
    delete_records(topics.address, topics.source, 0, 2)
    wanted = pending(topics, 1, 2, 3)
    unknown = PendingRelease("nobody", "00" * 16, Attribution(), is_patient=True)
    outcomes = releases.release([unknown, *wanted, unknown._replace(version="zz")])
    assert [type(outcome) for outcome in outcomes] == [ConfigError, type(None), type(None), type(None), ConfigError]
    assert sent(topics) == ["a1", "a2", "a3"]
    assert [last(topics, f"a{number}").value is None for number in (1, 2, 3, 4)] == [True, False, False, True]


def test_what_cannot_be_released_needs_no_brokers(config: Config) -> None:
    """It is refused for good, whatever becomes of the sink."""
    away = config.model_copy(update={"sink": config.sink.model_copy(update={"url": "kafka://127.0.0.1:1/p"})})
    releases = opened(away)
    unknown = PendingRelease("nobody", "00" * 16, Attribution(), is_patient=True)
    assert [type(outcome) for outcome in releases.release([unknown])] == [ConfigError]
    releases.close()


def test_a_version_that_is_wanted_twice_is_released_once_a_call(releases: SinkReleases, topics: Topics) -> None:
    """The next call finds it released, and sends the same event."""
    wanted = pending(topics, 1, 1, 2)
    assert releases.release(wanted) == [None]
    assert releases.release(wanted[1:]) == [None, None]
    assert sent(topics) == ["a1", "a1", "a2"]


def test_what_takes_long_is_left_to_the_next_call(
    releases: SinkReleases, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least one is released: a claim lasts only so long."""
    monkeypatch.setattr(console_releases, "GATHER_S", -1.0)
    assert releases.release(pending(topics, 1, 2, 3)) == [None]
    assert sent(topics) == ["a1"]


def test_a_record_that_cannot_be_read_now_is_waited_for(
    releases: SinkReleases, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found before is released, the next is not begun. Without patience all are, and the clean feed waits."""
    wanted = pending(topics, 1, 2, 3)
    assert releases.release(wanted[:1]) == [None]
    delete_topic(topics.address, topics.source)
    monkeypatch.setattr(offset_reader, "_QUIET_S", 0.1)
    monkeypatch.setattr(console_releases, "GATHER_S", 60.0)
    with monkeypatch.context() as changed:
        changed.setattr(FlagReleaser, "release", nothing_to_do)
        (outcome,) = releases.release(wanted[1:])
    assert isinstance(outcome, SourceError)
    assert str(outcome).startswith("'a2' cannot be sent to the clean feed yet: its record at")
    assert sent(topics) == ["a1"]
    assert releases.release(pending(topics, 2, 3, is_patient=False)) == [None, None]
    assert sent(topics) == ["a1", "a2", "a3"]
    assert last(topics, "a2").value is None


def test_records_without_an_origin_are_searched_for_once(
    config: Config, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all releases that come next, in one reading of the topic of flags."""
    earlier = without_origins(config.store.url, f"lmdb:{tmp_path / 'earlier'}")
    searches: list[object] = []
    flags = SourceRecords._flags

    def noted(records: SourceRecords, topic: TopicsAddress, time_ms: int) -> Iterator[RawRecord]:
        searches.append(topic)
        return flags(records, topic, time_ms)

    monkeypatch.setattr(SourceRecords, "_flags", noted)
    monkeypatch.setattr(console_releases, "GATHER_S", 60.0)
    releases = opened(load_config(None, config.model_dump() | {"store": {"url": earlier}}))
    wanted = pending(topics, 1, 2, 3, 4, 5)
    releases.prepare([each[:2] for each in wanted])
    assert searches == []
    assert releases.release(wanted[:2]) == [None, None]
    assert releases.release(wanted[2:]) == [None] * 3
    assert len(searches) == 1
    assert all(last(topics, f"a{number}").value is not None for number in range(1, 6))
    releases.close()
