"""One format for all that goes wrong, ids of requests, host names, and who may ask for what."""

import json
import logging
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

import dupwatch
from consumer.config.sections.service import ServiceSection
from consumer.judge.judge import QueryResult
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.service import problems
from consumer.service.bank_routes import bank_changing_routes, bank_reading_routes, item_routes
from consumer.service.bank_writing import BankWrites
from consumer.service.checking import CheckHandler
from consumer.service.context import LoadedService, ServiceContext
from consumer.service.inbox import Inbox, InboxLimits
from consumer.service.pages import describing_routes
from consumer.service.probes import open_routes
from consumer.service.problems import KINDS
from consumer.service.receiving import BodyReceiver
from consumer.service.routes import reading_routes, writing_routes
from consumer.service.service_banks import ServiceBanks
from consumer.service.writing import Writes
from consumer.telemetry.health import HangLog, Health
from consumer.telemetry.metrics import ServiceMetrics
from consumer.telemetry.metrics.requests import STATUSES
from consumer.web.problems import TYPE_PREFIX, ProblemKind, type_of
from consumer.web.request_threads import Workers
from consumer.web.requests import SERVICE, LimitName
from consumer.web.server import listening_socket
from consumer.web.token import new_secret
from tests.cli.command import text, wait_for
from tests.unit.service.gate import Gate
from tests.unit.service.serving import WAIT_S, Client, judging_of, served, wait_until_ready

DOCUMENTED = Path(__file__).resolve().parents[3] / "docs" / "use" / "http_api.md"
DESCRIBING = {"/", "/docs", "/openapi.json"}
OPEN = {"/healthz", "/readyz", *DESCRIBING}


@pytest.fixture
def routes() -> list[APIRoute]:
    """All routes."""
    workers = Workers(1, 1, 1)
    desk = ServiceContext(workers, BodyReceiver(1, 1, 1), Health(grouped=False))
    workers.close()
    report = Hooks().report
    section = ServiceSection()
    writes = Writes(desk, Inbox(0, InboxLimits(1, 1), ReadLimits(), report), section, None, report)
    banks = ServiceBanks(None, section)
    routers = (
        open_routes(desk, HangLog(tuple), ServiceMetrics()),
        describing_routes(),
        reading_routes(desk, CheckHandler(1, report)),
        writing_routes(desk, writes),
        bank_reading_routes(banks, desk),
        bank_changing_routes(desk.receiving, BankWrites(desk, banks, None)),
        item_routes(desk.receiving, BankWrites(desk, banks, None)),
    )
    return [route for router in routers for route in router.routes if isinstance(route, APIRoute)]


def test_every_problem_has_a_type_of_its_own_that_is_documented() -> None:
    """With the status that it has."""
    page = DOCUMENTED.read_text(encoding="utf-8")
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert re.search(rf"^\| `{kind.name}` \| {kind.status} \|", page, re.MULTILINE), kind
    assert {str(kind.status) for kind in KINDS} <= set(STATUSES)
    assert TYPE_PREFIX in page


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/docs/", problems.NOT_FOUND),
        ("POST", "/", problems.METHOD),
        ("GET", "/v1/articles/", problems.NOT_FOUND),
        ("GET", "/v1/articles/a/b", problems.NOT_FOUND),
        ("GET", "/v1/check/", problems.NOT_FOUND),
        ("GET", "/v1/check", problems.METHOD),
        ("DELETE", "/v1/stats", problems.METHOD),
        ("POST", "/healthz", problems.METHOD),
        ("BREW", "/readyz", problems.METHOD),
    ],
)
def test_what_the_router_refuses_is_a_problem(client: Client, method: str, path: str, kind: ProblemKind) -> None:
    """Of the one format, with the id of the request."""
    answer = client.ask(method, path)
    assert (answer.status, answer.headers["content-type"]) == (kind.status, "application/problem+json")
    assert answer.json == {
        "type": type_of(kind),
        "title": kind.title,
        "status": kind.status,
        "detail": answer.json["detail"],
        "request_id": answer.headers["x-request-id"],
    }
    assert ("allow" in answer.headers) == (kind is problems.METHOD)


def test_all_methods_of_a_path_are_named(client: Client) -> None:
    """Also where several routes have it."""
    assert client.ask("PUT", "/v1/articles/a").headers["allow"] == "DELETE, GET"


