"""Who is let in: every route with every role and every kind of credentials, and what is told to whom."""

import json
import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import dupwatch
from consumer.banks.bank import Bank, BankItem
from consumer.files.bank_file import BankFile
from consumer.lifecycle import background
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.telemetry.health import HEARTBEAT_MAX_S
from consumer.telemetry.spans import RequestSpans
from consumer.web import known_tokens
from consumer.web.requests import HEAD_BYTES_MAX, SERVICE
from consumer.web.token import Role, current_time, new_secret
from consumer.web.token_file import Signature, Tokens, load, revoke_token
from storage.files import WriteOptions
from tests.cli.command import wait_for
from tests.unit.service.serving import WAIT_S, Answer, Client, judging_of, served, wait_until_ready
from tests.unit.service.test_limits import problem_in, read_all, read_answer
from tests.unit.web.token_samples import add

ITEMS: Final = (Role.REVIEWER, Role.ADMIN)
"""Routes of items are for either role; which of the two depends on the bank."""
ROUTES: Final[dict[tuple[str, str], tuple[Role, ...]]] = {
    ("GET", "/healthz"): (),
    ("GET", "/readyz"): (),
    ("GET", "/"): (),
    ("GET", "/docs"): (),
    ("GET", "/openapi.json"): (),
    ("GET", "/metrics"): (Role.READER,),
    ("POST", "/v1/check"): (Role.READER,),
    ("GET", "/v1/articles/{id}"): (Role.READER,),
    ("GET", "/v1/articles/{id}/explain/{other}"): (Role.READER,),
    ("GET", "/v1/stats"): (Role.READER,),
    ("POST", "/v1/articles"): (Role.WRITER,),
    ("DELETE", "/v1/articles/{id}"): (Role.WRITER,),
    ("POST", "/v1/articles/{id}/release"): (Role.REVIEWER,),
    ("GET", "/v1/banks"): (Role.READER,),
    ("GET", "/v1/banks/{bank}"): (Role.READER,),
    ("GET", "/v1/banks/{bank}/items/{item}"): (Role.READER,),
    ("GET", "/v1/banks/{bank}/items/{item}/articles"): (Role.READER,),
    ("PUT", "/v1/banks/{bank}"): (Role.ADMIN,),
    ("DELETE", "/v1/banks/{bank}"): (Role.ADMIN,),
    ("POST", "/v1/banks/{bank}/items"): ITEMS,
    ("PATCH", "/v1/banks/{bank}/items/{item}"): ITEMS,
    ("DELETE", "/v1/banks/{bank}/items/{item}"): ITEMS,
}
"""The roles of which each route needs one, none for those that are open."""
BODIES: Final = {
    "/v1/check": b'{"articles": [{"id": "other", "body": "x"}]}',
    "/v1/articles": b'{"articles": [{"id": "other", "body": "x"}]}',
    "/v1/articles/{id}/release": b'{"by": "An Na", "reason": "a correction"}',
    "/v1/banks/{bank}": b'{"action": "deny"}',
    "/v1/banks/{bank}/items": b'{"items": [{"text": "Win a ferry ticket now"}]}',
    "/v1/banks/{bank}/items/{item}": b'{"note": "seen again"}',
}
KINDS: Final = (
    "none", "other scheme", "no secret", "malformed", "twice", "long", "wrong", "expired", "revoked", "right",
    "other host", "oversized",
)  # fmt: skip
INVALID: Final = 'Bearer realm="dupwatch", error="invalid_token"'
REFUSED: Final[dict[str, str]] = {
    "none": 'Bearer realm="dupwatch"',
    "other scheme": 'Bearer realm="dupwatch"',
    **dict.fromkeys(("no secret", "malformed", "twice", "long", "wrong", "expired", "revoked"), INVALID),
}
"""The challenge for what is no valid token."""


class Secrets(NamedTuple):
    """The secrets of one role."""

    valid: str
    expired: str
    revoked: str


class Guarded(NamedTuple):
    """A service with tokens of every role."""

    client: Client
    secrets: dict[Role, Secrets]


