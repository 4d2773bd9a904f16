"""A process that does nothing but judge, so that all memory it takes is what judging takes."""

from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

from consumer.judge.detector import Detector
from consumer.lifecycle.heap import periodic_trim
from storage.clock import now_ms
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.store import HbaseStore
from tests.builders import make_version
from tests.chaos.near_articles import SETTINGS

BATCH = 256


class Done(NamedTuple):
    """What a batch came to: how many verdicts there are, how many rows were cut at the cap, and postings read."""

    verdicts: int
    crowded_rows: int
    postings: int


def judge_apart(url: str, asked: "Connection[Done | None, str | None]", rows: Sequence[tuple[bytes, ...]]) -> None:
    """Judge a batch at each name that is received, until None; its articles have these keys, group by group."""
    store = HbaseStore.open(parse_place(url), HbaseOptions())
    detector = Detector(store, SETTINGS, now_ms)
    # As in a consumer: large pieces go back to the system as soon as they are freed.
    with periodic_trim():
        asked.send(None)
        while (name := asked.recv()) is not None:
            crowded, postings = detector.tally.crowded_rows, detector.tally.postings_read
            batch = [
                make_version(f"{name} {number}", f"{name} {number}".encode(), keys=rows[number * len(rows) // BATCH])
                for number in range(BATCH)
            ]
            verdicts = len(detector.judge(batch))
            asked.send(Done(verdicts, detector.tally.crowded_rows - crowded, detector.tally.postings_read - postings))
    store.close()
