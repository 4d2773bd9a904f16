"""The console beside a run or a service that writes to a file, over one LMDB store: no server but the database's."""

import ctypes
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import FAST, Outcome, json_lines, run_process, start_anew, text, wait_for
from tests.cli.serve.service import serving
from tests.console.consoles import Place, console_over, sqlite_place
from tests.console.test_whole_way import signed_in

SENT = 'dupwatch_console_releases_total{outcome="sent"}'
TOLD = 'dupwatch_console_events_sent_total{kind="story"}'


def articles(texts: Iterable[int], prefix: str = "a") -> bytes:
    """Articles with these texts."""
    records = ({"id": f"{prefix}{number}", "body": text(each), "source": "wire"} for number, each in enumerate(texts))
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def judged(feed: Path, sink: Path, store: str, *more: str) -> Outcome:
    """Judge a feed into a file."""
    ended = run_process("run", "--source", feed, "--sink", sink, "--store", store, *FAST, *more)
    assert ended.code == 0, ended.err
    return ended


def own_events(sink: Path) -> list[dict[str, Any]]:
    """The releases that the console has written beside a sink."""
    own = sink.with_name(f"{sink.name}.console.jsonl")
    lines = json_lines(own.read_bytes()) if own.exists() else []
    return [event for event in lines if event["schema"] == "dupwatch.verdict/1"]


def shown(article_id: str, store: str) -> dict[str, Any]:
    """The verdict of an article in the store."""
    verdict: dict[str, Any] = json.loads(run_process("show", article_id, "--store", store, "--json", *FAST).out)[0][
        "verdict"
    ]
    return verdict


@pytest.mark.servers
def test_wrong_is_released_beside_the_file_of_a_run(place: Place, tmp_path: Path) -> None:
    """From the first look at a file that is not there to a database that is made again."""
    feed, sink, store = tmp_path / "feed.jsonl", tmp_path / "v.jsonl", f"lmdb:{tmp_path / 'store'}"
    own = tmp_path / "v.jsonl.console.jsonl"
    feed.write_bytes(articles([1, 2, 1, 1]))
    with console_over(sink, store, place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: any(f"{sink} does not exist yet" in reason for reason in console.readiness()[1]))
        judged(feed, sink, store, "--emit", "all")
        wait_for(lambda: len(console.open_flags()) == 2)
        wait_for(lambda: console.readiness() == (200, []))
        # An alert takes a console of topics without any for one that is cut off.
        assert "dupwatch_assigned_partitions" not in console.get("/metrics").text
        flag_id = console.open_flags("newest")[0]
        assert text(1)[:60] in console.get(f"/flags/{flag_id}").shown
        wait_for(lambda: console.metric(TOLD) == 1)
        # What is left of an event whose writer was killed is cut off.
        own.write_bytes(b'{"schema":"dupwatch.verdict/1","id":"never ackn')
        assert console.decide(flag_id, "wrong", "another story") == 303
        wait_for(lambda: console.metric(SENT) == 1)
        (event,) = own_events(sink)
        assert (event["outcome"], event["released"]["by"], event["released"]["reason"]) == (
            "unique",
            "Ann",
            "another story",
        )
        assert shown(event["id"], store) == event
        # It comes back, as from a topic.
        wait_for(lambda: console.metric('dupwatch_console_events_total{kind="release"}') == 1)
        # The sink is the run's: it goes on there, and the console reads what it adds.
        before = sink.read_bytes()
        feed.write_bytes(articles([1, 2, 1, 1, 2]))
        judged(feed, sink, store, "--emit", "all")
        assert sink.read_bytes().startswith(before)
        wait_for(lambda: len(console.open_flags()) == 2)
        assert console.stop() == 0, console.log.read_text()
    (tmp_path / "again").mkdir()
    # "topic" is what "sink" was called before.
    with console_over(sink, store, sqlite_place(tmp_path / "again"), tmp_path, "--rebuild", "topic") as console:
        console.wait_ready()
        wait_for(lambda: console.metric('dupwatch_console_flags{state="released"}') == 1)
        wait_for(lambda: console.metric('dupwatch_console_flags{state="open"}') == 2)
        assert console.stop() == 0, console.log.read_text()


