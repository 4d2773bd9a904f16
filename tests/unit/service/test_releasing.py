"""Retractions and releases over HTTP, and what is recorded of every change."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from typing_extensions import override

import dupwatch
from consumer.model.errors import SinkError
from consumer.web.audit_log import AuditLog, ChangeRecord
from tests.unit.service.kept_sink import KeptSink, answer_of
from tests.unit.service.serving import WAIT_S, Client, article, judging_of, served, wait_until_ready
from tests.unit.service.test_limits import problem_in, read_answer

URN = "urn:dupwatch:problem:"


def test_a_retraction_is_done_once(storing: Client, sink: KeptSink) -> None:
    """Its key again gets the same event, and does not end what came in between; another key does."""
    storing.store(article(1, "a"))
    first = storing.retract("a", "one")
    assert (first.status, first.json["outcome"], first.data) == (200, "retracted", sink.flushed[-1])
    assert storing.get("/v1/articles/a").json["retracted"] is True
    storing.store(article(2, "a"))
    assert storing.retract("a", "one").data == first.data
    assert storing.get("/v1/articles/a").json["retracted"] is False
    assert storing.retract("a", "two").data != first.data
    assert storing.get("/v1/articles/a").json["retracted"] is True
    assert storing.retract("a/b", "one").json["id"] == "a/b"


def test_a_text_comes_back_with_a_key(storing: Client) -> None:
    """Without one, and with the same one again, an article gets the verdict that it had; an owner has its own keys."""
    a, b = article(1, "a"), article(2, "a")
    first = [storing.store(each).json["results"][0] for each in (a, b, a)]
    assert first[2] == first[0]
    back = storing.store(a, idempotency_key="back")
    assert back.json["results"][0]["version"] != first[0]["version"]
    assert storing.store(b).json["results"] == [first[1]]
    assert storing.store(a, idempotency_key="back").data == back.data == storing.store(a).data
    assert (
        storing.store(article(1, "copy")).json["results"][0]["duplicate_of_version"]
        == (back.json["results"][0]["version"])
    )
    # The place in the request is part of the key, so that each of its articles can come back.
    bulk = storing.store(b, a, b, idempotency_key="bulk").json["results"]
    assert len({result["version"] for result in bulk}) == 3
    assert storing.store(b, a, b, idempotency_key="bulk").json["results"] == bulk
    assert storing.retract("a", "back").json["outcome"] == "retracted"
    assert storing.store(b, idempotency_key="bulk").json["results"] == bulk[:1]


@pytest.mark.parametrize("key", ["", "x" * 129])
def test_a_key_of_articles_that_is_none_is_refused(storing: Client, key: str) -> None:
    """Nothing is judged without the key that the client meant."""
    answer = storing.store(article(1, "a"), idempotency_key=key)
    assert (answer.status, answer.json["type"]) == (422, f"{URN}invalid-request")
    assert storing.get("/v1/articles/a").status == 404


@pytest.mark.parametrize(
    ("path", "headers", "limit"),
    [
        ("/v1/articles/a", {}, None),
        ("/v1/articles/a", {"idempotency_key": ""}, None),
        ("/v1/articles/a", {"idempotency_key": "x" * 129}, "key_chars_max"),
        (f"/v1/articles/{'a' * 513}", {"idempotency_key": "x"}, "id_bytes_max"),
        ("/v1/articles/a%00", {"idempotency_key": "x"}, None),
    ],
)
def test_a_retraction_without_a_key_or_of_no_id_is_refused(
    storing: Client, path: str, headers: dict[str, str], limit: str | None
) -> None:
    """A time-out would leave its sender without a way to repeat it."""
    answer = storing.ask("DELETE", path, None, **headers)
    assert (answer.status, answer.json["type"]) == (422, f"{URN}invalid-request")
    assert answer.json.get("limit", {}).get("name") == limit


def test_a_retraction_with_two_keys_is_refused(storing: Client) -> None:
    """A proxy, or what repeats it, may have looked at the other one."""
    keys = b"Idempotency-Key: one\r\nIdempotency-Key: two\r\n"
    with storing.connect() as connection:
        connection.sendall(b"DELETE /v1/articles/a HTTP/1.1\r\nHost: localhost\r\n" + keys + b"\r\n")
        assert problem_in(read_answer(connection))["type"] == f"{URN}invalid-request"
    assert storing.get("/v1/articles/a").status == 404


def test_a_release_keeps_the_article(storing: Client, sink: KeptSink) -> None:
    """The sink has its event; the same again gets the same bytes, and so does the article."""
    storing.store(article(1), article(1, "copy"))
    first = storing.release("copy", by="An Na", reason="the correction")
    assert (first.status, first.json["outcome"], first.data) == (200, "unique", sink.flushed[-1])
    assert (first.json["released"]["by"], first.json["released"]["reason"]) == ("An Na", "the correction")
    assert storing.release("copy", by="another", version=first.json["version"]).data == first.data
    assert storing.store(article(1, "copy")).data == answer_of([first.data])


@pytest.mark.parametrize(
    ("article_id", "body", "kind"),
    [
        ("none", {}, (404, "unknown-article")),
        ("copy", {"version": "00" * 16}, (404, "unknown-article")),
        ("copy", {"version": "zz"}, (404, "unknown-article")),
        ("a1", {}, (409, "not-flagged")),
        ("copy", {"by": ""}, (422, "invalid-request")),
        ("copy", {"reason": "x" * 2_001}, (422, "invalid-request")),
        ("copy", {"more": "x"}, (422, "invalid-request")),
    ],
)
def test_what_cannot_be_released_is_refused(
    storing: Client, article_id: str, body: dict[str, str], kind: tuple[int, str]
) -> None:
    """And nothing is changed."""
    storing.store(article(1), article(1, "copy"))
    answer = storing.release(article_id, **body)
    assert (answer.status, answer.json["type"]) == (kind[0], URN + kind[1])
    assert storing.get("/v1/articles/copy").json["history"][0]["verdict"]["outcome"] == "duplicate"


def test_a_release_that_the_sink_does_not_take_can_be_repeated(window: dupwatch.Window, sink: KeptSink) -> None:
    """The service writes no further verdicts behind one that may be half written."""
    with pytest.raises(SinkError), served(judging_of(window), sink) as client:  # noqa: PT012  # raised as it is left
        wait_until_ready(client)
        client.store(article(1), article(1, "copy"))
        sink.is_broken = True
        refused = client.release("copy")
        assert (refused.status, refused.json["type"]) == (503, f"{URN}outcome-unknown")
        sink.is_broken = False
        assert client.store(article(2)).json["type"] == f"{URN}outcome-unknown"
    assert len(sink.flushed) == 2
    with served(judging_of(window), sink) as other:
        wait_until_ready(other)
        assert other.release("copy").data == sink.flushed[-1]


def test_a_release_does_not_wait_for_a_sink_that_is_stuck(
    storing: Client, sink: KeptSink, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep a thread from those who check; what was being written goes on."""
    monkeypatch.setattr("consumer.service.answering.RELEASE_S", 0.1)
    storing.store(article(1), article(1, "copy"))
    sink.hold()
    waiting = pool.submit(storing.store, article(2))
    sink.wait_held()
    refused = storing.release("copy")
    sink.let_go()
    assert (refused.status, refused.json["type"]) == (503, f"{URN}outcome-unknown")
    assert waiting.result(WAIT_S).status == 200
    assert storing.release("copy").data == sink.flushed[-1]


