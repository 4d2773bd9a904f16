"""``dupwatch replay``: a range of a topic judged again, beside the consumer whose store is in force."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cli.command import FAST, Outcome, run_process, text, write_lines
from tests.kafka.running import running
from tests.kafka.topics import WAIT_S, Topics, make_topics, ordered_producer, read_all, wait_for_count

pytestmark = pytest.mark.servers

DAY_MS = 86_400_000
OTHERS = ("--set", "judge.similarity_min=0.99")


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, two partitions each."""
    return make_topics(kafka_address)


def edited(number: int) -> str:
    """A text of which two words in forty are others: similar, not equal."""
    words = text(number).split()
    return " ".join([*words[:-2], *text(number + 10_000).split()[:2]])


def feed(count: int) -> list[tuple[str, str]]:
    """Ids and texts: every fifth is an edit of the one before, every tenth a copy."""
    bodies = []
    for number in range(count):
        if number % 10 == 9:
            bodies.append(text(number - 1))
        elif number % 5 == 4:
            bodies.append(edited(number - 1))
        else:
            bodies.append(text(number))
    return [(f"a{number}", body) for number, body in enumerate(bodies)]


def send_at(topics: Topics, articles: list[tuple[str, str | None]], first_ms: int, step_ms: int) -> None:
    """Send each at its time, spread over the partitions by its id."""
    producer = ordered_producer(topics.address)
    for number, (name, body) in enumerate(articles):
        value = None if body is None else json.dumps({"body": body})
        producer.produce(topics.source, value, name, timestamp=first_ms + number * step_ms)
    assert producer.flush(30) == 0


def replayed(topics: Topics, store: Path, *more: str | Path, since: str = "0") -> Outcome:
    """Run a replay to its end."""
    return run_process(
        "replay", "--source", topics.url(), "--from", since, "--store", f"lmdb:{store}", "--json", *FAST, *more
    )


def report_of(outcome: Outcome) -> dict[str, Any]:
    """Its report."""
    assert outcome.code == 0, outcome.err
    report: dict[str, Any] = json.loads(outcome.out)
    return report


@pytest.fixture
def in_force(topics: Topics, tmp_path: Path) -> str:
    """A store that a consumer has judged a hundred articles into, a minute between any two."""
    send_at(topics, [*feed(100)], int(time.time() * 1000) - DAY_MS, 60_000)
    url = f"lmdb:{tmp_path / 'in-force'}"
    with running(topics, url, tmp_path) as consumer:
        wait_for_count(topics, ["verdicts"], 100)
        assert consumer.stop() == 0
    return url


def test_the_same_settings_change_nothing_but_partners(topics: Topics, in_force: str, tmp_path: Path) -> None:
    """What is flagged is the same pairs; in order of time, so that the later of each is the flagged one."""
    report = report_of(replayed(topics, tmp_path / "other", "--against", in_force))
    assert report["judged"]["articles"] == 100
    assert report["judged"]["duplicates"] == 20
    flagged = {f"a{number}" for number in range(4, 100, 5)}
    against = {example["now"]["id"]: example["change"] for example in report["examples"]}
    versions = report["versions"]
    assert versions["flagged_now"] == versions["not_flagged_now"] <= 20
    assert versions["same"] + 2 * versions["flagged_now"] == 100
    assert all((name in flagged) == (change == "flagged_now") for name, change in against.items())


def test_other_thresholds_and_what_they_would_change(topics: Topics, tmp_path: Path) -> None:
    """A stricter threshold lets the edits pass; the report counts them and shows some, for people and programs."""
    send_at(topics, [*feed(100)], int(time.time() * 1000) - DAY_MS, 60_000)
    in_force = f"lmdb:{tmp_path / 'in-force'}"
    assert report_of(replayed(topics, tmp_path / "in-force"))["judged"]["duplicates"] == 20
    report = report_of(replayed(topics, tmp_path / "other", "--against", in_force, "--examples", "3", *OTHERS))
    assert report["judged"]["duplicates"] == 10
    assert report["versions"] == {
        "same": 90,
        "flagged_now": 0,
        "not_flagged_now": 10,
        "other_partner": 0,
        "partner_came_before": 0,
        "not_in_force": 0,
    }
    assert len(report["examples"]) == 3
    for example in report["examples"]:
        assert example["now"]["outcome"] == "unique"
        assert example["before"]["outcome"] == "duplicate"
        assert example["before"]["similarity"] < 0.99
    table = run_process(
        "replay", "--source", topics.url(), "--from", "0", "--store", f"lmdb:{tmp_path / 'third'}",
        "--against", in_force, *FAST, *OTHERS,
    )  # fmt: skip
    assert table.code == 0, table.err
    lines = table.out.decode()
    assert "flagged before, but not now" in lines
    assert "before  duplicate of" in lines


