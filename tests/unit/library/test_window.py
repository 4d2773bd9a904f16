"""Windows: asking, judging and releasing from Python."""

import json
import multiprocessing
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import dupwatch
from consumer.judge.detector import Detector
from consumer.model.verdict import EndedBefore, VerdictEvent, encode
from consumer.wiring.stores import opened_store
from storage.interface import Store
from storage.records import StoredVersion, Version
from tests.cli.command import articles, json_lines, run_process, text, write_lines
from tests.machine_clock import DAY_S, JUMPS_S, MachineClock

A, B = dupwatch.Article("a", text(1)), dupwatch.Article("b", f"{text(1)} too")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An LMDB store that is not there yet."""
    return f"lmdb:{tmp_path / 'store'}"


@pytest.fixture
def window(url: str) -> Iterator[dupwatch.Window]:
    """An open window on it."""
    with dupwatch.open(url) as opened:
        yield opened


def without_times(verdict: dict[str, Any]) -> dict[str, Any]:
    """All of an event but when it arrived, when it was decided, and when another version ended."""
    times = {"arrived_at", "decided_at", "ended_at"}
    return {
        name: without_times(value) if isinstance(value, dict) else value
        for name, value in verdict.items()
        if name not in times
    }


def test_a_feed_gets_the_verdicts_of_a_run(tmp_path: Path, url: str) -> None:
    """All fields of all of them, over several batches; with versions of articles that take texts from each other."""
    chance = random.Random(5)
    feed = articles(range(300))
    feed += [{"id": f"v{chance.randrange(40)}", "body": text(1_000 + chance.randrange(60))} for _ in range(300)]
    source = write_lines(tmp_path / "feed.jsonl", feed)
    sink = tmp_path / "out.jsonl"
    other = f"lmdb:{tmp_path / 'other'}"
    run_process("run", "--source", source, "--sink", sink, "--store", other, "--emit", "all")
    secret = tmp_path / "secret"
    run_process("store", "secret", "export", secret, "--store", other)
    with dupwatch.open(url, settings={"fingerprint": {"secret_file": str(secret)}}) as window:
        verdicts = window.judge((dupwatch.Article(article["id"], article["body"]) for article in feed), key="feed")
    ours = [without_times(json.loads(encode(verdict))) for verdict in verdicts]
    assert ours == [without_times(event) for event in json_lines(sink.read_bytes())]
    assert sum(verdict.outcome == "duplicate" for verdict in verdicts) > 120
    assert sum(isinstance(verdict.ended_before, EndedBefore) for verdict in verdicts) > 20


def test_what_was_judged_gets_the_same_verdict_for_ever(url: str) -> None:
    """In the same call, in another one, and after the store was opened again; another version gets its own."""
    with dupwatch.open(url) as window:
        first = window.judge([A, B, A])
        assert [verdict.outcome for verdict in first] == ["unique", "duplicate", "unique"]
        assert first[2] == first[0]
        assert window.judge(B) == [first[1]]
    with dupwatch.open(url) as window:
        assert window.judge([B, A]) == [first[1], first[0]]
        (other,) = window.judge(dupwatch.Article("b", text(2)))
        assert (other.outcome, other.version != first[1].version) == ("unique", True)


def test_a_text_comes_back_with_a_key(url: str) -> None:
    """Without one, and with the same one again, an article gets the verdict that it had."""
    other = dupwatch.Article("a", text(2))
    with dupwatch.open(url) as window:
        first = window.judge([A, other, A, B])
        assert first[2] == first[0]
        assert first[3].outcome == "unique"
        (back,) = window.judge(A, key="changed back")
        assert (back.outcome, back.duplicate_of) == ("duplicate", "b")
        assert window.judge(other) == [first[1]]
    with dupwatch.open(url) as window:
        assert window.judge(A, key="changed back") == [back] == window.judge(A)
        assert window.judge(A, key="another key") == [back]
        (again,) = window.judge(other, key="and again")
        assert again.version != first[1].version
        # Each article of a call has a key of its own.
        assert len({verdict.version for verdict in window.judge([A, other, A], key="three")}) == 3


@pytest.mark.parametrize("key", ["", "x" * 129, "\ud800"])
def test_a_key_that_is_none_is_refused(window: dupwatch.Window, key: str) -> None:
    """Nothing is stored without the key that was meant."""
    with pytest.raises(dupwatch.Error, match="key"):
        window.judge(A, key=key)
    assert window.check(B)[0].outcome == "unique"


def test_versions_of_one_article_are_judged_one_after_the_other(
    window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a run: the second must see what was decided about the first."""
    calls: list[list[str]] = []
    really = Detector.judge

    def noted(self: Detector, batch: Sequence[Version]) -> list[VerdictEvent]:
        calls.append([version.record.id for version in batch])
        return really(self, batch)

    monkeypatch.setattr(Detector, "judge", noted)
    window.judge([A, B, dupwatch.Article("a", text(2)), dupwatch.Article("c", text(3)), A])
    assert calls == [["a", "b"], ["a", "c"], ["a"]]


