"""Checks over HTTP: they say what ``dupwatch.Window.check`` says, for every article in its place."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dupwatch
from consumer.decode.article import FieldMap
from consumer.judge.detector import Detector
from consumer.model.verdict import MATCHES_MAX
from storage.interface import Store
from storage.records import Version
from tests.cli.command import articles, text
from tests.unit.service.serving import Client, judging_of, served, wait_until_ready

A = dupwatch.Article("a", text(1), title="First", url="https://feed.example/a")
DAY_S = 86_400


def said(check: dupwatch.Check) -> dict[str, Any]:
    """A check of a window, as the service has it."""
    shown: dict[str, Any] = {
        "outcome": check.outcome,
        "text_kind": check.text_kind,
        "truncated": check.truncated,
        "pending": check.pending,
    }
    if check.repeats:
        shown["matches_found"] = len(check.repeats)
        shown["matches"] = [
            {
                "id": each.id,
                "version": each.version,
                "title": each.title,
                "distance": each.distance,
                "similarity": each.similarity,
                "shared_keywords": list(each.shared_keywords),
            }
            for each in check.repeats[:MATCHES_MAX]
        ]
    if check.seen_before is not None:
        shown["seen_before"] = msgspec.to_builtins(check.seen_before)
    if check.parts:
        shown["parts"] = [msgspec.to_builtins(part) for part in check.parts]
    if check.ended_before is not None:
        shown["ended_before"] = msgspec.to_builtins(check.ended_before)
    return shown


def common_part(result: dict[str, Any]) -> dict[str, Any]:
    """A result of the service, without what a window does not say."""
    shown = {name: value for name, value in result.items() if name != "id"}
    if "matches" in shown:
        left_out = {"url", "arrived_at", "cluster"}
        shown["matches"] = [
            {name: value for name, value in match.items() if name not in left_out} for match in shown["matches"]
        ]
    return shown


def near_copies(story: str, count: int) -> list[str]:
    """Texts that each have a word of the story changed."""
    words = story.split()
    return [" ".join([*words[:place], f"other{place}", *words[place + 1 :]]) for place in range(count)]


@pytest.mark.parametrize("settings", [{}, {"judge": {"parts": True, "seen_days": 30}}], ids=["plain", "besides"])
@pytest.mark.parametrize("kind", ["memory", "lmdb"])
def test_a_check_says_what_a_window_says(tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    """All fields, for originals, copies, articles that are stored already, and texts alone; over two batches."""
    chance = random.Random(3)
    feed = articles(range(150))
    asked: list[dict[str, Any]] = []
    for article in chance.choices(feed, k=300):
        shape = chance.randrange(3)
        body = article["body"] if shape else f"{article['body']} {text(chance.randrange(1_000), 30)}"
        asked.append({"body": body} | ({"id": article["id"]} if shape == 1 else {}))
    url = "memory:" if kind == "memory" else f"lmdb:{tmp_path / 'store'}"
    with dupwatch.open(url, settings=settings) as window:
        window.judge(dupwatch.Article(article["id"], article["body"]) for article in feed)
        expected = window.check(
            dupwatch.Article(each["id"], each["body"]) if "id" in each else each["body"] for each in asked
        )
        with served(judging_of(window)) as client:
            wait_until_ready(client)
            results = client.check(*asked).json["results"]
    assert [common_part(result) for result in results] == [said(check) for check in expected]
    assert [result["id"] for result in results] == [each.get("id") for each in asked]
    assert sum(result["outcome"] == "duplicate" for result in results) > 100
    assert bool(settings) == any("parts" in result for result in results)


def test_a_check_says_how_a_text_is_compared(client: Client) -> None:
    """A short one, too, which repeats only an equal text."""
    thai = "".join(chr(0xE01 + number * 7 % 40) + chr(0xE01 + number * 11 % 41) for number in range(60))
    bodies = {"long": text(1), "short": "Ferry late", "shingled": thai, "empty": ""}
    results = client.check(*({"body": body} for body in bodies.values())).json["results"]
    assert [result["text_kind"] for result in results] == list(bodies)


def test_a_match_has_its_evidence(window: dupwatch.Window, client: Client) -> None:
    """Also where the article is stored, its title, its arrival, and the story that it is."""
    (verdict,) = window.judge(A)
    (result,) = client.check({"body": f"{text(1)} too"}).json["results"]
    (match,) = result["matches"]
    assert match["arrived_at"] == verdict.arrived_at
    assert (match["url"], match["title"], match["cluster"], match["id"]) == (A.url, A.title, "a", "a")


def test_of_many_matches_the_best_are_answered_and_all_are_counted(window: dupwatch.Window, client: Client) -> None:
    """Near copies that are all kept, since nobody is flagged while they arrive."""
    story = text(1, 200)
    with dupwatch.open("memory:", settings={"rules": {"wire": {"flag": "never"}}}) as lenient:
        lenient.judge(
            dupwatch.Article(f"{place}", each, source="wire") for place, each in enumerate(near_copies(story, 9))
        )
        with served(judging_of(lenient)) as other:
            wait_until_ready(other)
            (result,) = other.check({"body": story}).json["results"]
            (check,) = lenient.check(story)
    assert (len(result["matches"]), result["matches_found"]) == (MATCHES_MAX, 9)
    assert [match["id"] for match in result["matches"]] == [each.id for each in check.repeats[:MATCHES_MAX]]


def test_nothing_is_stored(window: dupwatch.Window, client: Client) -> None:
    """A check leaves no trace that another one finds."""
    store: Store = window._store
    assert client.check({"id": "b", "body": text(1)}, {"body": text(1)}).status == 200
    assert list(store.scan()) == []
    assert client.check({"body": text(1)}).json["results"][0]["outcome"] == "unique"


def test_a_near_article_that_is_still_judged_is_said_to_be_pending(window: dupwatch.Window, client: Client) -> None:
    """As where a consumer was killed between storing it and deciding about it."""
    (version,) = window._versions([window._valid(A)])
    store: Store = window._store
    store.create([version])
    store.add([version.record])
    (result,) = client.check({"body": f"{text(1)} too"}).json["results"]
    assert (result["outcome"], result["pending"]) == ("unique", True)


def test_an_invalid_article_costs_the_others_nothing(window: dupwatch.Window, client: Client) -> None:
    """It has its own problem in its place."""
    window.judge(A)
    wrong: list[object] = [{"id": "b"}, 7, {"body": 1}, {"body": "x", "title": 8}, {"id": "", "body": "x"}, None]
    answer = client.check({"body": text(1)}, *wrong, {"id": 12, "body": text(2)})
    results = answer.json["results"]
    assert answer.status == 200
    assert [result["outcome"] for result in results] == ["duplicate", *["error"] * len(wrong), "unique"]
    reasons = [result["problem"]["reason"] for result in results[1:-1]]
    assert reasons == [
        "missing_body", "not_an_object", "body_wrong_type", "field_wrong_type", "empty_id", "not_an_object",
    ]  # fmt: skip
    assert results[1]["problem"]["type"] == "urn:dupwatch:problem:invalid-article"
    assert "title" in results[4]["problem"]["detail"]
    assert (results[1]["id"], results[-1]["id"]) == ("b", "12")


def test_the_article_that_will_be_stored_can_be_checked_as_it_is(window: dupwatch.Window, client: Client) -> None:
    """With its time, and with members that are no fields; they change nothing."""
    window.judge(A)
    more = {"published_at": "2026-11-23T20:00:00Z", "desk": {"name": "city"}}
    assert client.check({"id": "b", "body": text(1)} | more).json == client.check({"id": "b", "body": text(1)}).json


def test_fields_are_where_those_of_a_feed_are(window: dupwatch.Window) -> None:
    """As ``source.fields`` says, for checks as for articles to store."""
    window.judge(A)
    named = replace(judging_of(window), fields=FieldMap(id="meta.id", body="content"))
    with served(named) as client:
        wait_until_ready(client)
        given = {"meta": {"id": "b"}, "content": text(1)}
        results = client.check(given, {"content": text(2)}, {"meta": {"id": "c"}, "body": text(1)}).json["results"]
    assert [(result["id"], result["outcome"]) for result in results] == [
        ("b", "duplicate"), (None, "unique"), ("c", "error"),
    ]  # fmt: skip
    assert results[2]["problem"]["detail"] == "the article has no content"


def test_a_request_of_which_no_article_is_valid_is_refused(client: Client) -> None:
    """Also one with a single article: who looks at the status alone must not take it for checked."""
    answer = client.check({"title": "no body"}, "text")
    assert answer.status == 422
    assert answer.json["type"] == "urn:dupwatch:problem:invalid-article"
    assert (answer.json["reason"], answer.json["detail"].count("no body")) == ("missing_body", 1)
    assert [(each["place"], each["problem"]["reason"]) for each in answer.json["articles"]] == [
        (0, "missing_body"), (1, "not_an_object"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b'{"articles": []}',
        b'{"articles": {}}',
        b'{"articles": [{"body": "x"}], "more": 1}',
        b'{"articles": [{"body": "\xff"}]}',
        b'{"articles": [{"body": "\\ud800"}]}',
        b'{"articles": [{"body": "x", "id": 1e999}]}',
    ],
)
def test_a_request_that_is_none_is_refused(client: Client, body: bytes) -> None:
    """The answer says what to send."""
    answer = client.send(body)
    assert (answer.status, answer.json["type"]) == (422, "urn:dupwatch:problem:invalid-request")
    assert answer.json["detail"].endswith(".")


@pytest.mark.parametrize(
    "headers", [{"content_type": "text/plain"}, {"content_type": "application/json", "content_encoding": "gzip"}]
)
def test_a_body_of_another_type_is_refused(client: Client, headers: dict[str, str]) -> None:
    """A page in a browser can send plain text anywhere without asking."""
    answer = client.check({"body": "x"}, **headers)
    assert (answer.status, answer.json["type"]) == (415, "urn:dupwatch:problem:media-type")


def test_texts_are_counted_by_what_was_answered(window: dupwatch.Window, client: Client) -> None:
    """Those that cannot be checked as errors."""
    window.judge(A)
    client.check({"body": text(1)}, {"body": text(2)}, {"body": text(3)}, {})
    client.check({})
    counts = {
        outcome: client.metric(f'dupwatch_texts_checked_total{{outcome="{outcome}"}}')
        for outcome in ("unique", "duplicate", "error")
    }
    assert counts == {"unique": 2, "duplicate": 1, "error": 2}


def test_all_texts_of_a_request_are_looked_up_together(
    window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches as large as those of a run."""
    asked: list[int] = []
    really: Callable[[Detector, Sequence[Version]], list[Any]] = Detector.query

    def noted(self: Detector, versions: Sequence[Version]) -> list[Any]:
        asked.append(len(versions))
        return really(self, versions)

    monkeypatch.setattr(Detector, "query", noted)
    with served(judging_of(window)) as client:
        wait_until_ready(client)
        body = json.dumps({"articles": [{"body": "x"}] * 300}).encode()
        assert len(client.send(body).json["results"]) == 300
    assert asked == [256, 44]
