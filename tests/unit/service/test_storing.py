"""Articles over HTTP: judged and stored as a feed's are, and answered once the sink has the verdicts."""

import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import dupwatch
from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks
from consumer.model.limits import DecodeLimits
from consumer.pipeline.batches import BatchCommitted
from tests.cli.command import text, wait_for
from tests.unit.service.gate import Gate
from tests.unit.service.kept_sink import KeptSink, answer_of
from tests.unit.service.serving import WAIT_S, Answer, Client, article, judging_of, served, wait_until_ready

SOON_S = 0.4
URN = "urn:dupwatch:problem:"


def stored(client: Client, given: object) -> Answer:
    """Send an article until it is answered: on a busy machine that may take longer than it is given."""
    answers: list[Answer] = []

    def is_answered() -> bool:
        answers.append(client.store(given))
        return answers[-1].status == 200

    wait_for(is_answered, WAIT_S)
    return answers[-1]


def held(client: Client, sink: KeptSink, pool: ThreadPoolExecutor, number: int) -> "Future[Answer]":
    """Send an article that is judged, and whose verdict the sink does not take."""
    sink.hold()
    waiting = pool.submit(client.store, article(number))
    sink.wait_held()
    return waiting


def test_articles_are_judged_in_their_order(storing: Client, window: dupwatch.Window, sink: KeptSink) -> None:
    """The answer has the events, byte for byte as the sink has them, and the store has the versions."""
    answer = storing.store(article(1), article(1, "copy"), article(2))
    assert answer.status == 200
    assert [each["outcome"] for each in answer.json["results"]] == ["unique", "duplicate", "unique"]
    assert answer.json["results"][1]["duplicate_of"] == "a1"
    assert answer.data == answer_of(sink.flushed)
    assert window.check(text(2))[0].repeats[0].id == "a2"


def test_an_answer_says_how_texts_are_compared(storing: Client, sink: KeptSink) -> None:
    """Beside the events, which stay as the store has them; sent again it says the same, and so does the history."""
    given = article(1), {"id": "short", "body": "Ferry late"}, {"id": "none"}, {"id": "empty", "body": ""}
    first, again = storing.store(*given), storing.store(*given)
    assert first.data == again.data
    assert first.json["text_kinds"] == ["long", "short", None, "empty"]
    assert all("text_kind" not in json.loads(event) for event in sink.flushed)
    assert storing.get("/v1/articles/short").json["history"][0]["text_kind"] == "short"


def test_an_answer_waits_for_the_sink(storing: Client, sink: KeptSink, pool: ThreadPoolExecutor) -> None:
    """The store has the verdict long before."""
    waiting = held(storing, sink, pool, 1)
    assert storing.get("/v1/articles/a1").json["history"][0]["verdict"]["outcome"] == "unique"
    assert not waiting.done()
    sink.let_go()
    assert waiting.result(WAIT_S).data == answer_of(sink.flushed)


def test_a_sink_that_fails_ends_the_service(window: dupwatch.Window, sink: KeptSink, pool: ThreadPoolExecutor) -> None:
    """Nobody is told that his article was taken; sent again to another service, it gets the verdict that was stored."""
    with pytest.raises(SinkError, match="disk is full"), served(judging_of(window), sink) as client:  # noqa: PT012  # raised as it is left
        wait_until_ready(client)
        waiting = held(client, sink, pool, 1)
        sink.is_broken = True
        sink.let_go()
        refused = waiting.result(WAIT_S)
        assert (refused.status, refused.json["type"]) == (503, f"{URN}outcome-unknown")
        assert refused.headers["retry-after"] == "5"
    stored = window.judge(dupwatch.Article("a1", text(1)))
    with served(judging_of(window), KeptSink()) as other:
        wait_until_ready(other)
        (result,) = other.store(article(1)).json["results"]
    assert result["decided_at"] == stored[0].decided_at


def test_an_article_that_is_sent_again_gets_the_same_bytes(
    storing: Client, window: dupwatch.Window, sink: KeptSink
) -> None:
    """Also from another service over the store, and when others have come in between."""
    first = storing.store(article(1, source="wire"), article(1, "copy"))
    storing.store(article(2, "a1"))
    with served(judging_of(window), sink) as other:
        wait_until_ready(other)
        assert [client.store(article(1, source="wire"), article(1, "copy")).data for client in (storing, other)] == [
            first.data, first.data,
        ]  # fmt: skip


def test_two_versions_of_an_id_are_judged_in_order(storing: Client) -> None:
    """In one request: the second one ends the first."""
    results = storing.store(article(1, "a"), article(2, "a"), article(1, "a")).json["results"]
    assert results[0] == results[2]
    history = storing.get("/v1/articles/a").json["history"]
    assert [entry["version"] for entry in history] == [results[0]["version"], results[1]["version"]]
    assert history[0]["ends_at"] == history[1]["arrived_at"]


