"""The recipes of sample/recipes, without running them: tests/kafka/test_recipes.py does that in make test-load."""

import ast
import json
import re
from pathlib import Path

import pytest

from consumer.kafka.topics import SinkTopics

ROOT = Path(__file__).parents[3]
RECIPES = ROOT / "sample" / "recipes"
PAGE = (ROOT / "docs" / "use" / "recipes.md").read_text(encoding="utf-8")
FILES = sorted(path for path in RECIPES.rglob("*.*") if "__pycache__" not in path.parts)
PARTS = {
    "io.debezium.connector.postgresql.": "debezium-connector-postgres",
    "org.apache.kafka.connect.file.": "connect-file",
    "org.apache.kafka.common.config.provider.": "connect-runtime",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_is_explained_and_tested(path: Path) -> None:
    """The page links to it or names it, and a test runs it."""
    assert path.name in PAGE
    assert path.name in (ROOT / "tests" / "kafka" / "test_recipes.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix != ".sql"], ids=lambda path: path.name)
def test_variables_are_explained(path: Path) -> None:
    """No address or password is in a file; the page names every variable of the environment."""
    text = path.read_text(encoding="utf-8")
    variables = {*re.findall(r"\$\{env:(\w+)\}", text), *re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", text)}
    assert variables
    assert {name for name in variables if f"`{name}`" not in PAGE} == set()


@pytest.mark.parametrize("path", sorted(RECIPES.glob("connect/*.json")), ids=lambda path: path.name)
def test_connectors_say_how_they_convert(path: Path) -> None:
    """Keys are ids, and values JSON without a schema around it; each connector's jar is one that is pinned."""
    connector = json.loads(path.read_text(encoding="utf-8"))
    assert connector["name"] == path.stem
    config = connector["config"]
    assert config["key.converter"] == "org.apache.kafka.connect.storage.StringConverter"
    if config["value.converter"] == "org.apache.kafka.connect.json.JsonConverter":
        assert config["value.converter.schemas.enable"] == "false"
    else:
        assert config["value.converter"] == config["key.converter"]
    (jar,) = (jar for package, jar in PARTS.items() if config["connector.class"].startswith(package))
    assert f"<artifactId>{jar}</artifactId>" in pom("connect")


def pom(part: str) -> str:
    """The pom file of a part of the servers."""
    return (ROOT / "deploy" / "local" / "poms" / f"{part}.xml").read_text(encoding="utf-8")


def test_connect_has_the_version_of_the_broker() -> None:
    """As users run them."""
    (broker,) = re.findall(r"<artifactId>kafka_2.13</artifactId>\s*<version>([^<]+)", pom("kafka"))
    assert re.findall(r"<artifactId>connect-\w+</artifactId>\s*<version>([^<]+)", pom("connect")) == [broker, broker]


def test_topics_are_those_of_a_consumer() -> None:
    """What recipes read behind the consumer, dupwatch writes, with the names of the page's commands."""
    assert "/articles --sink kafka://" in PAGE
    flags = SinkTopics("dupwatch").duplicates_topic
    assert json.loads((RECIPES / "connect" / "flags-to-file.json").read_text())["config"]["topics"] == flags
    (behind,) = (path for path in FILES if path.name == "alert_on_copies.py")
    strings = {node.value for node in ast.walk(ast.parse(behind.read_text())) if isinstance(node, ast.Constant)}
    assert flags in strings
