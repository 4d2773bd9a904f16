"""What ``import dupwatch`` promises: its names, its signatures, and its examples."""

import doctest
import importlib
import inspect
import pkgutil
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dupwatch
from consumer.cli.main import app

ROOT = Path(__file__).parents[3]
SIGNATURES = {
    "Article": "(id: str, body: str, title: str = '', source: str = '', url: str = '', lang: str = '', "
    "published_at: str | float | None = None) -> None",
    "compare": "(a: str, b: str, *, lang_a: str = '', lang_b: str = '') -> dupwatch.texts.Comparison",
    "fingerprint": "(text: str, *, lang: str = '') -> dupwatch.texts.Fingerprint",
    "open": "(store: str, *, config: str | pathlib.Path | None = None, "
    "settings: collections.abc.Mapping[str, collections.abc.Mapping[str, typing.Any]] | None = None) "
    "-> dupwatch.window.Window",
    "Window.check": "(self, texts: str | dupwatch.articles.Article | collections.abc.Mapping[str, typing.Any] | "
    "collections.abc.Iterable[str | dupwatch.articles.Article | collections.abc.Mapping[str, typing.Any]]) "
    "-> list[dupwatch.window.Check]",
    "Window.judge": "(self, articles: dupwatch.articles.Article | collections.abc.Mapping[str, typing.Any] | "
    "collections.abc.Iterable[dupwatch.articles.Article | collections.abc.Mapping[str, typing.Any]], *, "
    "key: str | None = None) -> list[consumer.model.verdict.Verdict]",
    "Window.release": "(self, article_id: str, *, version: str | None = None, by: str | None = None, "
    "reason: str | None = None) -> consumer.model.verdict.Verdict",
    "Window.close": "(self) -> None",
}
"""Later versions may add to these, and take nothing away."""
FIELDS = {
    "Check": ["repeats", "truncated", "pending", "seen_before", "parts", "ended_before", "banks", "text_kind"],
    "Comparison": ["near", "distance", "similarity", "shared_keywords"],
    "Fingerprint": ["code", "bits", "scheme", "kind", "keywords"],
    "Repeated": ["id", "version", "title", "distance", "similarity", "shared_keywords"],
}
MODULES = ["dupwatch", *(f"dupwatch.{module.name}" for module in pkgutil.iter_modules(dupwatch.__path__))]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_stay(name: str) -> None:
    """Callers have written these calls."""
    found: object = dupwatch
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    assert str(inspect.signature(found)) == SIGNATURES[name]


@pytest.mark.parametrize("name", FIELDS)
def test_fields_stay(name: str) -> None:
    """Callers read these, and may take them apart in order."""
    assert list(getattr(dupwatch, name).__dataclass_fields__) == FIELDS[name]


def test_every_name_is_there_and_documented() -> None:
    """Nothing else is promised."""
    assert sorted(dupwatch.__all__) == dupwatch.__all__
    for name in dupwatch.__all__:
        assert inspect.getdoc(getattr(dupwatch, name)), name


def test_the_version_is_that_of_the_project_and_of_the_command() -> None:
    """They have one owner."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dupwatch.__version__ == project["version"]
    assert CliRunner().invoke(app, ["--version"]).stdout == f"dupwatch {dupwatch.__version__}\n"


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_work(name: str) -> None:
    """They are what people copy."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(ROOT / "docs" / "use" / "python.md"), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0