def tokens_of(path: Path, role: Role) -> Secrets:
    """Add a token of each state."""
    now = current_time()
    made = Secrets(
        add(path, role, role, now=now),
        add(path, f"{role}.expired", role, now=now - timedelta(days=100)),
        add(path, f"{role}.revoked", role, now=now),
    )
    revoke_token(path, f"{role}.revoked", now)
    return made


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """It holds an article and its copy, which is flagged, and a bank that denies, with an item."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.json"
    banks = BankFile(path.with_name("banks.jsonl"), WriteOptions(durable=False))
    offer = BankItem(bank="spam", item="offer", text="Win a ferry ticket now")
    banks.change(lambda _: [Bank(bank="spam", action="deny"), offer])
    secrets = {role: tokens_of(path, role) for role in Role}
    with dupwatch.open("memory:") as window:
        window.judge(dupwatch.Article(name, "The harbour council opened the new ferry terminal.") for name in "ab")
        with served(judging_of(window), None, None, None, HEARTBEAT_MAX_S, banks, tokens=str(path)) as client:
            wait_until_ready(client)
            yield Guarded(client, secrets)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A token file that is not there yet."""
    return tmp_path / "tokens.json"


def headers_of(kind: str, secrets: Secrets) -> list[str]:
    """The headers of a request with credentials of a kind."""
    bearer = "Authorization: Bearer "
    return {
        "none": [],
        "other scheme": [f"Authorization: Basic {secrets.valid}"],
        "no secret": ["Authorization: Bearer"],
        "malformed": [bearer + secrets.valid[:-1]],
        "twice": [bearer + secrets.valid, bearer + secrets.valid],
        "long": [bearer + "x" * (HEAD_BYTES_MAX // 2)],
        "wrong": [bearer + new_secret()],
        "expired": [bearer + secrets.expired],
        "revoked": [bearer + secrets.revoked],
        "right": [bearer + secrets.valid],
        "other host": [bearer + secrets.valid],
        "oversized": [bearer + "x" * 2 * HEAD_BYTES_MAX],
    }[kind]


def asked(client: Client, method: str, path: str, headers: list[str], host: str = "localhost") -> Answer:
    """Ask with these headers as they are; a body is promised, and is not sent unless the request is let in."""
    # What is retracted is another one than what is asked for, and the copy is what can be released.
    article_id = {"DELETE": "other", "POST": "b"}.get(method, "a")
    names = {"id": article_id, "other": "a", "bank": "spam", "item": "offer"}
    if method == "DELETE":
        names |= {"item": "other"} if path.endswith("{item}") else {"bank": "other"}
    target = path.format(**names)
    head = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
    if method == "DELETE":
        head.append("Idempotency-Key: once")
    body = BODIES[path] if method in {"POST", "PUT", "PATCH"} else b""
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}", "Expect: 100-continue"]
    with client.connect() as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode())
        answer = read_answer(connection, body)
    top, _, data = answer.partition(b"\r\n\r\n")
    status, *fields = top.decode().split("\r\n")
    named = dict(field.split(": ", 1) for field in fields)
    return Answer(int(status.split()[1]), named, data)