class _Changes(AuditLog):
    """An audit log in memory, which may be full."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []
        self.is_full = False

    @override
    def append(self, changes: Sequence[ChangeRecord]) -> None:
        if self.is_full:
            raise SinkError("the disk is full")
        assert all(change.request_id for change in changes)
        self.changes += [(change.action, change.id, change.result) for change in changes]


def test_every_change_of_state_is_recorded_before_it_is_answered(window: dupwatch.Window, sink: KeptSink) -> None:
    """What cannot be recorded is not acknowledged, and is recorded when it is sent again."""
    audit = _Changes()
    with served(judging_of(window), sink, None, audit) as client:
        wait_until_ready(client)
        client.store(article(1), article(1, "copy"), {"id": "bad"})
        client.release("copy")
        client.retract("a1", "key")
        assert audit.changes == [
            ("articles.add", "a1", "unique"),
            ("articles.add", "copy", "duplicate"),
            ("articles.release", "copy", "unique"),
            ("articles.retract", "a1", "retracted"),
        ]
        audit.is_full = True
        assert [answer.status for answer in (client.store(article(2)), client.retract("a2", "k"))] == [503, 503]
        audit.is_full = False
        assert client.store(article(2)).status == 200
        assert audit.changes[-1] == ("articles.add", "a2", "unique")
