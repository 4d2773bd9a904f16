"""Requests and round trips of one batch: ``python -m benchmarks.hbase.round_trips``.

Starts an HBase and a gateway of its own, and judges batches of 1, 16 and 256 articles: new ones alone, and with near
copies of earlier ones, one in ten. Every request is noted with its times. The number of round trips is the
longest chain of requests of which each began after the one before was answered; requests side by side count once.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple
from unittest.mock import patch

import typer

from benchmarks.hbase.made_feed import COPIED_EVERY, MadeFeed
from benchmarks.hbase.servers import Wanted, filled, servers
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.report import Row, publish
from consumer.fingerprint import BlockPlan
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from storage.clock import now_ms
from storage.hbase import parse_place
from storage.hbase.connection import GatewayConnection
from storage.hbase.store import HbaseStore

PART: Final = "hbase_round_trips"
SIZES: Final = (1, 16, 256)
_WARM_UP: Final = 3


class Request(NamedTuple):
    """A request to a gateway: the method that made it, and when it began and ended."""

    name: str
    began_s: float
    ended_s: float


def chain(requests: Sequence[Request]) -> list[str]:
    """Return the longest chain of requests of which each began after the one before had ended."""
    names: list[str] = []
    free_s = float("-inf")
    for request in sorted(requests, key=lambda request: request.ended_s):
        if request.began_s >= free_s:
            names.append(request.name)
            free_s = request.ended_s
    return names


@contextmanager
def noted() -> Iterator[list[Request]]:
    """Note all requests made inside the context. A scan counts as one."""
    requests: list[Request] = []

    def noting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # whatever the method takes and returns
            began_s = time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                requests.append(Request(name, began_s, time.perf_counter()))

        return call

    with ExitStack() as stack:
        for name in ("rows", "row_cells", "change", "swap"):
            method = noting(name, getattr(GatewayConnection, name))
            stack.enter_context(patch.object(GatewayConnection, name, method))
        yield requests


def measure(store: HbaseStore, plan: BlockPlan) -> list[Row]:
    """Judge batches of each size, of new articles alone and mixed with copies."""
    settings = JudgeSettings(plan=plan, scheme_digest="")
    detector = Detector(store, settings, now_ms)
    feed = MadeFeed(model_of_texts(), VersionBuilder(settings.scheme.name, plan, settings.lane1))
    for _ in range(_WARM_UP):
        detector.judge(feed.take(max(SIZES)))
    rows: list[Row] = []
    for size, copied in product(SIZES, (False, True)):
        drawn = feed.take(2 * size)
        batch = drawn[:size] if copied else [drawn[place] for place in range(2 * size) if place % COPIED_EVERY][:size]
        with noted() as requests:
            events = detector.judge(batch)
        trips = chain(requests)
        counts = Counter(request.name for request in requests)
        rows.append(
            {
                "articles": size,
                "duplicates": sum(event.verdict.outcome == "duplicate" for event in events),
                "round trips": len(trips),
                "requests": len(requests),
                "in order": " ".join(trips),
                "each": ", ".join(f"{count} {name}" for name, count in sorted(counts.items())),
            }
        )
    return rows


def main(
    articles: Annotated[int, typer.Option(min=1, help="Articles in the store.")] = 10_000,
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "4x16",
    folder: Annotated[Path | None, typer.Option(help="Where filled stores stay for the next time.")] = None,
) -> None:
    """Count the requests of a batch."""
    with servers(folder) as running:
        store = HbaseStore.open(parse_place(filled(running, Wanted(plan, articles, packed=False))))
        rows = measure(store, BlockPlan.named(plan))
        store.close()
    publish(PART, f"Round trips of a batch, {articles:,} articles, {plan}", rows, articles=articles, plan=plan)


if __name__ == "__main__":
    typer.run(main)
