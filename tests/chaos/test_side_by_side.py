"""Near-duplicates in different partitions of a batch, which threads of one process judge at the same time."""

import random
from functools import partial
from pathlib import Path

from consumer.judge.detector import Detector
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.hooks import Hooks
from consumer.model.record import Partition
from consumer.pipeline.side_by_side import SideBySide
from storage.clock import now_ms
from storage.records import Version
from tests.chaos.judging import Judged, open_lmdb
from tests.chaos.near_articles import SETTINGS, near_chain, near_group, shuffled
from tests.chaos.test_two_processes import Group, check

GROUPS = 400
GROUPS_A_BATCH = 20
PARTITIONS = 3


def test_groups_and_chains_over_three_partitions_keep_what_they_must(tmp_path: Path) -> None:
    """As over three processes; the threads share one judge, with what it knows and counts."""
    chance = random.Random("side by side")
    groups: list[Group] = []
    for number in range(GROUPS):
        make = near_group if number % 2 else near_chain
        groups.append(make(chance, f"group {number}", chance.randint(3, 5), 5 * number))
    opens = partial(open_lmdb, tmp_path / "store")
    store = opens()
    detector = Detector(store, SETTINGS, now_ms)
    side_by_side = SideBySide(PARTITIONS, ThreadProgress(Hooks()))
    answers: dict[bytes, bytes] = {}
    for at in range(0, GROUPS, GROUPS_A_BATCH):
        batch: list[Version] = []
        partitions: list[Partition] = []
        for group in groups[at : at + GROUPS_A_BATCH]:
            for turn, version in enumerate(shuffled(group, chance)):
                batch.append(version)
                partitions.append(("articles", turn % PARTITIONS))
        events = side_by_side.call(detector.judge, batch, partitions)
        answers |= {version.record.reference: event.encoded for version, event in zip(batch, events, strict=True)}
    side_by_side.close()
    store.close()
    tally = detector.tally
    check(opens, groups, [Judged(answers, tally.lost_compare_and_sets)])
    assert tally.lost_compare_and_sets > 0
    assert tally.versions == tally.kept + tally.duplicates == len(answers)