def test_a_check_says_what_a_verdict_would_and_stores_nothing(window: dupwatch.Window) -> None:
    """For a text without an id as for an article; an article is not compared with its own id."""
    assert [check.outcome for check in window.check([A.body, B])] == ["unique", "unique"]
    window.judge(A)
    alone, article, own, other = window.check([B.body, B, dupwatch.Article("a", B.body), text(3)])
    assert alone == article
    assert (alone.outcome, alone.truncated, alone.pending) == ("duplicate", False, False)
    (verdict,) = window.judge(B)
    (repeated,) = alone.repeats
    assert (repeated.id, repeated.version) == (verdict.duplicate_of, verdict.duplicate_of_version)
    assert (repeated.distance, repeated.similarity) == (verdict.distance, verdict.similarity)
    assert repeated.shared_keywords[: len(verdict.shared_keywords)] == verdict.shared_keywords
    assert (own.repeats, other.repeats) == ((), ())
    assert window.check(text(3))[0].outcome == "unique"


def test_a_check_says_that_a_near_version_is_still_judged(window: dupwatch.Window) -> None:
    """As where another process was killed between writing an article and deciding about it."""
    store: Store = window._store
    (version,) = window._versions([window._valid(A)])
    store.create([version])
    store.add([version.record])
    (check,) = window.check(B.body)
    assert (check.outcome, check.pending) == ("unique", True)
    window.judge(A)
    (check,) = window.check(B.body)
    assert (check.outcome, check.pending) == ("duplicate", False)


def test_a_release_undoes_a_flag_once(window: dupwatch.Window) -> None:
    """The pair is not flagged again, and who released it is in the verdict."""
    window.judge([A, B])
    released = window.release("b", by="An Na", reason="another story")
    assert released.outcome == "unique"
    assert isinstance(released.released, dupwatch.Released)
    assert (released.released.by, released.released.duplicate_of) == ("An Na", "a")
    assert window.release("b") == released
    assert window.judge(B) == [released]
    for name in ("a", "nobody"):
        with pytest.raises(dupwatch.ConfigError):
            window.release(name)


