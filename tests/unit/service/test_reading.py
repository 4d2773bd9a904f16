"""Articles, explanations and stats over HTTP."""

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

import dupwatch
from consumer.judge.versions import ArrivalTime, tombstone
from consumer.service import reading
from consumer.store_tools.explanation import compared_article, explain_pair, plain_values
from storage.interface import Store
from storage.records import Tombstone, id_hash
from tests.cli.command import text
from tests.unit.service.serving import Client, judging_of, served, wait_until_ready

NAMES = [
    "plain",
    "a/b",
    "a/b/explain/c",
    "a?b=c&d",
    "a#b",
    "100%",
    "%2F",
    "a b",
    "..",
    ".",
    "../../etc/passwd",
    "//",
    "/",
    "explain",
    "新聞/一",
    "\N{PILE OF POO}",
    "a\nb\tc",
    "a+b",
    "é",
    "quote\"s'",
    "a;b,c",
    "x" * 512,
]


def path_of(article_id: str, rest: str = "") -> str:
    """The path of an article, with every reserved character percent-encoded."""
    return f"/v1/articles/{quote(article_id, safe='')}{rest}"


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_ids_of_any_characters_work_in_paths(window: dupwatch.Window, client: Client, name: str) -> None:
    """Where they are on their own, and on both sides of an explanation."""
    window.judge([dupwatch.Article("other/one", text(1)), dupwatch.Article(name, f"{text(1)} too")])
    answer = client.get(path_of(name))
    assert (answer.status, answer.json["id"]) == (200, name)
    there = client.get(path_of(name, f"/explain/{quote('other/one', safe='')}"))
    back = client.get(path_of("other/one", f"/explain/{quote(name, safe='')}"))
    assert [(each.status, each.json["a"]["id"], each.json["b"]["id"]) for each in (there, back)] == [
        (200, name, "other/one"), (200, "other/one", name),
    ]  # fmt: skip


def test_an_article_has_its_history_and_its_chain(window: dupwatch.Window, client: Client) -> None:
    """All versions and their verdicts, its retraction, and the article that it goes back to."""
    first, second = window.judge([dupwatch.Article("a", text(1), title="A"), dupwatch.Article("b", f"{text(1)} too")])
    (third,) = window.judge(dupwatch.Article("b", text(2), title="B", url="https://feed.example/b"))
    before = client.get(path_of("b")).json
    assert [entry["verdict"]["outcome"] for entry in before["history"]] == ["duplicate", "unique"]
    assert before["history"][0]["verdict"]["duplicate_of"] == "a"
    assert [entry["version"] for entry in before["history"]] == [second.version, third.version]
    assert before["history"][0]["ends_at"] == before["history"][1]["arrived_at"]
    assert [link["id"] for link in before["chain"]] == ["b"]
    assert before["retracted"] is False
    window.judge(dupwatch.Article("c", f"{text(1)} three"))
    chain = client.get(path_of("c")).json["chain"]
    assert [(link["id"], link["outcome"], link["title"]) for link in chain] == [
        ("c", "duplicate", ""), ("a", "unique", "A"),
    ]  # fmt: skip
    assert chain[1]["version"] == first.version


def test_a_retraction_is_part_of_the_history(window: dupwatch.Window, client: Client) -> None:
    """An article that was only ever retracted has no chain."""
    window.judge(dupwatch.Article("a", text(1)))
    store: Store = window._store
    (version,) = store.history(id_hash("a"))
    assert not isinstance(version, Tombstone)
    at = version.record.arrival._replace(time_ms=version.record.time_ms + 5)
    store.retract(
        [tombstone(name, ArrivalTime(at.time_ms, at.sequence), name.encode(), at.time_ms) for name in ("a", "never")]
    )
    answer = client.get(path_of("a")).json
    assert [entry["kind"] for entry in answer["history"]] == ["version", "retraction"]
    assert answer["retracted"] is True
    never = client.get(path_of("never")).json
    assert (never["retracted"], never["chain"]) == (True, [])


