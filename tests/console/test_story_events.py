"""Events of stories on their way: from copies that come in, and from decisions, to the readers of the sink."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import run_process, text, wait_for
from tests.console.consoles import Place, Running, console_over, consoling, sqlite_place
from tests.console.test_file_sink import articles
from tests.console.test_file_sink import judged as judged_into_file
from tests.console.test_whole_way import judged, signed_in
from tests.kafka.reading import delete_topic
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, read_all
from tests.unit.reviews.outbox_made import valid

FLOOD = 5
MISSING = "there is no topic {}: create it with dupwatch topics init --sink {}"


def check_whole(events: Sequence[dict[str, Any]]) -> list[str]:
    """Return the causes once each, and fail unless events that come again come in their order."""
    numbers = [valid(event)["event"] for event in events]
    # A batch that was sent and not noted is sent again, from its first event on.
    assert sorted(set(numbers)) == list(dict.fromkeys(numbers))
    causes = {event["event"]: event["cause"] for event in events}
    return [causes[number] for number in sorted(causes)]


def check_causes(causes: Sequence[str], flood: int) -> None:
    """Fail unless a story began, grew past ten, became a flood this often and was decided, each at its time."""
    assert (causes[0], causes[-1]) == ("began", "decided")
    assert sorted(causes[1:-1]) == [*["flood"] * flood, "grew"]


def decide_all(console: Running) -> None:
    """Say that all flags are right."""
    for flag_id in console.open_flags():
        assert console.decide(flag_id, "right") == 303


def stories(topics: Topics) -> list[dict[str, Any]]:
    """The events of stories, all of one story, in order."""
    messages = read_all(topics, topics.sink("stories"))
    for message in messages:
        assert message.key == message.content["original"].encode()
    return [message.content for message in messages]


@pytest.mark.servers
@pytest.mark.timeout(600)
def test_a_story_is_told_of_although_the_console_is_killed(topics: Topics, place: Place, tmp_path: Path) -> None:
    """Between its first copies and the others, and again before its end: each change is told, in order."""
    store = f"lmdb:{tmp_path / 'store'}"
    with consoling(topics, store, place, tmp_path, flood_copies=FLOOD) as console:
        signed_in(console, place)
        judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(3)], 3)
        wait_for(lambda: len(console.open_flags()) == 2)
        console.kill()
        cookies = console.cookies
    judged(topics, store, tmp_path, [(f"b{number}", article(text(1))) for number in range(10)], 13)
    with consoling(topics, store, place, tmp_path, cookies=cookies, flood_copies=FLOOD) as console:
        console.wait_ready()
        wait_for(lambda: len(console.open_flags()) == 12)
        decide_all(console)
        console.kill()
    with consoling(topics, store, place, tmp_path, cookies=cookies, flood_copies=FLOOD) as console:
        console.wait_ready()
        # The lease of the one that was killed ends first.
        wait_for(lambda: "decided" in [event["cause"] for event in stories(topics)])
        wait_for(lambda: console.metric('dupwatch_console_outbox_events{receiver="sink"}') == 0)
        assert console.stop() == 0, console.log.read_text()
    told = stories(topics)
    check_causes(check_whole(told), 1)
    assert (told[0]["copies"] >= 1, told[-1]["copies"], told[-1]["open_copies"]) == (True, 12, 0)
    (flood,) = {message.value for message in read_all(topics, topics.sink("floods"))}
    assert valid(json.loads(flood or b""))["original"] == told[0]["original"]


@pytest.mark.servers
def test_everything_else_goes_on_without_the_topic(topics: Topics, tmp_path: Path) -> None:
    """An installation of an earlier version: flags, releases and floods; events are kept until it is there."""
    store, place = f"lmdb:{tmp_path / 'store'}", sqlite_place(tmp_path)
    topic = topics.sink("stories")
    delete_topic(topics.address, topic)
    missing = MISSING.format(topic, topics.sink_url())
    with consoling(topics, store, place, tmp_path, flood_copies=FLOOD) as console:
        signed_in(console, place)
        judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(7)], 7)
        wait_for(lambda: len(console.open_flags()) == 6)
        wait_for(lambda: console.readiness() == (200, [f"sink: {missing}"]))
        assert missing in console.get("/").shown
        assert console.decide(console.open_flags()[0], "wrong") == 303
        wait_for(lambda: console.metric('dupwatch_console_releases_total{outcome="sent"}') == 1)
        wait_for(lambda: len(read_all(topics, topics.sink("floods"))) == 1)
        wait_for(lambda: console.metric('dupwatch_console_outbox_events{receiver="sink"}') == 2)
        made = run_process("topics", "init", "--sink", topics.sink_url(), "--partitions", str(topics.partitions))
        # Other topics of a test are smaller than planned, which it says.
        assert made.code in {0, 6}, made.err
        wait_for(lambda: console.readiness() == (200, []))
        assert console.stop() == 0, console.log.read_text()
    assert [event["cause"] for event in stories(topics)] == ["began", "flood"]


def test_events_are_lines_beside_a_file(tmp_path: Path) -> None:
    """In the order of their numbers, also where the console was killed in between; it reads past them."""
    feed, sink, store = tmp_path / "feed.jsonl", tmp_path / "v.jsonl", f"lmdb:{tmp_path / 'store'}"
    place = sqlite_place(tmp_path)
    feed.write_bytes(articles([1, 1, 1]))
    judged_into_file(feed, sink, store)
    with console_over(sink, store, place, tmp_path, flood_copies=FLOOD) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 2)
        console.kill()
        cookies = console.cookies
    feed.write_bytes(articles([1] * 13))
    judged_into_file(feed, sink, store)
    with console_over(sink, store, place, tmp_path, cookies=cookies, flood_copies=FLOOD) as console:
        console.wait_ready()
        wait_for(lambda: len(console.open_flags()) == 12)
        decide_all(console)
        wait_for(lambda: "decided" in [event.get("cause") for event in lines(sink)])
        assert console.metric('dupwatch_console_events_skipped_total{reason="not_an_event"}') == 0
        assert console.stop() == 0, console.log.read_text()
    found = lines(sink)
    check_causes(check_whole([event for event in found if event["schema"] == "dupwatch.story/1"]), 1)
    assert {event["flood"] for event in found if event["schema"] == "dupwatch.flood/1"} == {1}


def lines(sink: Path) -> list[dict[str, Any]]:
    """The whole lines that the console has written beside a sink."""
    own = sink.with_name(f"{sink.name}.console.jsonl")
    data = own.read_bytes() if own.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