def test_times_bound_it_and_articles_came_when_their_messages_say(topics: Topics, tmp_path: Path) -> None:
    """From is inclusive and until exclusive; arrivals are the messages' times; earlier originals count as no change."""
    first_ms = 1_700_000_000_000
    send_at(topics, [("a", text(1)), ("b", text(2)), ("c", text(1)), ("d", text(2)), ("e", None)], first_ms, 1_000)
    in_force = f"lmdb:{tmp_path / 'in-force'}"
    assert report_of(replayed(topics, tmp_path / "in-force"))["judged"]["duplicates"] == 2
    report = report_of(
        replayed(
            topics, tmp_path / "other", "--until", "2023-11-14T22:13:24Z", "--against", in_force,
            since="2023-11-14T22:13:21Z",
        )
    )  # fmt: skip
    assert (report["judged"]["articles"], report["judged"]["retractions"]) == (3, 0)
    assert report["versions"] == {
        "same": 2,
        "flagged_now": 0,
        "not_flagged_now": 0,
        "other_partner": 0,
        "partner_came_before": 1,
        "not_in_force": 0,
    }
    shown = run_process("show", "b", "--store", f"lmdb:{tmp_path / 'other'}", "--json")
    assert json.loads(shown.out)[0]["verdict"]["arrived_at"] == "2023-11-14T22:13:21.000Z"


def test_verdicts_go_to_another_prefix(topics: Topics, tmp_path: Path) -> None:
    """Where one is given: flags and dead letters, with where they come from."""
    other = make_topics(topics.address)
    send_at(topics, [*feed(10), ("bad", "")], 1_700_000_000_000, 1_000)
    producer = ordered_producer(topics.address)
    producer.produce(topics.source, b"{", b"poison")
    assert producer.flush(30) == 0
    report = report_of(replayed(topics, tmp_path / "other", "--sink", other.sink_url()))
    assert report["judged"]["dead_letters"] == 1
    flags = read_all(other, other.sink("duplicates"))
    assert sorted(flag.content["id"] for flag in flags) == ["a4", "a9"]
    assert dict(flags[0].headers)["dupwatch-origin-topic"] == topics.source.encode()
    assert [message.key for message in read_all(other, other.sink("dead-letters"))] == [b"poison"]


def test_transactions_leave_holes_and_no_wait(topics: Topics, tmp_path: Path) -> None:
    """What was aborted is not judged, and the markers at a topic's end are not waited for."""
    producer = Producer({"bootstrap.servers": topics.address, "transactional.id": topics.prefix})
    producer.init_transactions(30)
    for name, commits in (("a", True), ("b", False), ("c", True), ("d", False)):
        producer.begin_transaction()
        producer.produce(topics.source, json.dumps({"body": text(1)}), name)
        producer.flush(30)
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    report = report_of(replayed(topics, tmp_path / "other"))
    assert (report["judged"]["articles"], report["judged"]["duplicates"]) == (2, 1)


def test_it_leaves_the_group_alone(topics: Topics, tmp_path: Path) -> None:
    """The offsets of the group that the settings name stay as they are."""
    send_at(topics, [*feed(10)], 1_700_000_000_000, 1_000)
    group = ("--set", f"kafka.group={topics.prefix}")
    assert report_of(replayed(topics, tmp_path / "other", *group))["judged"]["articles"] == 10
    looking = Consumer({"bootstrap.servers": topics.address, "group.id": topics.prefix})
    places = [TopicPartition(topics.source, number) for number in range(topics.partitions)]
    assert {place.offset for place in looking.committed(places, timeout=WAIT_S)} == {-1001}
    looking.close()


def test_places_in_force_are_refused(topics: Topics, tmp_path: Path) -> None:
    """The store it is compared with, the store and the topics of the configuration, and a store of other settings."""
    send_at(topics, [*feed(10)], 1_700_000_000_000, 1_000)
    store = tmp_path / "store"
    assert replayed(topics, store).code == 0
    (tmp_path / "link").symlink_to(store)
    command = ("replay", "--source", topics.url(), "--from", "0", *FAST)
    same = run_process(*command, "--store", f"lmdb:{tmp_path / 'link'}", "--against", f"lmdb:{store}")
    assert (same.code, "the consumers' store" in same.err) == (2, True), same
    toml = tmp_path / "dupwatch.toml"
    toml.write_text(f'sink.url = "{topics.sink_url()}"\nstore.url = "lmdb:{store}"\n')
    configured = run_process(*command, "--store", f"lmdb:{store}", "--config", toml)
    assert (configured.code, "the consumers' store" in configured.err) == (2, True), configured
    prefix = run_process(*command, "--store", f"lmdb:{tmp_path / 'o'}", "--sink", topics.sink_url(), "--config", toml)
    assert (prefix.code, "the consumers' sink" in prefix.err) == (2, True), prefix
    settings = run_process(*command, "--store", f"lmdb:{store}", *OTHERS)
    assert (settings.code, "similarity_min" in settings.err) == (4, True), settings


def test_what_it_cannot_read(topics: Topics, tmp_path: Path) -> None:
    """The error names a file, an invalid bound, or a missing topic."""
    feed_file = write_lines(tmp_path / "feed.jsonl", [{"id": "a", "body": "x"}])
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    assert run_process("replay", "--source", feed_file, "--from", "0", *store).code == 2
    assert run_process("replay", "--source", topics.url(), "--from", "noon", *store).code == 2
    assert run_process("replay", "--source", topics.url(), "--from", "0", "--store", "memory:").code == 2
    nowhere = run_process("replay", "--source", f"kafka://{topics.address}/nowhere", "--from", "0", *store)
    assert nowhere.code == 3
    assert f"there is no topic nowhere at {topics.address}; create it, for example with" in nowhere.err