def test_every_route_has_an_entry(guarded: Guarded) -> None:
    """Whoever adds one says here who may use it; the document says the same."""
    document = guarded.client.get("/openapi.json").json
    described = {
        (method.upper(), path): operation.get("security")
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    expected = {route: [{"token": [role]} for role in roles] or None for route, roles in ROUTES.items()}
    assert described | {("GET", path): None for path in ("/", "/docs", "/openapi.json")} == expected
    assert {path for _, path in ROUTES} == set(SERVICE.paths)
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_who_is_let_in(guarded: Guarded, method: str, path: str, role: Role) -> None:
    """Each route, asked with each kind of credentials of each role."""
    for kind in KINDS:
        headers = headers_of(kind, guarded.secrets[role])
        host = "evil.example" if kind == "other host" else "localhost"
        answer = asked(guarded.client, method, path, headers, host)
        check_answer(answer, ROUTES[method, path], role, kind)


def check_answer(answer: Answer, needed: tuple[Role, ...], role: Role, kind: str) -> None:
    """Fail unless this is the answer of a route that needs one of these roles."""
    if kind == "oversized":
        assert answer.status == 431
    elif kind == "other host":
        assert answer.status == 421
    elif needed and kind in REFUSED:
        assert (answer.status, answer.headers["www-authenticate"]) == (401, REFUSED[kind]), kind
        assert answer.json["type"] == "urn:dupwatch:problem:unauthorized"
        assert "***" not in answer.json["detail"]
    elif needed and (role not in needed or (needed == ITEMS and role is Role.ADMIN)):
        # The bank denies, so an admin is let in, but may not change its items.
        scope = Role.REVIEWER if role in needed else " ".join(needed)
        challenge = f'Bearer realm="dupwatch", error="insufficient_scope", scope="{scope}"'
        assert (answer.status, answer.headers["www-authenticate"]) == (403, challenge), kind
        assert answer.json["type"] == "urn:dupwatch:problem:forbidden"
    else:
        assert answer.status == 200, kind


def test_a_client_is_not_told_what_is_wrong_with_a_secret(guarded: Guarded) -> None:
    """The answers to one that is unknown, expired or revoked are the same."""
    secrets = guarded.secrets[Role.READER]
    answers = [
        guarded.client.get("/v1/stats", Authorization=f"Bearer {secret}", x_request_id="same")
        for secret in (new_secret(), secrets.expired, secrets.revoked)
    ]
    assert {answer.data for answer in answers} == {answers[0].data}
    assert len({tuple(sorted((answer.headers | {"date": ""}).items())) for answer in answers}) == 1


def test_the_log_and_the_metrics_say_what_is_wrong(
    window: dupwatch.Window, token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the name of the token, where it has one."""
    secrets = tokens_of(token_file, Role.READER)
    wanted = [
        ({}, "missing", None),
        (new_secret(), "unknown", None),
        (secrets.expired, "expired", "reader.expired"),
        (secrets.revoked, "revoked", "reader.revoked"),
        (add(token_file, "desk", Role.REVIEWER, now=current_time()), "role", "desk"),
        (secrets.valid, None, "reader"),
    ]
    with served(judging_of(window), tokens=str(token_file)) as client:
        wait_until_ready(client)
        with caplog.at_level(logging.INFO, "dupwatch"):
            for secret, _, _ in wanted:
                client.get("/v1/stats", **({"Authorization": f"Bearer {secret}"} if secret else {}))
            wait_for(lambda: len(caplog.records) >= len(wanted), WAIT_S)
        lines = [vars(record) for record in caplog.records if record.getMessage().startswith("GET /v1/stats")]
        assert [(line.get("refused"), line.get("token")) for line in lines] == [
            (refused, name) for _, refused, name in wanted
        ]
        client.secret = secrets.valid
        counted = {
            reason: client.metric(f'dupwatch_secrets_refused_total{{reason="{reason}"}}')
            for reason in ("unknown", "expired", "revoked", "unchecked")
        }
        assert counted == {"unknown": 1, "expired": 1, "revoked": 1, "unchecked": 0}
        assert client.metric("dupwatch_tokens") == 4
        assert client.metric('dupwatch_requests_total{method="GET",route="/v1/stats",status="401"}') == 4
        assert client.metric('dupwatch_requests_total{method="GET",route="/v1/stats",status="403"}') == 1


def test_nothing_of_a_body_is_read_before(guarded: Guarded) -> None:
    """Whoever is refused is told so at once; nor does it matter what else is wrong with the request."""
    with guarded.client.connect() as connection:
        connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n{")
        assert read_answer(connection).startswith(b"HTTP/1.1 401")
    assert guarded.client.get(f"/v1/articles/a/explain/b?version={'x' * 100}").status == 401
    assert guarded.client.get("/v1/articles/%ff").status == 401


def test_a_change_of_the_file_counts_while_it_runs(window: dupwatch.Window, token_file: Path) -> None:
    """What is added is let in and what is revoked is not, without a restart."""
    now = current_time()
    first, before = add(token_file, "first", now=now), set(threading.enumerate())
    with served(judging_of(window), tokens=str(token_file)) as client:
        wait_until_ready(client)
        client.secret = first
        assert client.get("/v1/stats").status == 200
        client.secret = add(token_file, "second", now=now)
        wait_for(lambda: client.get("/v1/stats").status == 200, WAIT_S)
        revoke_token(token_file, "second", now)
        wait_for(lambda: client.get("/v1/stats").status == 401, WAIT_S)
        client.secret = first
        assert client.get("/v1/stats").status == 200
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "tokens"]


def test_a_token_file_that_hangs_holds_up_nobody(
    window: dupwatch.Window, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are answered by what was read before, and not for ever; probes are answered all the time."""
    begun, go_on = threading.Event(), threading.Event()

    def hanging(path: Path) -> tuple[Tokens, Signature]:
        begun.set()
        assert go_on.wait(WAIT_S)
        return load(path)

    secret = add(token_file, "first", now=current_time())
    try:
        with served(judging_of(window), tokens=str(token_file)) as client:
            wait_until_ready(client)
            client.secret = secret
            monkeypatch.setattr(known_tokens, "load", hanging)
            revoke_token(token_file, "first", current_time())
            assert begun.wait(WAIT_S)
            assert client.get("/v1/stats").status == 200
            monkeypatch.setattr(known_tokens, "TRUST_S", 0.0)
            answer = client.get("/v1/stats")
            assert (answer.status, answer.json["type"]) == (503, "urn:dupwatch:problem:unchecked")
            assert answer.headers["retry-after"] == "5"
            assert client.get("/healthz").status == 200
            monkeypatch.undo()
            go_on.set()
            wait_for(lambda: client.get("/v1/stats").status == 401, WAIT_S)
    finally:
        go_on.set()


def test_a_service_does_not_start_without_its_tokens(window: dupwatch.Window, token_file: Path) -> None:
    """Nor lets it in anybody, and its address is free again."""
    with (
        pytest.raises(ConfigError, match="cannot be read: No such file"),
        served(judging_of(window), tokens=str(token_file)),
    ):
        pytest.fail("it has started")


def test_with_tokens_other_addresses_are_served(window: dupwatch.Window, token_file: Path) -> None:
    """Those that others reach."""
    secret = add(token_file, "first", now=current_time())
    with served(judging_of(window), tokens=str(token_file), listen="0.0.0.0:0") as client:
        wait_until_ready(client)
        assert client.get("/v1/stats").status == 401
        client.secret = secret
        assert client.get("/v1/stats").status == 200


def test_without_tokens_everybody_has_all_roles(client: Client) -> None:
    """Whatever is sent; and the document asks for nothing."""
    assert client.get("/v1/stats").status == 200
    assert client.get("/v1/stats", Authorization="Bearer x").status == 200
    document = client.get("/openapi.json").json
    assert "securitySchemes" not in document["components"]
    assert "security" not in json.dumps(document["paths"])


def test_no_secret_is_told(window: dupwatch.Window, token_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever a client puts it: not in the log, the metrics, problems or traces."""
    valid, canary = add(token_file, "first", now=current_time()), new_secret()
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    hooks = Hooks(RequestSpans(provider.get_tracer("test")))
    bearer = f"Bearer {canary}"
    told = []
    with (
        caplog.at_level(logging.DEBUG),
        served(judging_of(window), None, hooks, tokens=str(token_file)) as client,
    ):
        wait_until_ready(client)
        for secret in (canary, valid):
            client.secret = secret
            told += [
                client.get("/v1/stats", x_request_id=canary, traceparent=f"00-{canary}-{canary}-01"),
                client.get(f"/v1/articles/{canary}"),
                client.get(f"/{canary}?access_token={canary}"),
                client.get(f"/v1/articles/a/explain/b?version={canary * 2}"),
                client.get("/healthz", Host=canary),
                client.check({"body": "x", canary: canary}),
                client.store({"id": "a", "body": {canary: canary}}, {"id": "b", "body": "x", "lang": [canary]}),
                client.send(bearer.encode()),
                client.send(b"{}", Content_Type=bearer),
            ]
            if secret == canary:
                continue
            told += [client.get("/metrics"), client.get("/openapi.json")]
        with client.connect() as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization {bearer}\r\n\r\n".encode())
            malformed = read_all(connection)
            assert problem_in(malformed)["status"] == 400
    records = [vars(record) | {"said": record.getMessage()} for record in caplog.records]
    spans = [span.to_json() for span in exporter.get_finished_spans()]
    assert len(spans) >= len(told)
    assert len(records) >= len(told)
    shown = f"{told}{malformed!r}{records}{spans}"
    for secret in (canary, valid):
        assert secret.removeprefix("dupwatch_")[:20] not in shown


def test_files_are_followed_every_second() -> None:
    """As the documentation says."""
    assert background.PAUSE_S == 1
