"""What can be said of the chart without Helm: values, schema, generated files, and whether it was compared."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from deploy.helm import comparison, schema
from deploy.helm.comparison import differences, objects_of_chart, objects_of_overlay
from deploy.kubernetes import rules, tools
from deploy.kubernetes.manifests import NotBuilt
from deploy.local.packages import MissingTools
from tests.deploy.helm.conftest import NAMES

ROOT: Final = Path(__file__).parents[3]
TEMPLATES: Final = "".join(path.read_text() for path in sorted((comparison.CHART / "templates").iterdir()))


def values_of(path: Path) -> dict[str, Any]:
    """The values in a file."""
    values = yaml.safe_load(path.read_text())
    assert isinstance(values, dict)
    return values


def merged(values: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Values with others over them, as Helm merges them."""
    both = {
        key: merged(values[key], others[key]) for key in values.keys() & others.keys() if isinstance(values[key], dict)
    }
    return {**values, **others, **both}


def test_the_schema_is_current() -> None:
    """It has the values, their comments and the settings as they are now; python -m deploy.helm.schema writes it."""
    assert schema.SCHEMA.read_text() == schema.text(schema.schema(schema.VALUES.read_text()))


def test_the_rules_are_current() -> None:
    """The file of the chart has the rules of deploy/prometheus; python -m deploy.kubernetes.rules writes it."""
    assert rules.CHART_FILE.read_text() == rules.chart_file(rules.RULES)


@pytest.mark.parametrize("path", [schema.VALUES, *(comparison.VALUES / f"{name}.yaml" for name in NAMES)], ids=str)
def test_values_fit_the_schema(path: Path) -> None:
    """Those of the chart, and those of the overlays."""
    validator = jsonschema.Draft7Validator(json.loads(schema.SCHEMA.read_text()))
    values = merged(values_of(schema.VALUES), values_of(path))
    assert [error.message for error in validator.iter_errors(values)] == []


def test_every_overlay_has_values() -> None:
    """And there are no others."""
    assert sorted(path.stem for path in comparison.VALUES.iterdir()) == NAMES


def test_every_value_is_described_and_closed() -> None:
    """Each has a description, and maps with names of ours accept no others."""

    def visit(name: str, content: dict[str, Any]) -> None:
        assert content.get("description"), name
        if "properties" in content:
            assert content["additionalProperties"] is False, name
            for inner, found in content["properties"].items():
                if not name.endswith("esources"):
                    visit(f"{name}.{inner}", found)

    whole = json.loads(schema.SCHEMA.read_text())
    assert whole["additionalProperties"] is False
    for name, content in [*whole["properties"].items(), *whole["definitions"]["pod"]["properties"].items()]:
        visit(name, content)


def test_templates_use_every_value_and_no_others() -> None:
    """A value that nothing reads would be silently ignored, and one that is not there is empty."""
    values = values_of(schema.VALUES)
    for path in set(re.findall(r"\.Values((?:\.[A-Za-z]+)+)", TEMPLATES)):
        inner = values
        for part in path[1:].split("."):
            assert part in inner, path
            inner = inner[part]

    def names(content: object) -> set[str]:
        if not isinstance(content, dict):
            return set()
        return set(content) | {
            name for key, inner in content.items() if key not in schema.OPAQUE for name in names(inner)
        }

    def used(name: str) -> bool:
        return re.search(rf'[."]{name}\b', TEMPLATES) is not None

    assert [name for name in sorted(names({**values, "secrets": {}})) if not used(name)] == []


def test_an_undescribed_value_is_refused() -> None:
    """So is one whose type nobody can tell."""
    for text, message in (
        ("a: 1\n", "a has no comment"),
        ("# A.\na:\n  b: 1\n", "a.b has no comment"),
        ("# A.\n\na: 1\n", "a has no comment"),
        ("# A.\na: []\n", "a is empty"),
        ("# A.\na: null\n", "a is empty"),
    ):
        with pytest.raises(schema.Undescribed, match=message):
            schema.schema(f"{text}# C.\nconfig: {{}}\n")


