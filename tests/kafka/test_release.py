"""``dupwatch release`` over topics: the article is sent to the clean feed, or the error says first why not."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from confluent_kafka.admin import AdminClient

from consumer.config.loading import load_config
from consumer.wiring.stores import opened_store
from storage.records import StoredVersion, Version
from tests.cli.command import Outcome, json_lines, run_process, text
from tests.kafka.reading import delete_records, delete_topic, make_topic, until
from tests.kafka.running import running
from tests.kafka.sink_parts import end_of
from tests.kafka.test_run import article
from tests.kafka.topics import Seen, Topics, make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers

Release = Callable[..., Outcome]
HEADERS = [("own", b"\xff\0")]
FLAGGED = ("plain", "replaced", "gone", "again")
SIMPLIFIED = "气象台今天早晨发布通知说，本周末将有一次明显的降温过程，软件工程师出行时请注意添加衣物并留意道路结冰。"
TRADITIONAL = "氣象臺今天早晨發布通知說，本週末將有一次明顯的降溫過程，軟體工程師出行時請注意添加衣物並留意道路結冰。"


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, one partition each."""
    return make_topics(kafka_address, 1)


@pytest.fixture
def release(topics: Topics, tmp_path: Path) -> Release:
    """The command, over a feed in which each of ``FLAGGED`` repeats the article before it."""
    store = f"lmdb:{tmp_path / 'store'}"
    feed: list[tuple[str, object]] = []
    for seed, name in enumerate(FLAGGED):
        feed += [(f"original-{name}", article(text(seed))), (name, article(text(seed)))]
    feed += [("replaced", article(text(50))), ("retracted-original", article(text(60)))]
    feed += [("retracted", article(text(60))), ("retracted", None)]
    feed += [("original-converted", article(SIMPLIFIED)), ("converted", article(TRADITIONAL))]
    feed += [("returning-original", article(text(70)))]
    feed += [("returning", article(text(seed))) for seed in (70, 71, 70)]
    send(topics, feed, HEADERS)
    with running(topics, store, tmp_path, "--set", "kafka.unique=true") as consumer:
        wait_for_count(topics, ["verdicts"], len(feed))
        wait_for_count(topics, ["unique"], len(feed))
        assert consumer.stop() == 0, consumer.log.read_text()

    def command(name: str, *more: str, sink: bool = True) -> Outcome:
        where = ("--sink", topics.sink_url(), "--set", "kafka.unique=true") if sink else ()
        return run_process("release", name, "--store", store, *where, *more)

    return command


def last(topics: Topics, name: str) -> Seen:
    """The last message of an id in the clean feed."""
    return [message for message in read_all(topics, topics.sink("unique")) if message.key == name.encode()][-1]


def flagged_version(topics: Topics, name: str) -> str:
    """The version of an article that was flagged."""
    flags = (message.content for message in read_all(topics, topics.sink("duplicates")) if message.key == name.encode())
    return str(next(flag["version"] for flag in flags if flag["outcome"] == "duplicate"))


def without_origins(store: str, copy: str) -> str:
    """Copy a store as an earlier version of dupwatch would have written it; the URL of the copy."""
    with opened_store(load_config(None, {"store": {"url": store}}), readonly=True) as opened:
        settings, entries = opened.settings() or b"", list(opened.scan())
    with opened_store(load_config(None, {"store": {"url": copy}})) as opened:
        opened.agree(settings)
        for entry in entries:
            if isinstance(entry, StoredVersion):
                record = msgspec.structs.replace(entry.record, feed=None)
                opened.create([Version(record, None)])
                opened.add([record])
                opened.settle([(record.reference, entry.verdict or b"")])
    return copy


def test_a_copy_in_the_other_script_goes_back_as_it_was_written(topics: Topics, release: Release) -> None:
    """Its version is that of the text as written, which is what is found in the topic."""
    assert last(topics, "converted").value is None
    ended = release("converted", "--yes")
    assert (ended.code, ended.err) == (0, ""), ended.err
    assert TRADITIONAL in (last(topics, "converted").value or b"").decode()


def test_a_released_article_goes_back_to_the_clean_feed(topics: Topics, release: Release) -> None:
    """Unchanged: bytes, headers and time. The command says so first; a dry run says it and sends nothing."""
    assert last(topics, "plain").value is None
    dry = release("plain", "--dry-run")
    assert dry.code == 0, dry.err
    assert f"sends the article to {topics.prefix}.unique again" in dry.out.decode()
    assert last(topics, "plain").value is None
    ended = release("plain", "--yes")
    assert (ended.code, ended.err) == (0, ""), ended.err
    original = next(message for message in read_all(topics, topics.source) if message.key == b"plain")
    notice = (
        f"A release sends the article to {topics.prefix}.unique again, "
        f"from {topics.source} [0] offset {original.offset}."
    )
    assert notice in " ".join(ended.out.decode().split())
    back = last(topics, "plain")
    time = ("dupwatch-timestamp-ms", b"%d" % original.timestamp_ms)
    assert (back.value, back.headers) == (original.value, [*original.headers, time])
    events = [message.content for message in read_all(topics, topics.sink("duplicates")) if message.key == b"plain"]
    assert [event["outcome"] for event in events] == ["duplicate", "unique"]
    # Again it sends the same again, and nothing is changed.
    assert release("plain", "--yes", "--json").code == 0
    assert last(topics, "plain").value == original.value


