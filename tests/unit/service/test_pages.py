"""The pages that describe the service: they say what its document says, without a script, and their links lead on."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

import dupwatch
from consumer.service.reference import front_page, reference_page
from tests.unit.service.serving import Client, judging_of, served, wait_until_ready

LINK = re.compile(r'href="([^"]*)"')


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A service for all tests here: they change nothing."""
    with dupwatch.open("memory:") as window, served(judging_of(window)) as client:
        wait_until_ready(client)
        yield client


@pytest.fixture
def document(client: Client) -> Any:  # noqa: ANN401  # whatever JSON can hold
    """The document of the service."""
    return client.get("/openapi.json").json


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_needs_no_script_and_nothing_from_elsewhere(client: Client, path: str) -> None:
    """Its policy allows its own style sheet alone, and it has the headers of every answer."""
    answer = client.get(path)
    page = answer.data.decode()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    (style,) = re.findall(r"<style>(.*)</style>", page, re.DOTALL)
    allowed = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{allowed}';")
    assert not re.search(r"<script|<img|<link|javascript:|https?://| on\w+=", page)
    assert client.get(path).data == answer.data


def test_the_front_page_leads_on(client: Client, document: Any) -> None:  # noqa: ANN401  # as above
    """To the reference, the document and the probes; and it says whether requests need a token."""
    page = client.get("/").data.decode()
    links = LINK.findall(page)
    assert {"docs", "openapi.json"} <= set(links)
    assert {client.get(f"/{link}").status for link in links} == {200}
    assert "Requests need no token" in page
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    assert "Requests need a token" in front_page(document)


def test_the_reference_has_every_route_and_type(client: Client, document: Any) -> None:  # noqa: ANN401  # as above
    """Each route with its parameters and answers, each type with its members, and no link without a target."""
    page = client.get("/docs").data.decode()
    targets = set(re.findall(r'id="([^"]*)"', page))
    assert {link.removeprefix("#") for link in LINK.findall(page)} <= targets | {"openapi.json"}
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    named = {operation["operationId"] for _, operation in operations} | set(document["components"]["schemas"])
    assert named == targets
    sections = dict(re.findall(r"<h2 [^>]*><code>(.*?)</code></h2>(.*?)(?=<h2)", page, re.DOTALL))
    for name, operation in operations:
        shown = sections[name]
        assert [each["name"] for each in operation.get("parameters", ()) if each["name"] not in shown] == []
        assert [status for status in operation["responses"] if f"<td>{status}</td>" not in shown] == []
    assert "Idempotency-Key" in sections["DELETE /v1/articles/{id}"]
    types = dict(re.findall(r"<h3 [^>]*><code>(.*?)</code></h3>(.*?)(?=<h3|</body)", page, re.DOTALL))
    for name, schema in document["components"]["schemas"].items():
        assert [each for each in schema.get("properties", ()) if f"<code>{each}</code>" not in types[name]] == []


def test_the_reference_names_the_role_of_a_route(document: Any) -> None:  # noqa: ANN401  # as above
    """Where tokens are needed."""
    assert "role reader" not in reference_page(document)
    document["paths"]["/v1/stats"]["get"]["security"] = [{"token": ["reader"]}, {"token": ["admin"]}]
    assert "Requires a token with the role reader or admin." in reference_page(document)


def test_text_of_the_document_is_no_markup(document: Any) -> None:  # noqa: ANN401  # as above
    """Backticks alone have a meaning."""
    evil = "<b>`<i>`\"'&"
    document["info"]["description"] = document["paths"]["/v1/stats"]["get"]["summary"] = evil
    page = reference_page(document)
    assert "<b>" not in page
    assert page.count("&lt;b&gt;<code>&lt;i&gt;</code>&quot;&#x27;&amp;") == 3