def test_the_chart_is_of_this_version() -> None:
    """The tag of the image follows from it."""
    chart = yaml.safe_load((comparison.CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chart["appVersion"] == version


@pytest.mark.servers
def test_the_chart_was_compared_with_the_overlays() -> None:
    """As both are now. Helm takes minutes to build, so make helm-test compares them, and leaves digests here."""
    try:
        now = comparison.record(tools.kustomize())
    except (MissingTools, subprocess.CalledProcessError) as error:
        pytest.fail(str(error), pytrace=False)
    assert json.loads(comparison.COMPARED.read_text()) == now, "the chart or an overlay has changed; run make helm-test"


def deployment(**spec: object) -> dict[str, Any]:
    """An object with this specification."""
    return {"kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}, "spec": spec}


@pytest.mark.parametrize(
    ("overlay", "chart", "found"),
    [
        ([deployment(replicas=2)], [deployment(replicas=2)], []),
        ([deployment(replicas=2)], [deployment(replicas="2")], ['spec.replicas is "2", but 2 in the overlay']),
        ([deployment(replicas=1)], [deployment(replicas=True)], ["spec.replicas is true, but 1 in the overlay"]),
        ([deployment(a=[1, 2])], [deployment(a=[2, 1])], ["spec.a.0 is 2, but 1", "spec.a.1 is 1, but 2"]),
        ([deployment(a=[1])], [deployment(a=[1, 2])], ["spec.a is [1, 2], but [1]"]),
        ([deployment(a=1)], [deployment()], ["spec.a is null, but 1"]),
        ([deployment()], [], ["Deployment a is in the overlay alone"]),
        ([], [deployment()], ["Deployment a is in the chart alone"]),
    ],
)
def test_differences_are_found(overlay: list[Any], chart: list[Any], found: list[str]) -> None:
    """Of objects, values, types and orders."""
    told = list(differences(objects_of_overlay(overlay), objects_of_chart(chart)))
    assert len(told) == len(found)
    assert all(part in sentence for part, sentence in zip(found, told, strict=True))


def test_what_only_helm_has_is_left_out() -> None:
    """Its labels and digests; files are compared by what they say."""
    labels = {"app.kubernetes.io/instance": "r", "helm.sh/chart": "c"}
    overlay = {
        "kind": "ConfigMap",
        "metadata": {"name": "dupwatch-config-0123456789"},
        "data": {
            "dupwatch.toml": "b = 1 # why\na = 2",
            "hbase-site.xml": "<c><p><name>x</name><value>y</value></p></c>",
        },
    }
    chart = {
        "kind": "ConfigMap",
        "metadata": {"name": "dupwatch-config", "labels": labels},
        "data": {"dupwatch.toml": "a = 2\nb = 1", "hbase-site.xml": "<c>\n<p><name>x</name> <value>y</value></p></c>"},
    }
    assert list(differences(objects_of_overlay([overlay]), objects_of_chart([chart]))) == []
    other = {**chart, "data": {"dupwatch.toml": "a = 2\nb = 1.0"}}
    assert list(differences(objects_of_overlay([overlay]), objects_of_chart([other])))


def test_an_object_that_is_there_twice_is_told() -> None:
    """Helm would install one of them."""
    with pytest.raises(NotBuilt, match="Deployment a is there twice"):
        objects_of_chart([deployment(), deployment()])


def test_a_digest_is_that_of_all_files(tmp_path: Path) -> None:
    """Their names and their contents."""
    chart, values = tmp_path / "chart", tmp_path / "values"
    for folder in (chart, values):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "a").write_text("1")
    before = comparison.chart_digest(chart, values)
    assert comparison.chart_digest(chart, values) == before
    (values / "inner" / "a").write_text("2")
    changed = comparison.chart_digest(chart, values)
    (values / "inner" / "a").rename(values / "inner" / "b")
    assert len({before, changed, comparison.chart_digest(chart, values)}) == 3