@pytest.mark.parametrize(
    "path",
    [path_of("b"), path_of("b", "/explain/a"), path_of("a", "/explain/b"), f"{path_of('a')}/explain/a?version=00"],
)
def test_what_is_not_stored_is_not_found(window: dupwatch.Window, client: Client, path: str) -> None:
    """An id, either side of an explanation, and a version."""
    window.judge(dupwatch.Article("a", text(1)))
    answer = client.get(path)
    assert (answer.status, answer.json["type"]) == (404, "urn:dupwatch:problem:unknown-article")
    assert answer.json["detail"].endswith(".")


@pytest.mark.parametrize("path", ["/v1/articles/%FF", "/v1/articles/a/explain/%C3"])
def test_an_id_that_is_not_utf_8_is_refused(client: Client, path: str) -> None:
    """No stored id can be meant."""
    answer = client.get(path)
    assert (answer.status, answer.json["type"]) == (422, "urn:dupwatch:problem:invalid-request")


def test_an_explanation_is_that_of_the_command(window: dupwatch.Window, client: Client) -> None:
    """All conditions, and the difference; of the latest versions, or of those that are named."""
    first, _ = window.judge([dupwatch.Article("a", text(1)), dupwatch.Article("b", f"{text(1)} too")])
    window.judge(dupwatch.Article("a", text(2)))
    judging = judging_of(window)
    for version, query in ((None, ""), (first.version, f"?version={first.version}")):
        sides = [
            compared_article(judging.store, "memory:", "a", version),
            compared_article(judging.store, "memory:", "b"),
        ]
        expected = plain_values(explain_pair(sides[0], sides[1], judging.settings, judging.lexicon))
        answer = client.get(f"{path_of('a')}/explain/b{query}")
        assert answer.json == json.loads(json.dumps(expected))
    assert client.get(f"{path_of('a')}/explain/b?version={'0' * 65}").status == 422
    # Where the store is, is nobody's business.
    assert " in the store" in client.get(f"{path_of('a')}/explain/b?version=00").json["detail"]


@pytest.mark.parametrize("kind", ["memory", "lmdb"])
def test_stats_say_what_the_store_holds(tmp_path: Path, kind: str) -> None:
    """On a store of this machine all is counted: a copy and an article that was replaced are not in force as kept."""
    with dupwatch.open("memory:" if kind == "memory" else f"lmdb:{tmp_path / 'store'}") as window:
        window.judge(dupwatch.Article(f"{number}", text(number)) for number in range(5))
        window.judge([dupwatch.Article("copy", text(1)), dupwatch.Article("short", "x"), dupwatch.Article("0", "")])
        with served(judging_of(window)) as client:
            wait_until_ready(client)
            answer = client.get("/v1/stats").json
    assert (answer["counts"]["versions"], answer["counts"]["pending"], answer["plan"]) == (8, 0, "4x16")
    assert answer["window"] == {"articles": 6, "error": 0}


def test_stats_of_an_empty_store_guess_nothing(window: dupwatch.Window) -> None:
    """It has no article; a sample of a remote store cannot tell, and says so."""
    for is_remote, expected in ((False, {"articles": 0, "error": 0}), (True, {"articles": None, "error": None})):
        with served(replace(judging_of(window), is_remote=is_remote)) as client:
            wait_until_ready(client)
            assert client.get("/v1/stats").json["window"] == expected


def test_stats_are_counted_once_for_all_who_ask(
    window: dupwatch.Window, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And again once they are too old."""
    first = client.get("/v1/stats").json
    window.judge(dupwatch.Article("a", text(1)))
    assert client.get("/v1/stats").json == first
    monkeypatch.setattr(reading, "FRESH_S_MIN", 0.0)
    monkeypatch.setattr(reading, "_REUSE_FACTOR", 0)
    with served(judging_of(window)) as other:
        wait_until_ready(other)
        assert [other.get("/v1/stats").json["counts"]["versions"] for _ in range(2)] == [1, 1]
        window.judge(dupwatch.Article("b", text(2)))
        assert other.get("/v1/stats").json["counts"]["versions"] == 2
