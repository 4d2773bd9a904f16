"""Benchmarks of keyed sketches: what is measured is what the names say."""

from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from benchmarks.quality import greedy, secrets, short_texts
from benchmarks.quality.judging import some_secret
from consumer.fingerprint import PUBLISHED_SECRET
from tests.cli.command import json_lines, text, write_lines

LETTERS = "".join(text(1, 120).split())[:600]


def test_places_are_apart_and_as_many_as_asked_for() -> None:
    """Evenly spaced ones at equal distances, greedy ones each where minima are left."""
    assert greedy.evenly("a" * 100, 4) == [12, 38, 62, 88]
    places = greedy.greedily(LETTERS, 12)
    assert len(set(places)) == 12
    assert min(np.diff(sorted(places))) > 1


@pytest.mark.parametrize("count", [1, 7, 20])
def test_exactly_these_letters_are_changed(count: int) -> None:
    """Into others."""
    places = greedy.evenly(LETTERS, count)
    copy = greedy.changed(LETTERS, places, count)
    assert [place for place, (a, b) in enumerate(zip(LETTERS, copy, strict=True)) if a != b] == places


def test_who_knows_the_key_hides_a_copy_and_who_does_not_does_not() -> None:
    """With ten letters of six hundred."""
    copies = [greedy.changed(LETTERS, greedy.greedily(LETTERS, 10), 1)]
    assert greedy.hidden([LETTERS], copies, PUBLISHED_SECRET) == [True]
    assert greedy.hidden([LETTERS], copies, some_secret(1)) == [False]
    assert greedy.hidden([LETTERS], [LETTERS], some_secret(1)) == [False]


def test_secrets_are_scored_beside_scheme_2(tmp_path: Path) -> None:
    """Each with the whole feed; means, and the worst."""
    bodies = [text(number - number % 2) for number in range(8)]
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": f"a{n}", "body": body} for n, body in enumerate(bodies)])
    pairs = write_lines(tmp_path / "pairs.jsonl", [[f"a{n}", f"a{n + 1}", 1.0, 1.0] for n in range(0, 8, 2)])
    arguments = [f"--feed={feed}", f"--pairs={pairs}", "--secrets=2", f"--out={tmp_path / 'out'}"]
    app = typer.Typer()
    app.command()(secrets.main)
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None, result.output
    rows = [line["row"] for line in json_lines((tmp_path / "out" / "secrets.jsonl").read_bytes())]
    figures = [(row["scheme"], row["flags"], row["missed"], row["worst recall"]) for row in rows]
    assert figures == [("jieba-tfidf/2", 4, 0, "1.0000"), ("jieba-tfidf/3", 4, 0, "1.0000")]


def test_short_texts_are_different_ones() -> None:
    """Case and white space make no other text, and long ones do not count."""
    texts = ["One  text", "one text", "another", "x" * 31, " "]
    assert short_texts.different(texts) == ["one text", "another"]
