"""From an article to a decision and back: real brokers, a real store, both databases."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from deploy.local.postgres import Postgres
from tests.cli.command import FAST, run_process, text, wait_for
from tests.console.consoles import Place, Running, add_person, consoling, postgres_place, sqlite_place
from tests.kafka.reading import delete_records
from tests.kafka.running import running
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers


def judged(topics: Topics, store: str, folder: Path, records: list[tuple[str, object]], verdicts: int) -> None:
    """Judge articles, until so many verdicts are there."""
    send(topics, records)
    with running(topics, store, folder, "--set", "kafka.unique=true") as consumer:
        wait_for_count(topics, ["verdicts"], verdicts)
        assert consumer.stop() == 0, consumer.log.read_text()


def flagged(topics: Topics) -> list[str]:
    """The ids of all flags, releases left out."""
    found = [message.content for message in read_all(topics, topics.sink("duplicates"))]
    return [event["id"] for event in found if event["outcome"] == "duplicate"]


def clean(topics: Topics, article_id: str) -> list[bytes | None]:
    """What the clean feed says of an article, in order."""
    return [message.value for message in read_all(topics, topics.sink("unique")) if message.key == article_id.encode()]


def signed_in(console: Running, place: Place, name: str = "Ann", role: str = "admin") -> None:
    """Add somebody, and sign in."""
    password = add_person(place, name, role)
    console.wait_ready()
    assert console.sign_in(name, password).status == 303


def judged_and_released(topics: Topics, store: str, place: Place, folder: Path) -> None:
    """Judge five articles with one text, and release one of the four flags; both are in the topic of flags."""
    judged(topics, store, folder, [(f"a{number}", article(text(1), source="wire")) for number in range(5)], 5)
    with consoling(topics, store, place, folder) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 4)
        assert console.decide(console.open_flags()[0], "wrong") == 303
        wait_for(lambda: console.metric('dupwatch_console_releases_total{outcome="sent"}') == 1)
        wait_for(lambda: console.metric('dupwatch_console_events_total{kind="release"}') == 1)
        assert console.stop() == 0, console.log.read_text()


def check_made_again(topics: Topics, store: str, folder: Path, *rebuild: str, group: str | None = None) -> None:
    """Fail unless a console with a database of its own gets these flags and the release, with their sources."""
    (folder / "other").mkdir()
    other = sqlite_place(folder / "other")
    settings: dict[str, Any] = {} if group is None else {"group": group}
    with consoling(topics, store, other, folder, *rebuild, **settings) as console:
        console.wait_ready()
        wait_for(lambda: console.metric('dupwatch_console_flags{state="released"}') == 1)
        wait_for(lambda: console.metric('dupwatch_console_flags{state="open"}') == 3)
        signed_in(console, other)
        assert console.get("/?source=wire").shown.count("wire") >= 3
        assert console.stop() == 0, console.log.read_text()


def check_lack_is_told(topics: Topics, store: str, folder: Path) -> None:
    """Fail unless a console of the same group with a new database says that it lacks flags, and what to do."""
    (folder / "new").mkdir()
    new = sqlite_place(folder / "new")
    with consoling(topics, store, new, folder / "new") as console:
        signed_in(console, new)
        wait_for(lambda: "start one once with --rebuild sink" in console.get("/").shown)
        assert "start this one once with --rebuild sink" in console.log.read_text()
        assert console.stop() == 0, console.log.read_text()


def test_wrong_is_released_everywhere(topics: Topics, place: Place, tmp_path: Path) -> None:
    """A flag comes in; said to be wrong, its release is in the sink, its article in the clean feed, and it stays so."""
    store = f"lmdb:{tmp_path / 'store'}"
    records: list[tuple[str, object]] = [
        ("first", article(text(1), source="a")),
        ("copy", article(text(1), source="b")),
    ]
    judged(topics, store, tmp_path, records, 2)
    # Which of the two is the copy is up to the partitions.
    (copy,) = flagged(topics)
    with consoling(topics, store, place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 1)
        (flag_id,) = console.open_flags()
        shown = console.get(f"/flags/{flag_id}").shown
        assert text(1)[:60] in shown
        by_words = f"/?{urlencode({'q': ' '.join(text(1).split()[:6])})}"
        wait_for(lambda: f'href="/flags/{flag_id}?' in console.get(by_words).text)
        assert console.decide(flag_id, "wrong", "another story") == 303
        assert f'href="/flags/{flag_id}?' not in console.get(by_words).text
        wait_for(lambda: console.metric('dupwatch_console_releases_total{outcome="sent"}') == 1)
        assert console.open_flags() == []
        (release,) = [
            message.content
            for message in read_all(topics, topics.sink("duplicates"))
            if message.content["outcome"] == "unique"
        ]
        assert (release["id"], release["released"]["by"], release["released"]["reason"]) == (
            copy,
            "Ann",
            "another story",
        )
        before, after = clean(topics, copy)
        assert (before, json.loads(after or b"")["body"]) == (None, text(1))
        audit = console.get("/audit").shown
        assert "decided wrong" in audit
        assert "a release was sent" in audit
        # What the console itself sent comes back to it.
        wait_for(lambda: console.metric('dupwatch_console_events_total{kind="release"}') == 1)
        wait_for(lambda: console.metric('dupwatch_console_flags{state="wrong"}') == 1)
        assert console.stop() == 0, console.log.read_text()
    judged(topics, store, tmp_path, [(name, value) for name, value in records if name == copy], 4)
    assert flagged(topics) == [copy]
    looked = run_process("show", copy, "--store", store, "--json", *FAST)
    assert json.loads(looked.out)[0]["verdict"]["outcome"] == "unique"


def test_many_wrong_at_once_are_released_each(topics: Topics, tmp_path: Path) -> None:
    """Each in the sink, and in the clean feed where its record is still in its topic: of one partition all are gone."""
    store = f"lmdb:{tmp_path / 'store'}"
    place = sqlite_place(tmp_path)
    judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(12)], 12)
    gone = {message.key for message in read_all(topics, topics.source) if message.partition == 0}
    delete_records(topics.address, topics.source, 0, len(gone))
    with consoling(topics, store, place, tmp_path, undo_s=3) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 11)
        copies = flagged(topics)
        assert 0 < sum(name.encode() in gone for name in copies) < 11
        assert {console.decide(flag_id, "wrong") for flag_id in console.open_flags()} == {303}
        wait_for(lambda: console.metric('dupwatch_console_releases_total{outcome="sent"}') == 11)
        assert console.stop() == 0, console.log.read_text()
    sent = [message.content for message in read_all(topics, topics.sink("duplicates"))]
    assert sorted(event["id"] for event in sent if event["outcome"] == "unique") == sorted(copies)
    for name in copies:
        last = clean(topics, name)[-1]
        assert (last is None) == (name.encode() in gone), name
    assert "no longer exists" in console.log.read_text()


def test_it_goes_on_where_it_was(topics: Topics, place: Place, tmp_path: Path) -> None:
    """Flags that came while no console ran are in the queue of the next one, which reads nothing twice."""
    store = f"lmdb:{tmp_path / 'store'}"
    judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(4)], 4)
    with consoling(topics, store, place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 3)
        assert console.stop() == 0, console.log.read_text()
        cookies = console.cookies
    judged(topics, store, tmp_path, [(f"b{number}", article(text(2))) for number in range(3)], 7)
    with consoling(topics, store, place, tmp_path, cookies=cookies) as console:
        console.wait_ready()
        wait_for(lambda: len(console.open_flags()) == 5)
        assert console.metric('dupwatch_console_events_total{kind="known"}') == 0
        assert console.metric('dupwatch_console_events_total{kind="flag"}') == 2
        assert console.stop() == 0, console.log.read_text()


def test_sources_are_known_while_the_store_is_away(topics: Topics, tmp_path: Path) -> None:
    """Flags name them. Those of earlier versions do not: theirs are read once the store is there."""
    place = sqlite_place(tmp_path)
    store, away = tmp_path / "store", tmp_path / "away"
    records: list[tuple[str, object]] = [
        ("first", article(text(1), source="a")),
        ("copy", article(text(1), source="b")),
    ]
    judged(topics, f"lmdb:{store}", tmp_path, records, 2)
    (flag,) = [message.content for message in read_all(topics, topics.sink("duplicates"))]
    with consoling(topics, f"lmdb:{away}", place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags(source=flag["source"])) == 1)
        send(topics._replace(source=topics.sink("duplicates")), [(flag["duplicate_of"], turned_around(flag))])
        wait_for(lambda: len(console.open_flags()) == 2)
        assert console.open_flags(source=flag["original_source"]) == []
        assert any("does not exist yet" in reason for reason in console.readiness()[1])
        shutil.copytree(store, away)
        wait_for(lambda: len(console.open_flags(source=flag["original_source"])) == 1)
        assert console.stop() == 0, console.log.read_text()


def turned_around(flag: dict[str, Any]) -> dict[str, Any]:
    """A flag of the original of this one, as an earlier version would send it."""
    original = {"id": flag["duplicate_of"], "version": flag["duplicate_of_version"]}
    copy = {"duplicate_of": flag["id"], "duplicate_of_version": flag["version"]}
    event = {**flag, **original, **copy}
    return {name: value for name, value in event.items() if name not in {"source", "original_source"}}


@pytest.mark.parametrize("origin", ["topic", "store"])
def test_a_lost_database_is_made_again(topics: Topics, tmp_path: Path, origin: str) -> None:
    """From the beginning of the topic, or from the store: flags and releases are as before, with their sources."""
    place = sqlite_place(tmp_path)
    store = f"lmdb:{tmp_path / 'store'}"
    judged_and_released(topics, store, place, tmp_path)
    if origin == "topic":
        check_lack_is_told(topics, store, tmp_path)
    check_made_again(topics, store, tmp_path, "--rebuild", origin)


def test_what_is_away_is_told_and_comes_back(
    topics: Topics, own_postgres: Callable[..., Postgres], tmp_path: Path
) -> None:
    """Without its database the console is not ready; flags that came meanwhile are there afterwards."""
    server = own_postgres()
    place = postgres_place(server.url("postgres"), server.password, tmp_path)
    store = f"lmdb:{tmp_path / 'store'}"
    with consoling(topics, store, place, tmp_path) as console:
        signed_in(console, place)
        assert console.readiness()[0] == 200
        wait_for(lambda: any(reason.startswith("store: ") for reason in console.readiness()[1]))
        server.kill9()
        wait_for(lambda: console.readiness()[0] == 503)
        assert any(reason.startswith("database: ") for reason in console.readiness()[1])
        assert console.get("/").status == 503
        judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(3)], 3)
        server.start()
        wait_for(lambda: console.readiness() == (200, []))
        wait_for(lambda: len(console.open_flags()) == 2)
        assert console.stop() == 0, console.log.read_text()


def test_a_flood_is_announced(topics: Topics, tmp_path: Path) -> None:
    """One event for each, with the original and how many copies there were."""
    store = f"lmdb:{tmp_path / 'store'}"
    with consoling(topics, store, sqlite_place(tmp_path), tmp_path, flood_copies=5) as console:
        console.wait_ready()
        judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(9)], 9)
        wait_for(lambda: bool(read_all(topics, topics.sink("floods"))))
        wait_for(lambda: console.metric('dupwatch_console_events_total{kind="flag"}') == 8)
        assert console.stop() == 0, console.log.read_text()
    (event,) = [message.content for message in read_all(topics, topics.sink("floods"))]
    (original,) = {f"a{number}" for number in range(9)} - set(flagged(topics))
    assert (event["schema"], event["original"]) == ("dupwatch.flood/1", original)
    assert event["copies"] >= 5