def test_where_there_is_no_way_back_it_is_said_first(topics: Topics, release: Release) -> None:
    """Each reason in a sentence before anything is done; the flag is undone all the same, and nothing else is sent."""
    newer = last(topics, "replaced").value
    for name in ("replaced", "retracted"):
        for more in (("--dry-run",), ("--yes",)):
            ended = release(name, "--version", flagged_version(topics, name), *more)
            assert ended.code == 0, ended.err
            assert f"cannot be sent to {topics.prefix}.unique: a later version or a retraction" in ended.err
    assert last(topics, "replaced").value == newer is not None
    assert last(topics, "retracted").value is None
    other = release("gone", "--dry-run", "--set", 'source.fields={body="title"}')
    assert "is not this version, as decoded with these settings" in other.err
    delete_records(topics.address, topics.source, 0, end_of(topics.address, topics.source))
    ended = release("gone", "--yes", "--json")
    assert (ended.code, json_lines(ended.out)[0]["outcome"]) == (0, "unique")
    assert "no longer exists" in " ".join(ended.err.split())
    assert last(topics, "gone").value is None
    # Without a topic of clean articles there is nothing to be said of it.
    assert "no longer exists" not in release("again", "--yes", sink=False).err


def test_the_record_is_read_at_its_origin(topics: Topics, release: Release) -> None:
    """Of content that returned it is that of the last delivery. The topic of flags, which is empty, is not needed."""
    delete_records(topics.address, topics.sink("duplicates"), 0, end_of(topics.address, topics.sink("duplicates")))
    assert last(topics, "returning").value is None
    for name in ("again", "returning"):
        origin = [message for message in read_all(topics, topics.source) if message.key == name.encode()][-1]
        ended = release(name, "--yes")
        assert (ended.code, ended.err) == (0, "")
        assert f"from {topics.source} [0] offset {origin.offset}." in " ".join(ended.out.decode().split())
        assert last(topics, name).value == origin.value


def test_what_lies_at_the_origin_of_a_topic_made_anew_is_not_sent(topics: Topics, release: Release) -> None:
    """Neither another article nor another text of the same one, though the topic has the record elsewhere."""
    moved = {message.key: message.offset for message in read_all(topics, topics.source)}
    records = [("other", article(text(80)))] * (max(moved.values()) + 1)
    records[moved[b"again"]] = ("again", article(text(81)))
    records += [("plain", article(text(0))), ("again", article(text(3)))]
    delete_topic(topics.address, topics.source)
    until(lambda: topics.source not in AdminClient({"bootstrap.servers": topics.address}).list_topics().topics)
    make_topic(topics.address, 1, topics.source)
    send(topics, records)
    for name in ("plain", "again"):
        ended = release(name, "--yes")
        assert ended.code == 0
        where = f"the record at {topics.source} [0] offset {moved[name.encode()]} is not this version"
        assert where in " ".join(ended.err.split())
        assert last(topics, name).value is None


def test_a_topic_that_is_gone_is_named(topics: Topics, release: Release) -> None:
    """The flag is undone all the same."""
    delete_topic(topics.address, topics.source)
    ended = release("plain", "--yes", "--json")
    assert (ended.code, json_lines(ended.out)[0]["outcome"]) == (0, "unique")
    assert f"there is no topic {topics.source} at {topics.address}" in " ".join(ended.err.split())
    assert last(topics, "plain").value is None


def test_a_record_without_an_origin_is_searched_for(topics: Topics, release: Release, tmp_path: Path) -> None:
    """In the topic of flags, as long as earlier versions of dupwatch have written records of the window."""
    earlier = ("--store", without_origins(f"lmdb:{tmp_path / 'store'}", f"lmdb:{tmp_path / 'earlier'}"))
    ended = release("plain", "--yes", *earlier)
    assert (ended.code, ended.err) == (0, "")
    original = next(message for message in read_all(topics, topics.source) if message.key == b"plain")
    assert last(topics, "plain").value == original.value
    delete_records(topics.address, topics.sink("duplicates"), 0, end_of(topics.address, topics.sink("duplicates")))
    ended = release("again", "--yes", *earlier)
    assert f"none of its flags in {topics.prefix}.duplicates says where its record is" in " ".join(ended.err.split())
    assert last(topics, "again").value is None
