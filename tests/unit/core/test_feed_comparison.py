"""The command that compares the engines on whole feeds."""

from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.quality import engines
from consumer.fingerprint import Fingerprinter, Fingerprints
from tests.cli.command import articles, write_lines
from tests.unit.core.comparing import written

app = typer.Typer()
app.command()(engines.main)


def test_equal_feeds_are_counted(tmp_path: Path) -> None:
    """Every scheme of keywords, with facts and with slots, over all articles."""
    bodies = [{"id": f"{number}", "body": body} for number, body in enumerate(written())]
    feed = write_lines(tmp_path / "feed.jsonl", bodies)
    found = CliRunner().invoke(app, [str(feed)])
    assert found.exit_code == 0, found.output
    assert [line.rpartition(": ")[2] for line in found.output.splitlines()] == [f"{len(bodies)} articles, 0 differ"] * 4


def test_an_article_that_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fields in which it does, also where one batch has many articles."""
    really = Fingerprinter.fingerprint

    def wrong(self: Fingerprinter, texts: list[str], languages: list[str] | None = None) -> Fingerprints:
        found = really(self, texts, languages)
        counts = found.keyword_counts + [text == texts[0] and "wrong" in text for text in texts]
        return replace(found, keyword_counts=counts)

    monkeypatch.setattr(Fingerprinter, "fingerprint", wrong)
    feed = [{"id": "first", "body": "wrong"}, *articles(range(300))]
    found = CliRunner().invoke(app, [str(write_lines(tmp_path / "feed.jsonl", feed))])
    assert found.exit_code == 1
    assert found.output.count("  first: keyword_counts\n") == 4
    assert found.output.count(", 1 differ\n") == 4