@pytest.mark.servers
def test_flags_of_a_muted_pair_are_released_without_a_click(place: Place, tmp_path: Path) -> None:
    """In the store and in the sink, in the name of whoever muted it; a flag from before stays open."""
    feed, sink, store = tmp_path / "feed.jsonl", tmp_path / "v.jsonl", f"lmdb:{tmp_path / 'store'}"
    feed.write_bytes(articles([1, 1]))
    judged(feed, sink, store)
    with console_over(sink, store, place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 1)
        pair = {"source": "wire", "original_source": "wire", "lasts": "3600", "note": "they repeat themselves"}
        assert console.send("/standing/mute", "/standing/mute?source=wire&original_source=wire", **pair).status == 303
        feed.write_bytes(articles([1, 1, 2, 1, 2]))
        judged(feed, sink, store)
        wait_for(lambda: console.metric(SENT) == 2)
        assert len(console.open_flags()) == 1
        events = own_events(sink)
        assert sorted(event["id"] for event in events) == ["a3", "a4"]
        for event in events:
            assert (event["outcome"], event["released"]["by"]) == ("unique", "Ann")
            assert event["released"]["reason"] == "they repeat themselves"
            assert shown(event["id"], store) == event
        decided = 'dupwatch_console_decisions_total{decider="standing_decision",decision="wrong"}'
        assert console.metric(decided) == 2
        wait_for(lambda: console.metric('dupwatch_console_standing_decisions{about="sources"}') == 1)
        assert console.stop() == 0, console.log.read_text()


def test_other_entries_are_made_of_verdicts(tmp_path: Path) -> None:
    """Of a file, and of the store; unique verdicts that say nothing else are passed over, and nothing is released."""
    feed, sink, store = tmp_path / "feed.jsonl", tmp_path / "v.jsonl", f"lmdb:{tmp_path / 'store'}"
    banks = tmp_path / "banks.jsonl"
    given = ("--set", f"banks.url={banks}")
    for arguments in (("create", "spam", "--action", "deny"), ("add", "spam", "--text", text(3), "--item", "offer")):
        assert run_process("bank", *arguments, "--banks", banks).code == 0
    bodies = [("gone", text(1)), ("gone", None), ("again", text(1)), ("offer", text(3)), ("copy", text(3))]
    records = [{"id": name, "body": body} for name, body in [*bodies, ("other", text(2))]]
    feed.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records))
    judged(feed, sink, store, "--emit", "all", *given)
    kinds = {"flag": 1, "ended_before": 1, "bank_match": 2}
    for folder, rebuild in (("one", ()), ("two", ("--rebuild", "store"))):
        (tmp_path / folder).mkdir()
        place = sqlite_place(tmp_path / folder)
        followed = tmp_path / "nothing.jsonl" if rebuild else sink
        followed.touch()
        with console_over(followed, store, place, tmp_path / folder, *rebuild, *given) as console:
            signed_in(console, place)
            for kind, number in kinds.items():
                wait_for(lambda kind=kind, number=number: console.metric(open_of(kind)) == number)  # type: ignore[misc]
            assert "repeats this retracted or replaced article" in console.get("/?kind=ended_before").shown
            pages = {flag_id: console.get(f"/flags/{flag_id}").shown for flag_id in console.open_flags()}
            of_item = [flag_id for flag_id, page in pages.items() if "matches this item" in page]
            assert len(of_item) == 2
            assert [text(3)[:60] in pages[flag_id] for flag_id in of_item] == [True, True]
            for flag_id in of_item:
                assert console.decide(flag_id, "wrong") == 303
            wait_for(lambda: console.metric(open_of("bank_match")) == 0)
            assert console.metric("dupwatch_console_releases_due") == 0
            assert console.stop() == 0, console.log.read_text()
    assert own_events(sink) == []


