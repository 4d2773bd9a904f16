"""What is deployed to watch consumers: rules, dashboards and runbooks, as they lie in the tree."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).parents[2]
PROMETHEUS: Final = ROOT / "deploy" / "prometheus"
RULES: Final = PROMETHEUS / "rules" / "dupwatch.yml"
RULE_TESTS: Final = PROMETHEUS / "tests"
GRAFANA: Final = ROOT / "deploy" / "grafana"
RUNBOOKS: Final = ROOT / "docs" / "operate" / "runbooks"
_AT_THE_TOP: Final = re.compile(r"^((?:`Dupwatch\w+`, )+)(critical|warning|info)\. ", re.MULTILINE)
_SECTION: Final = re.compile(r"^## (Dupwatch\w+)\n\n(Critical|Warning|Info)\. ", re.MULTILINE)
_BEHIND_THE_TOP: Final = re.compile(r"^## ", re.MULTILINE)


class Panel(NamedTuple):
    """A panel's query: which dashboard and panel, the PromQL as it stands there, and what its series are called."""

    name: str
    expr: str
    legend: str


class Runbook(NamedTuple):
    """The part of a runbook that serves an alert, with its severity and its address below the folder of runbooks."""

    alert: str
    severity: str
    address: str
    text: str


def runbooks(page: Path) -> Iterator[Runbook]:
    """Yield the alerts of a page: those named at its top, which share a text, and those with a section of their own."""
    text = page.read_text()
    top, *sections = _BEHIND_THE_TOP.split(text)
    if found := _AT_THE_TOP.search(top):
        # The page of a single alert may have further sections about it.
        shared = top if _SECTION.search(text) else text
        for alert in re.findall(r"`(\w+)`", found[1]):
            yield Runbook(alert, found[2], page.name, shared)
    for section in sections:
        if match := _SECTION.match(f"## {section}"):
            yield Runbook(match[1], match[2].lower(), f"{page.name}#{match[1].lower()}", section)


def groups() -> list[dict[str, Any]]:
    """The groups of rules."""
    read: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
    return read


def alerts() -> list[dict[str, Any]]:
    """The alerts among the rules."""
    return [rule for group in groups() for rule in group["rules"] if "alert" in rule]


def records() -> list[dict[str, Any]]:
    """The recorded expressions among the rules."""
    return [rule for group in groups() for rule in group["rules"] if "record" in rule]


def dashboards() -> dict[str, dict[str, Any]]:
    """The dashboards as Grafana reads them, by their files' names."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((GRAFANA / "dashboards").glob("*.json"))}


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    """All panels that show something, with their dashboards' names."""
    for name, dashboard in dashboards().items():
        for panel in dashboard["panels"]:
            if panel["type"] != "row":
                yield name, panel


def queries() -> list[Panel]:
    """Every query of every panel."""
    return [
        Panel(f"{name} / {panel['title']}", target["expr"], target["legendFormat"])
        for name, panel in panels()
        for target in panel["targets"]
    ]
