"""The check of the schema registry."""

import json
from collections.abc import Iterator

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.doctor.examination import checks_of
from consumer.doctor.finding import CheckFindings, examine
from tests.registry_server import Answer, RegistryServer, serving


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """Start a registry without schemas."""
    with serving(RegistryServer()) as registry:
        yield registry


def configured(url: str, value_format: str = "avro") -> Config:
    """Return a configuration with values of this format and this registry."""
    settings = {"source": {"url": "kafka://127.0.0.1:1/a"}, "sink": {"url": "kafka://127.0.0.1:1/b"}}
    return load_config(None, {**settings, "kafka": {"value_format": value_format}, "registry": {"url": url}})


def result_of(config: Config) -> CheckFindings:
    """Return the result of the check."""
    (check,) = [check for check in checks_of(config) if check.name == "schema registry"]
    (result,) = examine([check])
    return result


def test_a_registry_that_answers(server: RegistryServer) -> None:
    """Any answer is ok: with or without a schema, of the expected format or another."""
    assert [finding.status for finding in result_of(configured(server.url)).findings] == ["ok"]
    server.says = Answer.json(200, schema=json.dumps("string"))
    for value_format in ("avro", "protobuf"):
        (finding,) = result_of(configured(server.url, value_format)).findings
        assert (finding.status, finding.found) == ("ok", f"The schema registry at {server.url} answers.")


def test_a_registry_that_does_not_answer_or_refuses(server: RegistryServer) -> None:
    """It is wrong, with the reason that a consumer would report."""
    (finding,) = result_of(configured("http://127.0.0.1:1")).findings
    assert finding.status == "wrong"
    server.says = Answer.json(401, error_code=401, message="who are you")
    (finding,) = result_of(configured(server.url)).findings
    assert finding.status == "wrong"
    assert "who are you" in finding.found


def test_json_needs_no_registry() -> None:
    """The check is not run."""
    assert all(
        check.name != "schema registry"
        for check in checks_of(load_config(None, {"source": {"url": "kafka://127.0.0.1:1/a"}}))
    )
