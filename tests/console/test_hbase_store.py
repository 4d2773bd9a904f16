"""The console over a store in HBase: what it reads there, what it releases there, and what it takes from there."""

import json
from pathlib import Path

import pytest

from tests.cli.command import FAST, run_process, text, wait_for
from tests.console.consoles import consoling, sqlite_place
from tests.console.test_whole_way import check_made_again, clean, flagged, judged, judged_and_released, signed_in
from tests.kafka.reading import delete_records
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, read_all

pytestmark = pytest.mark.servers


def test_a_flag_is_read_and_released_in_hbase(
    topics: Topics, hbase_address: str, hbase_namespace: str, tmp_path: Path
) -> None:
    """Both texts are on its page; *wrong* is in the store, in the sink and in the clean feed, and stays so."""
    store = f"hbase://{hbase_address}/{hbase_namespace}"
    place = sqlite_place(tmp_path)
    edited = text(1).replace(text(1).split()[30], "elsewhere")
    records: list[tuple[str, object]] = [
        ("first", article(text(1), source="a")),
        ("copy", article(edited, source="b")),
    ]
    judged(topics, store, tmp_path, records, 2)
    with consoling(topics, store, place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 1)
        (flag_id,) = console.open_flags()
        (copy,) = flagged(topics)
        wait_for(lambda: "never_with" in console.get(f"/flags/{flag_id}").text)
        opened = console.get(f"/flags/{flag_id}")
        assert opened.text.count(text(1).split()[0]) >= 2
        assert "<ins" in opened.text
        assert console.get(f"/flags/{flag_id}/text/article").text in {text(1), edited}
        assert console.decide(flag_id, "wrong", "another story") == 303
        wait_for(lambda: console.metric('dupwatch_console_releases_total{outcome="sent"}') == 1)
        wait_for(lambda: console.metric('dupwatch_console_flags{state="wrong"}') == 1)
        looked = console.get(f"/look-up?id={copy}").shown
        assert "Unique: somebody has released it." in looked
        assert "Released by Ann. another story" in looked
        assert "this text would be flagged" in console.send("/look-up/text", "/look-up/text", text=edited).shown
        assert console.stop() == 0, console.log.read_text()
    (release,) = [
        message.content
        for message in read_all(topics, topics.sink("duplicates"))
        if message.content["outcome"] == "unique"
    ]
    assert (release["id"], release["released"]["by"]) == (copy, "Ann")
    assert clean(topics, copy)[0] is None
    assert json.loads(clean(topics, copy)[-1] or b"")["body"] in {text(1), edited}
    shown = json.loads(run_process("show", copy, "--store", store, "--json", *FAST).out)[0]
    assert (shown["verdict"]["outcome"], shown["verdict"]["released"]["reason"]) == ("unique", "another story")
    judged(topics, store, tmp_path, records, 4)
    assert flagged(topics) == [copy]


def test_a_lost_database_is_made_again_from_hbase(
    topics: Topics, hbase_address: str, hbase_namespace: str, tmp_path: Path
) -> None:
    """All flags and releases of the window, with their sources, though the topic of flags is gone."""
    store = f"hbase://{hbase_address}/{hbase_namespace}"
    judged_and_released(topics, store, sqlite_place(tmp_path), tmp_path)
    for partition in range(topics.partitions):
        there = sum(message.partition == partition for message in read_all(topics, topics.sink("duplicates")))
        delete_records(topics.address, topics.sink("duplicates"), partition, there)
    check_made_again(topics, store, tmp_path, "--rebuild", "store", group=f"{topics.prefix}-other")
