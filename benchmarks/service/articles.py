"""Articles over HTTP beside a run over a file: ``python -m benchmarks.service.articles``.

Both judge the same articles of 2,000 characters, one in five an edited copy, into an LMDB store of their own with the
defaults, and write the same verdicts to a file. The service gets them in requests of a hundred from some connections
(``benchmarks.service.vegeta``), and is timed from the first request to the last answer; the run is timed as a whole
process, less what a run over an empty file takes. They take turns, and every round has articles of its own.
"""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from benchmarks.service.serving import dupwatch, serving
from benchmarks.service.vegeta import Request, VegetaOption, attack
from benchmarks.speed.harness import spread
from benchmarks.speed.report import OUT, publish, tell
from consumer.stress.made_texts import FeedText, make_feed

PART: Final = "service_articles"
CHARS: Final = 2_000


def over_http(program: str, feed: Sequence[FeedText], folder: Path, at_once: int, workers: int) -> float:
    """Send a feed to a service with an empty store, and return the seconds that took. All have to be stored."""
    with serving(f"lmdb:{folder / 'served'}", str(folder / "served.jsonl"), ("--set", "sink.emit=all")) as service:
        requests = [
            Request(f"{service.url}/v1/articles", _body(feed[start : start + at_once]))
            for start in range(0, len(feed), at_once)
        ]
        answers = attack(program, requests, workers=workers)
    if answers.failed:
        raise RuntimeError(f"{answers.failed} of {len(requests)} requests failed: {', '.join(answers.errors)}")
    _count(folder / "served.jsonl", len(feed))
    return answers.took_s


def over_a_file(feed: Sequence[FeedText], folder: Path, name: str) -> float:
    """Let a run judge a feed into an empty store, and return the seconds that took."""
    source, sink = folder / f"{name}.source.jsonl", folder / f"{name}.jsonl"
    source.write_bytes(b"".join(msgspec.json.encode(_article(text)) + b"\n" for text in feed))
    command = [dupwatch(), "run", "--source", str(source), "--sink", str(sink), "--emit", "all"]
    began_s = time.perf_counter()
    subprocess.run([*command, "--store", f"lmdb:{folder / name}"], check=True, stderr=subprocess.DEVNULL)
    took_s = time.perf_counter() - began_s
    _count(sink, len(feed))
    return took_s


def _article(text: FeedText) -> dict[str, str]:
    return {"id": text.id, "body": text.body}


def _body(feed: Sequence[FeedText]) -> bytes:
    return msgspec.json.encode({"articles": [_article(text) for text in feed]})


def _count(path: Path, wanted: int) -> None:
    written = path.read_bytes().count(b"\n")
    if written != wanted:
        raise RuntimeError(f"{path} has {written} verdicts of {wanted}")


def main(  # options of a command
    program: VegetaOption = "vegeta",
    articles: Annotated[int, typer.Option(min=1)] = 10_000,
    at_once: Annotated[int, typer.Option(min=1, max=1_000, help="Articles of a request.")] = 100,
    workers: Annotated[int, typer.Option(min=1, help="Connections that send.")] = 4,
    rounds: Annotated[int, typer.Option(min=1)] = 5,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure articles over HTTP."""
    http: list[float] = []
    files: list[float] = []
    for number in range(rounds):
        feed = make_feed(articles, CHARS, seed=number + 1)
        with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as name:
            folder = Path(name)
            http.append(articles / over_http(program, feed, folder, at_once, workers))
            start_s = over_a_file([], folder, "empty")
            files.append(articles / (over_a_file(feed, folder, "run") - start_s))
        tell(f"round {number + 1}: {http[-1]:,.0f} and {files[-1]:,.0f} a second")
    rows = [
        {"way": "POST /v1/articles", "articles/s": spread(http), "times run": spread(_ratios(http, files))},
        {"way": "run, over a file", "articles/s": spread(files), "times run": spread([1.0] * rounds)},
    ]
    sent = f"{at_once} at once from {workers} connections"
    title = f"Articles of {CHARS:,} characters over HTTP, {sent}, and over a file; LMDB"
    publish(PART, title, rows, out=out, articles=articles, at_once=at_once, workers=workers, rounds=rounds)


def _ratios(these: Sequence[float], those: Sequence[float]) -> list[float]:
    return [this / that for this, that in zip(these, those, strict=True)]


if __name__ == "__main__":
    typer.run(main)