@pytest.mark.parametrize("sent", ["abc", "x" * 128, "!~"])
def test_a_sane_id_of_a_request_is_taken_over(client: Client, sent: str) -> None:
    """Into the answer and into problems."""
    assert client.get("/healthz", x_request_id=sent).headers["x-request-id"] == sent
    assert client.get("/none", x_request_id=sent).json["request_id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 129, "a b", "\xe9", "a\tb", new_secret()], ids=range(6))
def test_another_id_of_a_request_is_replaced(client: Client, sent: str) -> None:
    """It would end up in logs."""
    given = client.get("/healthz", x_request_id=sent).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", given)


def test_a_defect_is_a_problem_and_is_logged_once(window: dupwatch.Window, caplog: pytest.LogCaptureFixture) -> None:
    """Its answer says nothing of what failed, and the service goes on."""
    judging = judging_of(window)

    def fails(versions: object) -> list[QueryResult]:
        raise RuntimeError("of all things")

    broken = replace(judging, query=fails)
    with caplog.at_level(logging.WARNING), served(broken) as client:
        wait_until_ready(client)
        answer = client.check({"body": text(1)}, x_request_id="mine")
        assert (answer.status, answer.json["type"]) == (500, "urn:dupwatch:problem:defect")
        assert b"of all things" not in answer.data
        assert client.get("/healthz").status == 200
        assert client.metric('dupwatch_requests_total{method="POST",route="/v1/check",status="500"}') == 1
    (record,) = [record for record in caplog.records if record.exc_info]
    assert vars(record)["request_id"] == "mine"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example"]
)
@pytest.mark.parametrize("path", ["/v1/stats", "/healthz", "/none"])
def test_another_host_name_is_refused(client: Client, host: str, path: str) -> None:
    """A page of another site, open in the same browser, may point its own name here."""
    answer = client.get(path, Host=host)
    assert (answer.status, answer.json["type"]) == (421, "urn:dupwatch:problem:unknown-host")


def test_the_names_of_this_machine_are_served(window: dupwatch.Window) -> None:
    """Those that are configured, localhost, and addresses."""
    with served(judging_of(window), names=("news.example",)) as client:
        wait_until_ready(client)
        hosts = ["news.example", "NEWS.example:8750", "localhost", "localhost:1", "127.0.0.1:8750", "[::1]"]
        assert [client.get("/v1/stats", Host=host).status for host in hosts] == [200] * len(hosts)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_without_tokens_only_this_machine_can_connect(listen: str) -> None:
    """Nobody is asked who he is."""
    with pytest.raises(ConfigError, match=r"lets other machines read articles: set service\.tokens"):
        listening_socket(listen, needs_token=False)


def test_an_address_that_is_taken_is_said_to_be() -> None:
    """With the setting to change."""
    with (
        listening_socket("127.0.0.1:0", needs_token=False) as taken,
        pytest.raises(ConfigError, match=r"set another address in service"),
    ):
        listening_socket(f"127.0.0.1:{taken.getsockname()[1]}", needs_token=False)


def test_every_route_names_a_role_or_is_open(routes: list[APIRoute]) -> None:
    """One that names none would be open to everybody by mistake."""
    without = {route.path for route in routes if not route.dependant.dependencies}
    assert without == OPEN
    assert len(routes) > len(OPEN)


def test_metrics_know_every_route(routes: list[APIRoute]) -> None:
    """Requests of one that they do not know would count as others."""
    assert {route.path for route in routes} | {"other"} == set(SERVICE.route_labels)


def test_requests_are_counted_by_the_template_of_their_path(window: dupwatch.Window, client: Client) -> None:
    """No id becomes a label."""
    window.judge(dupwatch.Article("a/b", text(1)))
    for path in ("/v1/articles/a%2Fb", "/v1/articles/none", "/v1/articles/x/explain/y", "/none", "/nothing"):
        client.get(path)
    counted = {
        (route, status): client.metric(f'dupwatch_requests_total{{method="GET",route="{route}",status="{status}"}}')
        for route in ("/v1/articles/{id}", "/v1/articles/{id}/explain/{other}", "other")
        for status in (200, 404)
    }
    assert counted == {
        ("/v1/articles/{id}", 200): 1,
        ("/v1/articles/{id}", 404): 1,
        ("/v1/articles/{id}/explain/{other}", 200): 0,
        ("/v1/articles/{id}/explain/{other}", 404): 1,
        ("other", 200): 0,
        ("other", 404): 2,
    }
    assert client.metric('dupwatch_request_seconds_count{route="/v1/articles/{id}"}') == 2