@pytest.mark.parametrize(
    ("given", "reason", "limit"),
    [
        ({"body": "x"}, "missing_id", None),
        ({"id": "x"}, "missing_body", None),
        ({"id": "x", "body": None}, "missing_body", None),
        ({"id": "x", "body": 5}, "body_wrong_type", None),
        ({"id": "x" * 513, "body": "y"}, "id_too_long", "id_bytes_max"),
        ("no article", "not_an_object", None),
        ({"id": "x", "body": "y" * 1_000_001}, "body_too_long", "body_chars_max"),
    ],
)
def test_an_invalid_article_costs_the_others_nothing(
    storing: Client, sink: KeptSink, given: object, reason: str, limit: str | None
) -> None:
    """It is refused as a feed refuses it, in its place; alone, the request is refused."""
    mixed, alone = storing.store(article(1), given, article(2)), storing.store(given)
    assert [each["outcome"] for each in mixed.json["results"]] == ["unique", "error", "unique"]
    for problem in (mixed.json["results"][1]["problem"], alone.json):
        assert (problem["reason"], problem.get("limit", {}).get("name")) == (reason, limit)
    assert (alone.status, alone.json["type"]) == (422, f"{URN}invalid-article")
    assert len(sink.flushed) == 2
    if limit is not None:
        assert storing.limits_met(limit) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b'{"articles": []}', b'{"articles": {}}', b'{"articles": [], "more": 1}', b'{"articles": [1',
        b'{"articles": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", b"\xff",
    ],
)  # fmt: skip
def test_a_body_that_is_no_list_of_articles_is_refused(storing: Client, body: bytes) -> None:
    """All of it, and nothing is stored."""
    answer = storing.ask("POST", "/v1/articles", body, content_type="application/json")
    assert (answer.status, answer.json["type"]) == (422, f"{URN}invalid-request")


def test_more_values_than_allowed_are_refused_before_they_are_read(storing: Client) -> None:
    """They would fill the memory."""
    body = b'{"articles": [' + b"1," * DecodeLimits().values_max + b"1]}"
    answer = storing.ask("POST", "/v1/articles", body, content_type="application/json")
    assert (answer.status, answer.json["limit"]["name"]) == (422, "values_max")


def test_too_many_articles_are_refused(window: dupwatch.Window) -> None:
    """As many as allowed are not."""
    with served(judging_of(window), articles_max=2) as client:
        wait_until_ready(client)
        assert client.store(article(1), article(2), article(3)).json["limit"] == {"name": "articles_max", "value": 2}
        assert client.store(article(1), article(2)).status == 200


def test_a_request_that_takes_too_long_is_told_to_come_again(
    window: dupwatch.Window, sink: KeptSink, pool: ThreadPoolExecutor
) -> None:
    """It may still be stored; sent again, it gets the verdict that was."""
    with served(judging_of(window), sink, answer_s=SOON_S) as client:
        wait_until_ready(client)
        try:
            late = held(client, sink, pool, 1).result(WAIT_S)
        finally:
            sink.let_go()
        assert (late.status, late.json["type"]) == (503, f"{URN}outcome-unknown")
        assert late.json["limit"] == {"name": "answer_s", "value": SOON_S}
        assert "Send it again" in late.json["detail"]
        wait_for(lambda: len(sink.flushed) == 1, WAIT_S)
        assert stored(client, article(1)).data == answer_of(sink.flushed[:1])


def test_requests_are_judged_together(storing: Client, sink: KeptSink, pool: ThreadPoolExecutor) -> None:
    """Those that come while a batch is written are the next batch, and each gets its own verdicts."""
    waiting = [held(storing, sink, pool, 0)]
    waiting += [pool.submit(storing.store, article(number)) for number in range(1, 9)]
    wait_for(lambda: storing.metric("dupwatch_inbox_records") == 9, WAIT_S)
    assert storing.metric("dupwatch_inbox_bytes") > 9 * len(text(0)) / 2
    sink.let_go()
    for number, each in enumerate(waiting):
        assert [result["id"] for result in each.result(WAIT_S).json["results"]] == [f"a{number}"]
    assert sink.batches == [1, 8]
    assert storing.metric("dupwatch_inbox_records") == storing.metric("dupwatch_inbox_bytes") == 0
    assert storing.metric("dupwatch_inbox_seconds_count") == 9


@pytest.mark.parametrize(
    ("limit", "settings"),
    [
        ("inbox_records_max", {"articles_max": 1, "inbox_records_max": 1}),
        ("inbox_bytes_max", {"body_bytes_max": 600, "inbox_bytes_max": 600}),
    ],
)
def test_a_full_inbox_refuses_and_forgets_nobody(
    window: dupwatch.Window, sink: KeptSink, pool: ThreadPoolExecutor, limit: str, settings: dict[str, int]
) -> None:
    """Once there is room, who was refused is taken."""
    with served(judging_of(window), sink, **settings) as client:
        wait_until_ready(client)
        try:
            waiting = held(client, sink, pool, 1)
            refused = client.store(article(2))
        finally:
            sink.let_go()
        assert (refused.status, refused.json["type"], refused.headers["retry-after"]) == (503, f"{URN}busy", "1")
        assert refused.json["limit"]["name"] == limit
        assert client.limits_met(limit) == 1
        assert waiting.result(WAIT_S).status == 200
        assert client.store(article(2)).status == 200
        assert len(sink.flushed) == 2