@pytest.mark.parametrize(
    ("article", "reason"),
    [
        (dupwatch.Article("", "text"), "empty_id"),
        (dupwatch.Article("x", "\0"), "nul_character"),
        (dupwatch.Article("x", "text", title="t" * 10_000), "field_too_long"),
        (dupwatch.Article("x", "x" * 1_000_001), "body_too_long"),
        (dupwatch.Article("\ud800", "text"), "invalid_utf8"),
        (dupwatch.Article("x", "ﷺ" * 100_000), "folded_too_long"),
        (dupwatch.Article("x", None), "body_wrong_type"),  # type: ignore[arg-type]
        (dupwatch.Article(["x"], "text"), "id_wrong_type"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_article_is_named_and_nothing_of_its_call_is_stored(
    window: dupwatch.Window, article: dupwatch.Article, reason: str
) -> None:
    """By the same reasons as in a dead letter."""
    with pytest.raises(dupwatch.InvalidArticle) as refused:
        window.judge([A, article])
    assert (refused.value.reason, refused.value.id) == (reason, article.id)
    assert window.check(A.body)[0].outcome == "unique"


def test_errors_are_those_of_the_module(url: str, tmp_path: Path) -> None:
    """Each is a sentence that says what to do."""
    with pytest.raises(dupwatch.ConfigError, match="unknown setting judge"):
        dupwatch.open(url, settings={"judge": {"similarity": 1}})
    with pytest.raises(dupwatch.ConfigError, match="cannot be read"):
        dupwatch.open(url, config=tmp_path / "none.toml")
    with pytest.raises(dupwatch.ConfigError):
        dupwatch.open("nowhere:")
    dupwatch.open(url).close()
    with pytest.raises(dupwatch.StoreError, match="other settings"):
        dupwatch.open(url, settings={"judge": {"similarity_min": 0.9}})


def test_what_is_not_named_is_as_in_the_store(url: str) -> None:
    """A store with other settings than the defaults is opened without naming them."""
    dupwatch.open(url, settings={"judge": {"similarity_min": 0.9}, "fingerprint": {"scheme": "md5-64/1"}}).close()
    with dupwatch.open(url) as window:
        (verdict,) = window.judge(A)
    assert verdict.scheme == "md5-64/1"


def test_a_closed_window_says_so(url: str) -> None:
    """And may be closed again."""
    window = dupwatch.open(url)
    window.close()
    window.close()
    for call in (lambda: window.check("text"), lambda: window.judge(A), lambda: window.release("a")):
        with pytest.raises(dupwatch.Error, match="is closed"):
            call()


def test_what_is_no_article_is_refused(window: dupwatch.Window) -> None:
    """A text alone has no id to be stored under."""
    with pytest.raises(TypeError, match=r"str is not a dupwatch\.Article"):
        window.judge("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"int is not a dupwatch\.Article or a mapping"):
        window.check([A, 5])  # type: ignore[list-item]


def test_mappings_are_articles(window: dupwatch.Window) -> None:
    """Those that JSON lines hold, of any kind of mapping, alone, among articles and among texts."""
    line = {"id": "a", "body": A.body, "title": "One", "source": "wire", "url": "https://x/1", "lang": "en"}
    (first,) = window.judge(MappingProxyType(line | {"published_at": "2026-01-31T08:15:30+08:00"}))
    assert window.judge([dupwatch.Article(**line), line]) == [first, first]
    (stored,) = window._store.history(window._versions([window._valid(A)])[0].record.id_hash)
    assert isinstance(stored, StoredVersion)
    assert stored.record.published_at == 1_769_818_530
    alone, text_alone, own = window.check([{"id": "b", "body": B.body}, B.body, line])
    assert alone == text_alone == window.check({"id": "b", "body": B.body})[0]
    assert (alone.repeats[0].id, alone.repeats[0].title, own.repeats) == ("a", "One", ())
    assert [verdict.id for verdict in window.judge([{"id": 17, "body": text(2)}])] == ["17"]


@pytest.mark.parametrize(
    ("given", "reason", "detail"),
    [
        ({"id": "x", "bodi": "text"}, "unknown_field", "'bodi' is not a field; did you mean 'body'?"),
        ({"id": "x", "Body": "text"}, "unknown_field", "did you mean 'body'?"),
        ({"id": "x", "body": "text", "content": 1}, "unknown_field", "the fields are id, body, title, source, url, la"),
        ({5: "x"}, "unknown_field", "5 is not a field"),
        ({"body": "text"}, "missing_id", "id is missing"),
        ({"id": "x", "title": "t"}, "missing_body", "body is missing"),
        ({"id": None, "body": "text"}, "id_wrong_type", "id is None, not a string or an integer"),
        ({"id": True, "body": "text"}, "id_wrong_type", "id is of type bool, not a string or an integer"),
        ({"id": "x", "body": None}, "body_wrong_type", "body is None, not a string; a window takes no retractions"),
        ({"id": "x", "body": b"text"}, "body_wrong_type", "body is of type bytes, not a string"),
        ({"id": "x", "body": threading.Lock()}, "body_wrong_type", "body is of type lock, not a string"),
        ({"id": "x", "body": "text", "title": None}, "field_wrong_type", "title is None, not a string; leave it out"),
        ({"id": "x", "body": "text", "lang": ["en"]}, "field_wrong_type", "lang is of type list, not a string"),
        ({"id": "x", "body": "text", "published_at": nan}, "field_wrong_type", "published_at is nan, not a string or"),
        ({"id": "x", "body": "\0"}, "nul_character", "body contains a NUL character"),
    ],
)
def test_the_wrong_field_of_a_mapping_is_named(
    window: dupwatch.Window, given: dict[Any, Any], reason: str, detail: str
) -> None:
    """And which of several it is; nothing of the call is stored."""
    with pytest.raises(dupwatch.InvalidArticle) as alone:
        window.judge(given)
    assert (alone.value.reason, alone.value.index) == (reason, None)
    assert alone.value.id == (given.get("id") or "")
    assert detail in alone.value.detail
    with pytest.raises(dupwatch.InvalidArticle, match=f"at index 1: {reason}: ") as among:
        window.judge([A, given])
    assert (among.value.detail, among.value.index) == (alone.value.detail, 1)
    mixed: list[str | dupwatch.Article | dict[Any, Any]] = ["text", A, given]
    with pytest.raises(dupwatch.InvalidArticle, match=f"at index 2: {reason}: "):
        window.check(iter(mixed))
    assert window.check(A.body)[0].outcome == "unique"


def test_an_object_that_json_cannot_hold_is_named_too(window: dupwatch.Window) -> None:
    """By its field, as in a mapping, and not by the module that wrote the JSON."""
    with pytest.raises(dupwatch.InvalidArticle, match="article 'x': body_wrong_type: body is of type bytes"):
        window.judge(dupwatch.Article("x", b"text"))  # type: ignore[arg-type]


@dataclass(frozen=True)
class RatedArticle(dupwatch.Article):
    """An article of a caller who knows more of it."""

    rating: float = 0.5


def test_a_class_of_the_caller_may_have_more_fields(window: dupwatch.Window) -> None:
    """They are none of the window's."""
    (verdict,) = window.judge(RatedArticle("a", A.body))
    assert window.judge(dupwatch.Article("a", A.body)) == [verdict]


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        ({"id": 10**5_000, "body": "text"}, "id is an integer with too many digits"),
        ({"id": "x", "body": "text", "published_at": 10**5_000}, "published_at is an integer with too many digits"),
        ({"x" * 1_000_000: "text"}, "… is not a field; "),
        ({"id": "x" * 1_000_000, "body": "text"}, "id has more UTF-8 bytes than id_bytes_max"),
    ],
)
def test_a_value_of_any_size_has_a_short_message(window: dupwatch.Window, given: dict[Any, Any], detail: str) -> None:
    """Also one that Python refuses to write."""
    with pytest.raises(dupwatch.InvalidArticle) as refused:
        window.judge(given)
    assert detail in refused.value.detail
    assert len(str(refused.value)) < 600


def test_settings_come_from_a_file_too(url: str, tmp_path: Path) -> None:
    """And what is given with the call is laid over it."""
    config = tmp_path / "feed.toml"
    config.write_text('[source]\nbody_format = "html"\n[judge]\nsimilarity_min = 0.95\n', encoding="utf-8")
    with dupwatch.open(url, config=config, settings={"judge": {"similarity_min": 0.9}}) as window:
        assert window.check(f"<p>{A.body}<!-- {text(9)} -->")[0].outcome == "unique"
        window.judge(dupwatch.Article("a", f"<p>{A.body}"))
        assert window.check(f"<div>{A.body}<!-- {text(9)} -->")[0].repeats[0].id == "a"
    with opened_store(window._config, readonly=True) as store:
        assert json.loads(store.settings() or b"")["similarity_min"] == 0.9


def test_threads_take_turns(window: dupwatch.Window) -> None:
    """Each article has one verdict, whoever asks."""
    feed = [dupwatch.Article(article["id"], article["body"]) for article in articles(range(200))]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda start: window.judge(feed[start:] + feed[:start]), range(0, 200, 50)))
    by_id = [{verdict.id: verdict for verdict in verdicts} for verdicts in found]
    assert all(verdicts == by_id[0] for verdicts in by_id)
    assert sum(verdict.outcome == "unique" for verdict in found[0]) == 160