def test_each_request_has_one_line_in_the_log(
    window: dupwatch.Window, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """With its id, and neither its path nor its texts; those of probes only where everything is logged."""
    with caplog.at_level(logging.INFO, "dupwatch"):
        client.get("/healthz")
        client.get("/v1/articles/secret", x_request_id="one")
        client.check({"body": "secret"}, x_request_id="two")
        wait_for(lambda: len(caplog.records) == 2, WAIT_S)
    assert [(record.getMessage(), vars(record)["request_id"]) for record in caplog.records] == [
        ("GET /v1/articles/{id} 404", "one"), ("POST /v1/check 200", "two"),
    ]  # fmt: skip
    assert "secret" not in str([vars(record) for record in caplog.records])


def test_a_client_that_leaves_is_counted_as_such(client: Client) -> None:
    """It has no answer, and the service goes on."""
    with client.connect() as connection:
        head = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Content-Length: 9\r\n\r\n{")
        wait_for(lambda: client.metric("dupwatch_requests_in_flight") == 2, WAIT_S)
    left = 'dupwatch_requests_total{method="POST",route="/v1/check",status="499"}'
    wait_for(lambda: client.metric(left) == 1, WAIT_S)
    assert client.check({"body": "x"}).status == 200


def test_a_store_that_is_away_is_said_to_be_and_comes_back(window: dupwatch.Window) -> None:
    """At once, without the address of its gateway, and without a restart."""
    gate = Gate()
    window.judge(dupwatch.Article("a", text(1)))
    with served(judging_of(window, gate.around(window._store))) as client:
        wait_until_ready(client)
        gate.is_away = True
        for answer in (client.check({"body": text(1)}), client.get("/v1/articles/a"), client.get("/v1/stats")):
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            assert answer.json["type"] == "urn:dupwatch:problem:store"
            assert b"10.1.2.3" not in answer.data
        assert client.get("/healthz").status == 200
        gate.is_away = False
        assert client.check({"body": text(1)}).json["results"][0]["outcome"] == "duplicate"


def test_while_it_is_loaded_requests_are_told_to_come_again(window: dupwatch.Window) -> None:
    """Probes answer, and it says that it is not ready."""
    begun, loaded = threading.Event(), threading.Event()

    def slowly() -> LoadedService:
        begun.set()
        assert loaded.wait(WAIT_S)
        return judging_of(window)

    with served(slowly) as client:
        try:
            assert begun.wait(WAIT_S)
            answer, ready = client.check({"body": "x"}), client.get("/readyz")
            assert (answer.status, answer.json["type"]) == (503, "urn:dupwatch:problem:starting")
            assert answer.headers["retry-after"] == "1"
            assert (ready.status, ready.json) == (503, {"ready": False, "reasons": ["run: starting"]})
            assert client.get("/healthz").status == 200
            assert client.get("/metrics").status == 200
        finally:
            loaded.set()
        wait_until_ready(client)
        assert client.check({"body": "x"}).status == 200


def test_the_limits_of_the_service_fit_each_other() -> None:
    """Else a connection could not be found to give way, or no body could ever arrive."""
    with pytest.raises(ValueError, match="more than requests_max"):
        ServiceSection(connections_max=5, requests_max=5)
    with pytest.raises(ValueError, match="at least body_bytes_max"):
        ServiceSection(body_bytes_max=5, received_bytes_max=4)
    with pytest.raises(ValueError, match="at least articles_max"):
        ServiceSection(articles_max=5, inbox_records_max=4)
    with pytest.raises(ValueError, match="at least body_bytes_max"):
        ServiceSection(body_bytes_max=5, inbox_bytes_max=4)


def test_the_document_describes_every_route_and_type(client: Client) -> None:
    """No reference leads nowhere, and every problem that a route may answer is among its answers."""
    answer = client.get("/openapi.json")
    document = answer.json
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == set(SERVICE.paths) - DESCRIBING
    schemas = document["components"]["schemas"]
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert named <= set(schemas)
    check = document["paths"]["/v1/check"]["post"]
    assert set(check["responses"]) == {"200", "401", "403", "408", "413", "415", "421", "422", "503"}
    assert check["requestBody"]["content"]["application/json"]["example"]["articles"]
    assert set(schemas["Limit"]["properties"]["name"]["enum"]) == set(LimitName.__args__)  # type: ignore[attr-defined]


def test_the_example_of_the_document_is_answered(client: Client) -> None:
    """With an answer of the shape of the other example."""
    check = client.get("/openapi.json").json["paths"]["/v1/check"]["post"]
    answer = client.check(*check["requestBody"]["content"]["application/json"]["example"]["articles"])
    shown = check["responses"]["200"]["content"]["application/json"]["example"]["results"]
    assert answer.status == 200
    assert set(answer.json["results"][1]) == set(shown[1])
