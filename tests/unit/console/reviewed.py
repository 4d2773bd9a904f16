"""Pairs that people have decided about, for the page of thresholds."""

import re
import time
from typing import Final

from consumer.model.near_miss import NearMiss
from consumer.reviews import people
from consumer.reviews.database import Connection
from consumer.reviews.decisions import Decision, decide
from consumer.reviews.flag_events import add_events
from consumer.reviews.flag_row import tally
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.kinds.side_entries import add_near_misses
from consumer.reviews.queue import Filters
from consumer.reviews.queue import page as queue_page
from consumer.text.timestamps import rfc3339
from tests.unit.console.desks import Office, Page, page
from tests.unit.console.newsroom import BEGAN_MS
from tests.unit.reviews.made import flagged

DAY_MS: Final = 86_400_000
WAIT_S: Final = 60


def review(
    desk: Office,
    line: float = 0.8,
    *,
    near_misses: int = 0,
    least: float = 0.6,
    source: str = "post",
    flags: int = 100,
) -> None:
    """Add flags from 0.75 up and near misses from the least up, and have Ann decide: the same from the line on.

    They come over ten days.
    """

    def written(connection: Connection) -> None:
        events = [
            flagged(f"{source}-f{n}", "o", similarity=0.75 + 0.25 * n / flags, at_ms=BEGAN_MS - n % 11 * DAY_MS,
                    sources=(source, "wire"))
            for n in range(flags)
        ]  # fmt: skip
        add_events(connection, events)
        missed = [
            NearMiss(
                id=f"{source}-n{n}", version="aa", original="o", original_version="aa", source=source,
                original_source="wire", similarity=least + (0.75 - least) * n / near_misses, threshold=0.75, distance=9,
                sampled_in=100.0, truncated=False, arrived_at=rfc3339(BEGAN_MS), decided_at=rfc3339(BEGAN_MS),
            )
            for n in range(near_misses)
        ]  # fmt: skip
        if missed:
            add_near_misses(connection, missed)
        ann = people.person_named(connection, "Ann")
        assert ann is not None
        rows = queue_page(connection, Filters(source=source), "newest", 10_000).rows
        said: dict[Decision, list[int]] = {"right": [], "wrong": []}
        for row in rows:
            said["right" if (row.similarity or 0) >= line else "wrong"].append(row.flag_id)
        for decision, ids in said.items():
            decide(connection, ids, ann.person_id, decision, "", desk.served.clock(), 0)

    desk.room.database.write(written)


def whole_figures(desk: Office, left_out: int = 0) -> Page:
    """Open the page of thresholds once its figures have all that was decided, sources too, and all but some pairs."""
    with desk.room.database.read_connection() as connection:
        decided = sum(tally(connection)[kind, state] for kind in KINDS for state in ("right", "wrong", "released"))
    until_s = time.monotonic() + WAIT_S
    while True:
        opened = page(desk.ann, "/thresholds")
        if "Check again" not in opened.answer.shown and "重新查看" not in opened.answer.shown:
            counted = [int("".join(re.findall("[0-9]", text))) for text in opened.texts("#counts dd b")]
            if sum(counted) == decided - left_out:
                return opened
        assert time.monotonic() < until_s, opened.answer.shown
        time.sleep(0.05)