def open_of(kind: str) -> str:
    """The metric of open entries of a kind."""
    return f'dupwatch_console_open_entries{{kind="{kind}"}}'


def test_service_run_and_console_share_a_store(tmp_path: Path) -> None:
    """Three processes have it open. The console follows the service: what is released over HTTP leaves the queue."""
    place, sink, store = sqlite_place(tmp_path), tmp_path / "s.jsonl", f"lmdb:{tmp_path / 'store'}"
    feed = tmp_path / "feed.jsonl"
    feed.write_bytes(articles([*range(100, 160), 1], "r"))
    with (
        serving(store, tmp_path, "--sink", str(sink), *FAST) as service,
        console_over(sink, store, place, tmp_path) as console,
    ):
        service.wait_ready()
        signed_in(console, place)
        stored = [
            service.store({"id": f"a{number}", "body": text(1)}, idempotency_key=f"{number}") for number in range(3)
        ]
        assert [answer.status for answer in stored] == [200, 200, 200]
        # Into the same store, while the others have it open.
        judged(feed, tmp_path / "v.jsonl", store)
        wait_for(lambda: len(console.open_flags()) == 2)
        (repeated,) = json_lines((tmp_path / "v.jsonl").read_bytes())
        assert (repeated["id"], repeated["duplicate_of"]) == ("r60", "a0")
        assert service.release("a1").status == 200
        wait_for(lambda: console.metric('dupwatch_console_flags{state="released"}') == 1)
        assert console.decide(console.open_flags()[0], "wrong") == 303
        wait_for(lambda: console.metric(SENT) == 1)
        (event,) = own_events(sink)
        assert event["id"] == "a2"
        assert shown("a2", store) == event
        assert console.stop() == 0, console.log.read_text()
        assert service.stop() == 0, service.log.read_text()


def obey_modes() -> None:
    """Make the modes of files apply to root in the program that is started next (``capabilities(7)``)."""
    libc, drop_from_bounding_set = ctypes.CDLL(None, use_errno=True), 24
    for override in (1, 2):
        assert libc.prctl(drop_from_bounding_set, override, 0, 0, 0) == 0


@pytest.mark.load
def test_a_console_that_may_not_write_the_store_says_so(tmp_path: Path) -> None:
    """Decisions are kept, and carried out by a console that may."""
    feed, sink, folder = tmp_path / "feed.jsonl", tmp_path / "v.jsonl", tmp_path / "store"
    place, store = sqlite_place(tmp_path), f"lmdb:{folder}"
    feed.write_bytes(articles([1, 1]))
    judged(feed, sink, store)
    folder.chmod(0o555)
    limited = partial(start_anew, preexec_fn=obey_modes)
    with console_over(sink, store, place, tmp_path, begin=limited) as console:
        console.wait_ready()
        assert "read-only" not in console.get("/sign-in").shown, "strangers learn where the store is"
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 1)
        (flag_id,) = console.open_flags()
        assert text(1)[:60] in console.get(f"/flags/{flag_id}").shown
        assert console.readiness() == (200, [f"releases: they wait, since this user may not write {folder}"])
        assert f"This console is read-only: it cannot write to {folder}." in console.get("/").shown
        assert console.decide(flag_id, "wrong") == 303
        assert (
            f"the release is waiting: this console cannot write to {folder}" in console.get(f"/flags/{flag_id}").shown
        )
        wait_for(lambda: console.metric("dupwatch_console_releases_due") == 1)
        assert console.stop() == 0, console.log.read_text()
        cookies = console.cookies
    folder.chmod(0o755)
    with console_over(sink, store, place, tmp_path, cookies=cookies) as console:
        console.wait_ready()
        wait_for(lambda: console.metric(SENT) == 1)
        assert "read-only" not in console.get("/").shown
        assert console.stop() == 0, console.log.read_text()
    assert [event["id"] for event in own_events(sink)] == ["a1"]
