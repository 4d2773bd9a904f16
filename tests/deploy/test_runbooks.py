"""Runbooks: each alert has a page or a section of one, and everything that they name exists."""

import re
from pathlib import Path

import pytest

from consumer.config.config import Config
from tests.deploy.promql import metrics_shown
from tests.deploy.watching import RUNBOOKS, Runbook, alerts, dashboards, runbooks
from tests.documented_commands import commands_of, what_is_unknown

_CAUSES_MIN = 2
_SECTIONS = "source|sink|store|fingerprint|judge|kafka|http|service|console|log"
_SETTING = re.compile(rf"`((?:{_SECTIONS})\.[a-z_.]+)\b")
_PANEL = re.compile(r'"([A-Z][^"]+)"')
_OURS = re.compile(r"\bdupwatch_\w+")

PAGES = sorted(RUNBOOKS.glob("*.md"))
PARTS = [found for path in PAGES for found in runbooks(path)]


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def page(request: pytest.FixtureRequest) -> str:
    """The text of a runbook."""
    path: Path = request.param
    return path.read_text()


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    """By name, with the severity that the alert has, at the address that it gives."""
    assert sorted((found.alert, found.severity, found.address) for found in PARTS) == sorted(
        (alert["alert"], alert["labels"]["severity"], alert["annotations"]["runbook_url"].partition("/runbooks/")[2])
        for alert in alerts()
    )
    assert {found.address.partition("#")[0] for found in PARTS} == {path.name for path in PAGES}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.alert)
def test_a_runbook_has_all_its_parts_in_order(part: Runbook) -> None:
    """Users notice something, somewhere is to look first, and two causes or more have something to do."""
    found = re.fullmatch(r".+\*\*[Uu]sers\ssee\*\*\s.+\n\*\*Check\*\*.+\n\*\*Do\*\*(.+)", part.text, re.DOTALL)
    assert found
    assert len(re.findall(r"^- \*\*.+?\*\*", found[1], re.MULTILINE | re.DOTALL)) >= _CAUSES_MIN


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
    for paragraph in page.split("\n\n"):
        for sentence in re.findall(r'[Dd]ashboard "\w+"[^.]*', " ".join(paragraph.split())):
            for named in _PANEL.findall(sentence):
                assert named in every, named
