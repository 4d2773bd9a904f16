"""Whether the service's memory grows with its requests: ``python -m benchmarks.service.memory``.

A service of its own with the defaults, over an empty LMDB store, with a file for its verdicts, gets a mix of requests
at a held rate (``benchmarks.service.vegeta``): checks of texts that are sent once, articles to store, one in five of
them a copy, articles and explanations to read, retractions, and requests that are refused. Its own memory (RssAnon)
is read every second. The figure after so many requests is the median of the readings during the last ten thousand.

Answers with another status than their request is made for are counted: 503 where others use the machine for a moment.
More than one in a hundred end the measurement with an error.
"""

import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from benchmarks.service.serving import Service, serving
from benchmarks.service.vegeta import Request, VegetaOption, attack
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.stress.made_texts import FeedText, make_feed
from consumer.telemetry.metrics.run import own_memory_bytes

PART: Final = "service_memory"
CHARS: Final = 500
MARKS: Final = (20_000, 50_000, 100_000, 200_000)
PORTION: Final = 10_000
CYCLE: Final = 20
"""After so many requests the mix begins again."""
CHECKS: Final = 11
STORES: Final = 4
OTHERS_SHARE_MAX: Final = 0.01
_MB: Final = 1 << 20
_READ_S: Final = 1.0
_NO_BODY: Final[dict[str, str]] = {}

Wanted = tuple[Request, int]
"""A request, and the status of its answer."""


def mix(url: str, feed: Sequence[FeedText], portion: int) -> list[Wanted]:
    """The requests of one portion, in the order in which they are sent; ``feed`` has the texts for them."""
    texts = iter(feed)
    wanted: list[Wanted] = []
    for cycle in range(PORTION // CYCLE):
        name = f"{portion}-{cycle}"
        wanted += [(_post(f"{url}/v1/check", {"body": next(texts).body}), 200) for _ in range(CHECKS)]
        stored = [{"id": f"{name}-{number}", "body": next(texts).body} for number in range(STORES)]
        wanted += [(_post(f"{url}/v1/articles", article), 200) for article in stored]
        # What was stored a portion ago: it is there, whatever order the newest requests are answered in.
        before = f"{portion - 1}-{cycle}"
        wanted += [
            (_get(f"{url}/v1/articles/{before}-0"), 200 if portion else 404),
            (_get(f"{url}/v1/articles/{before}-1/explain/{before}-2"), 200 if portion else 404),
            (Request(f"{url}/v1/articles/{name}-gone", b"", "DELETE", {"Idempotency-Key": name}), 200),
            (Request(f"{url}/v1/check", b'{"articles": [{"body": 7}, {"bo'), 422),
            (_get(f"{url}/{name}"), 404),
        ]
    return wanted


def _post(url: str, article: dict[str, str]) -> Request:
    return Request(url, msgspec.json.encode({"articles": [article]}))


def _get(url: str) -> Request:
    return Request(url, method="GET", headers=_NO_BODY)


@contextmanager
def readings(service: Service) -> Iterator[list[float]]:
    """Read the service's own memory every second until the context is left."""
    found: list[float] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(_READ_S):
            found.append(own_memory_bytes(Path(f"/proc/{service.pid}/status")) / _MB)

    thread = threading.Thread(target=read, name="memory", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def sent(program: str, service: Service, portion: int, rate: int) -> tuple[list[float], int]:
    """Send a portion; return the readings meanwhile, and how many answers had another status than is wanted.

    Raises ``RuntimeError`` where these are too many.
    """
    texts = PORTION // CYCLE * (CHECKS + STORES)
    wanted = mix(service.url, make_feed(texts, CHARS, seed=time.time_ns() % (1 << 31)), portion)
    with readings(service) as found:
        answers = attack(program, [request for request, _ in wanted], rate=rate)
    others = Counter(answers.statuses.tolist()) - Counter(status for _, status in wanted)
    if others.total() > PORTION * OTHERS_SHARE_MAX:
        raise RuntimeError(f"too many answers with another status: {dict(others)}: {', '.join(answers.errors)}")
    return found, others.total()


def _row(after: int, own: float, first: float, most: float, others: int) -> Row:
    return {
        "requests": f"{after:,}",
        "own, MB": own,
        "% more": 100 * (own / first - 1),
        "most, MB": most,
        "other answers": others,
    }


def main(
    program: VegetaOption = "vegeta",
    rate: Annotated[int, typer.Option(min=1, help="Requests a second.")] = 300,
    requests: Annotated[int, typer.Option(min=PORTION, help="Requests in all.")] = MARKS[-1],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure the memory of the service over many requests."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder:
        sink = str(Path(folder, "verdicts.jsonl"))
        with serving(f"lmdb:{folder}/store", sink, ("--set", "sink.emit=all")) as service:
            others = 0
            for portion in range(requests // PORTION):
                found, more = sent(program, service, portion, rate)
                others += more
                after, own = (portion + 1) * PORTION, statistics.median(found)
                tell(f"{after:,} requests: {own:.1f} MB ({min(found):.1f}–{max(found):.1f}), {more} other answers")
                if after in MARKS:
                    rows.append(_row(after, own, rows[0]["own, MB"] if rows else own, max(found), others))
    title = f"{rate} requests a second, texts of {CHARS} characters, LMDB"
    publish(PART, title, rows, out=out, requests=requests, rate=rate)


if __name__ == "__main__":
    typer.run(main)