def test_no_two_calls_run_at_a_time(window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the calls are."""
    within: list[int] = []
    most: list[int] = []

    def slowly(*_: object) -> list[object]:
        within.append(1)
        most.append(len(within))
        time.sleep(0.02)
        within.pop()
        return []

    monkeypatch.setattr(window, "_judge", slowly)
    monkeypatch.setattr(window, "_versions", slowly)
    with ThreadPoolExecutor(4) as pool:
        for call in (window.judge, window.check) * 4:
            pool.submit(call, [A])
    assert most == [1] * 8


def _judged(url: str, feed: list[dupwatch.Article], answers: "multiprocessing.Queue[list[dupwatch.Verdict]]") -> None:
    with dupwatch.open(url) as window:
        answers.put([verdict for article in feed for verdict in window.judge(article)])


def test_processes_share_a_store(url: str) -> None:
    """Two that judge the same articles answer the same."""
    feed = [dupwatch.Article(article["id"], article["body"]) for article in articles(range(60))]
    dupwatch.open(url).close()
    spawning = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[list[dupwatch.Verdict]] = spawning.Queue()
    processes = [spawning.Process(target=_judged, args=(url, feed[::step], answers)) for step in (1, -1)]
    for process in processes:
        process.start()
    one, other = ({verdict.id: verdict for verdict in answers.get(timeout=180)} for _ in processes)
    for process in processes:
        process.join(180)
    assert one == other
    assert sum(verdict.outcome == "duplicate" for verdict in one.values()) == 12


def test_what_left_the_window_goes(machine: MachineClock, window: dupwatch.Window) -> None:
    """As in a run: a text that comes back later is new."""
    window.judge(A)
    machine.go_on(30 * DAY_S)
    (verdict,) = window.judge(B)
    assert verdict.outcome == "unique"
    assert window._store.history(window._versions([window._valid(A)])[0].record.id_hash) == []


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_clock_that_is_set_changes_no_window(machine: MachineClock, window: dupwatch.Window, jump_s: int) -> None:
    """What comes later repeats what came before, which is still there, and not the other way round."""
    window.judge(A)
    machine.set_wall(jump_s)
    (verdict,) = window.judge(B)
    assert (verdict.outcome, verdict.duplicate_of) == ("duplicate", "a")
    assert verdict.arrived_at == window.judge(A)[0].arrived_at


def test_a_window_that_opens_with_a_wrong_clock_loses_nothing(machine: MachineClock, url: str) -> None:
    """With the right clock again, a copy repeats what was there before."""
    with dupwatch.open(url) as window:
        window.judge(A)
    machine.set_wall(20 * DAY_S)
    machine.start_process()
    with dupwatch.open(url) as window:
        window.judge(dupwatch.Article("c", text(3)))
    machine.set_wall(-20 * DAY_S)
    machine.start_process()
    with dupwatch.open(url) as window:
        assert window.judge(B)[0].duplicate_of == "a"
