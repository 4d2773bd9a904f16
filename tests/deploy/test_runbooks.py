"""Runbooks: one for each alert, and everything that they name exists."""

import re
from pathlib import Path

import pytest

from consumer.config.config import Config
from tests.deploy.promql import metrics_shown
from tests.deploy.watching import ROOT, RUNBOOKS, alerts, dashboards
from tests.documented_commands import commands_of, what_is_unknown

_PARTS = ["Check first", "Causes", "Resolved when", "What not to do"]
_CAUSES_MIN = 2
_SECTIONS = "source|sink|store|fingerprint|judge|kafka|http|service|console|log"
_SETTING = re.compile(rf"`((?:{_SECTIONS})\.[a-z_.]+)\b")
_PANEL = re.compile(r'"([A-Z][^"]+)"')
_OURS = re.compile(r"\bdupwatch_\w+")

PAGES = sorted(RUNBOOKS.glob("*.md"))


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def page(request: pytest.FixtureRequest) -> str:
    """The text of a runbook."""
    path: Path = request.param
    return path.read_text()


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    """By name, with the severity that the alert has."""
    found = {}
    for path in PAGES:
        alert, severity = re.findall(r"^`(\w+)`, (\w+)\. ", path.read_text(), re.MULTILINE)[0]
        found[alert] = (severity, path.relative_to(ROOT).as_posix())
    assert found == {
        alert["alert"]: (alert["labels"]["severity"], alert["annotations"]["runbook_url"].rpartition("}}")[2].strip())
        for alert in alerts()
    }


def test_a_runbook_has_all_its_parts(page: str) -> None:
    """What users see, where to look, two causes or more with what to do, when it is over, and what not to do."""
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == _PARTS
    assert "**Users see**: " in page
    causes = page.partition("## Causes")[2].partition("## Resolved when")[0]
    assert len(re.findall(r"^- \*\*.+?\*\* \S", causes, re.MULTILINE | re.DOTALL)) >= _CAUSES_MIN


def test_commands_and_options_are_there(page: str) -> None:
    """Commands can be pasted as they are."""
    for command in commands_of(page):
        assert not what_is_unknown(command), command


def test_metrics_settings_and_links_are_there(page: str) -> None:
    """Metrics, settings and links in runbooks exist."""
    assert set(_OURS.findall(page)) <= metrics_shown() | {"dupwatch_compared_similarity_ratio"}
    for setting in _SETTING.findall(page):
        found: object = Config().model_dump()
        for name in setting.split("."):
            assert isinstance(found, dict), setting
            assert name in found, setting
            found = found[name]
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page):
        assert (RUNBOOKS / link).exists(), link


def test_panels_are_called_what_they_are_called(page: str) -> None:
    """Every panel that a runbook names is on a dashboard."""
    titles = {name: {panel["title"] for panel in board["panels"]} for name, board in dashboards().items()}
    every = set().union(*titles.values())
    for sentence in re.findall(r'Dashboard "\w+"[^.]*', " ".join(page.split())):
        for named in _PANEL.findall(sentence):
            assert named in every, named