def test_while_the_store_is_away_nothing_is_taken(
    window: dupwatch.Window, sink: KeptSink, pool: ThreadPoolExecutor
) -> None:
    """What was taken before is judged once it is back, and later requests are refused at once."""
    gate = Gate()
    with served(judging_of(window, gate.around(window._store)), sink, answer_s=SOON_S) as client:
        wait_until_ready(client)
        gate.is_away = True
        try:
            late = client.store(article(1))
            wait_for(lambda: client.get("/readyz").status == 503, WAIT_S)
            refused = [client.store(article(2)), client.retract("a2", "key")]
        finally:
            gate.is_away = False
        assert (late.status, late.json["type"]) == (503, f"{URN}outcome-unknown")
        assert [(answer.status, answer.json["type"]) for answer in refused] == [(503, f"{URN}not-ready")] * 2
        wait_until_ready(client)
        wait_for(lambda: len(sink.flushed) == 1, WAIT_S)
        assert stored(client, article(1)).data == answer_of(sink.flushed[:1])


def test_what_was_taken_is_answered_before_the_service_ends(
    window: dupwatch.Window, sink: KeptSink, pool: ThreadPoolExecutor
) -> None:
    """Also what waits for the next batch."""
    with served(judging_of(window), sink) as client:
        wait_until_ready(client)
        waiting = [held(client, sink, pool, 0), *(pool.submit(client.store, article(number)) for number in (1, 2))]
        wait_for(lambda: client.metric("dupwatch_inbox_records") == 3, WAIT_S)
        threading.Timer(SOON_S, sink.let_go).start()
    assert [each.result(WAIT_S).status for each in waiting] == [200] * 3
    assert len(sink.flushed) == 3


def test_a_text_that_was_retracted_is_named_when_it_is_sent_again(storing: Client, window: dupwatch.Window) -> None:
    """By a check, by the verdict, and by a check from Python."""
    storing.store(article(1))
    storing.retract("a1", "key")
    (check,) = storing.check(article(1, "again")).json["results"]
    (verdict,) = storing.store(article(1, "again")).json["results"]
    assert check["outcome"] == verdict["outcome"] == "unique"
    assert check["ended_before"] == verdict["ended_before"]
    assert verdict["ended_before"]["id"] == "a1"
    storing.retract("again", "key")
    (found,) = window.check(text(1))
    assert found.ended_before is not None
    assert found.ended_before.id == "again"
    assert storing.metric("dupwatch_ended_before_total") == 1


@pytest.mark.parametrize(("given", "status"), [(article(1), 200), ({"id": "bad"}, 422)])
def test_what_is_answered_was_counted_before(
    window: dupwatch.Window, pool: ThreadPoolExecutor, given: dict[str, object], status: int
) -> None:
    """Verdicts and refusals: what counts them may take its time, and until then nobody is told."""
    hooks, counting, counted = Hooks(), threading.Event(), threading.Event()

    def count(_: BatchCommitted) -> None:
        counting.set()
        counted.wait(WAIT_S)

    hooks.on(BatchCommitted, count)
    with served(judging_of(window), None, hooks) as client:
        wait_until_ready(client)
        waiting = pool.submit(client.store, given)
        assert counting.wait(WAIT_S)
        try:
            with pytest.raises(TimeoutError):
                waiting.result(SOON_S / 2)
        finally:
            counted.set()
        assert waiting.result(WAIT_S).status == status


def test_verdicts_are_counted_as_those_of_a_consumer(storing: Client) -> None:
    """On the same dashboards."""
    storing.store(article(1), article(1, "copy"), {"id": "bad"})
    assert storing.metric('dupwatch_articles_total{outcome="duplicate"}') == 1
    assert storing.metric('dupwatch_dead_letters_total{reason="missing_body"}') == 1
    assert storing.metric("dupwatch_batch_records_sum") == 3


def test_the_examples_of_the_document_are_answered(storing: Client) -> None:
    """With answers of the shape that it shows: a flag of a copy."""
    add = storing.get("/openapi.json").json["paths"]["/v1/articles"]["post"]
    given = add["requestBody"]["content"]["application/json"]["example"]
    shown = add["responses"]["200"]["content"]["application/json"]["example"]["results"]
    original = {"articles": [{**given["articles"][0], "id": shown[0]["duplicate_of"], "source": "wire"}]}
    for articles in (original, given):
        sent = json.dumps(articles).encode()
        found = storing.ask("POST", "/v1/articles", sent, content_type="application/json").json
    assert [each["outcome"] for each in found["results"]] == [each["outcome"] for each in shown]
    assert shown
    assert [set(each) for each in found["results"]] == [set(each) for each in shown]
