"""``dupwatch serve`` with topics as its sink: what a consumer would send, and the clean feed."""

import json
from pathlib import Path

import pytest

from tests.cli.command import FAST, run_process, text
from tests.cli.serve.service import serving
from tests.cli.serve.test_banks import ask, banks_of
from tests.kafka.reading import until
from tests.kafka.running import running
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, one partition each."""
    return make_topics(kafka_address, 1)


def values(topics: Topics, name: str) -> list[tuple[str, bytes | None]]:
    """The keys and values of a topic of the sink."""
    return [((message.key or b"").decode(), message.value) for message in read_all(topics, topics.sink(name))]


def test_verdicts_and_the_clean_feed_are_in_topics(topics: Topics, tmp_path: Path) -> None:
    """The clean feed gets an article as it was sent; what came from a topic returns when it is released."""
    store = f"lmdb:{tmp_path / 'store'}"
    send(topics, [("original", article(text(1))), ("of a topic", article(text(1)))])
    with running(topics, store, tmp_path, "--set", "kafka.unique=true") as consumer:
        wait_for_count(topics, ["unique", "verdicts"], 4)
        assert consumer.stop() == 0, consumer.log.read_text()
    sink = ("--sink", topics.sink_url(), "--set", "kafka.unique=true", "--set", "sink.emit=all", *FAST)
    with serving(store, tmp_path, *sink) as service:
        service.wait_ready()
        new = {"id": "new", "body": text(2), "more": [1]}
        answers = [service.store(new, {"id": "copy", "body": f"{text(1)} too"})]
        answers += [service.release("of a topic"), service.release("copy"), service.retract("new", "key")]
        assert [answer.status for answer in answers] == [200] * 4
        again = service.store({"id": "copy", "body": f"{text(1)} too"})
        assert service.stop() == 0, service.log.read_text()
        assert "'copy' was released, but is not sent to the clean feed" in service.log.read_text()
    first = answers[0].json["results"]
    assert [verdict["outcome"] for verdict in first] == ["unique", "duplicate"]
    assert [(key, json.loads(value or b"")) for key, value in values(topics, "verdicts")][2:] == [
        ("new", first[0]),
        ("copy", first[1]),
        ("of a topic", answers[1].json),
        ("copy", answers[2].json),
        ("new", answers[3].json),
        ("copy", again.json["results"][0]),
    ]
    assert again.data == b'{"results":[%s],"text_kinds":["long"]}' % answers[2].data
    (source, *_) = [message.value for message in read_all(topics, topics.source) if message.key == b"of a topic"]
    clean = values(topics, "unique")[2:]
    assert [(key, None if value is None else json.loads(value)) for key, value in clean] == [
        ("new", new),
        ("copy", None),
        ("of a topic", json.loads(source or b"")),
        ("new", None),
        ("copy", {"id": "copy", "body": f"{text(1)} too"}),
    ]


def test_banks_in_a_topic_are_changed(topics: Topics, tmp_path: Path) -> None:
    """By two services, each of which shows what the other has changed, and compares with it."""
    address = ("--banks", topics.sink_url())
    assert run_process("bank", "create", "spam", "--action", "deny", *address).code == 0
    settings = ("--sink", "nowhere:", "--set", f"banks.url={topics.sink_url()}", *FAST)
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    with serving("memory:", folders[0], *settings) as first, serving("memory:", folders[1], *settings) as second:
        for service in (first, second):
            service.wait_ready()
        added = ask(first, "POST", "spam/items", {"items": [{"item": "offer", "text": text(1)}, {"text": text(2)}]})
        assert added.status == 200, added.data
        page = second.get("/v1/banks/spam?texts=true").json
        assert {item["text"] for item in page["items"]} == {text(1), text(2)}
        until(lambda: banks_of(second, text(1)) == ["spam"])
        # Compaction may leave the bank behind its items from now on.
        assert ask(second, "PUT", "spam", {"action": "deny", "note": "since May"}).json["items"] == 2
        assert ask(second, "PATCH", "spam/items/offer", {"enabled": False}).status == 200
        assert first.get("/v1/banks").json["banks"][0]["note"] == "since May"
        until(lambda: banks_of(first, text(1)) == [])
        assert second.ask("DELETE", "/v1/banks/spam").json["items"] == 2
        assert first.get("/v1/banks").json == {"banks": []}
        for service in (first, second):
            assert service.stop() == 0, service.log.read_text()
