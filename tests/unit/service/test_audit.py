"""The audit log of the service: who has changed what, and what is answered where that cannot be recorded."""

import json
from pathlib import Path

import dupwatch
from consumer.service.writing import NO_OWNER
from consumer.web.audit_log import AuditLog
from consumer.web.token import Role, current_time
from storage.files import WriteOptions
from tests.unit.service.serving import judging_of, served, wait_until_ready
from tests.unit.web.token_samples import add

ARTICLE = {"id": "a", "body": "The harbour council opened the new ferry terminal."}


def audited(path: Path) -> AuditLog:
    """A log in this file."""
    return AuditLog(path, WriteOptions(durable=False, mode=0o600), lambda _: None)


def lines(path: Path) -> list[dict[str, object]]:
    """What was recorded."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_each_change_has_a_line(window: dupwatch.Window, tmp_path: Path) -> None:
    """With the token that asked for it, from where, and what came of it; a check changes nothing."""
    path, tokens = tmp_path / "audit.jsonl", tmp_path / "tokens.json"
    secret = add(tokens, "desk", *Role, now=current_time())
    with served(judging_of(window), None, None, audited(path), tokens=str(tokens)) as client:
        wait_until_ready(client)
        client.secret = secret
        assert client.check(ARTICLE).status == 200
        assert not lines(path)
        done = [client.store(ARTICLE, ARTICLE | {"id": "b"}), client.release("b"), client.retract("a", "key")]
        assert [answer.status for answer in done] == [200, 200, 200]
        assert client.store({"id": "c"}).status == 422
    stored, released, retracted = (answer.headers["x-request-id"] for answer in done)
    assert [(line["action"], line["id"], line["result"], line["request_id"]) for line in lines(path)] == [
        ("articles.add", "a", "unique", stored),
        ("articles.add", "b", "duplicate", stored),
        ("articles.release", "b", "unique", released),
        ("articles.retract", "a", "retracted", retracted),
    ]
    assert {(line["token"], line["address"]) for line in lines(path)} == {("desk", "127.0.0.1")}
    assert secret not in path.read_text()


def test_without_tokens_it_is_this_machine(window: dupwatch.Window, tmp_path: Path) -> None:
    """Nobody has a name then."""
    path = tmp_path / "audit.jsonl"
    with served(judging_of(window), None, None, audited(path)) as client:
        wait_until_ready(client)
        client.store(ARTICLE)
    (line,) = lines(path)
    assert (line["token"], line["owner"]) == (None, NO_OWNER)


def test_who_is_not_recorded_is_not_answered(window: dupwatch.Window, tmp_path: Path) -> None:
    """The client is told to send it again, and then it is recorded."""
    path = tmp_path / "audit.jsonl"
    with served(judging_of(window), None, None, audited(path)) as client:
        wait_until_ready(client)
        path.unlink()
        path.mkdir()
        refused = client.store(ARTICLE)
        assert (refused.status, refused.json["type"]) == (503, "urn:dupwatch:problem:outcome-unknown")
        path.rmdir()
        answered = client.store(ARTICLE)
        assert answered.status == 200
    assert [line["id"] for line in lines(path)] == ["a"]
