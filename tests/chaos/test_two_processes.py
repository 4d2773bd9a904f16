"""Near-duplicates that reach several processes at once: one of each pair is kept, whichever process is faster."""

import random
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import msgspec

from consumer.judge.detector import Detector
from consumer.judge.events import reference_in
from consumer.model.verdict import SeenBefore, Verdict, decode_verdict
from consumer.store_tools.inspection import verify
from storage.clock import MS_PER_DAY, now_ms
from storage.records import Version
from tests.chaos.judging import Judged, Opens, dealt, in_batches, judge_together, open_lmdb, open_lmdb_for_batches
from tests.chaos.near_articles import SETTINGS, are_near, near_chain, near_group, shuffled

PAIRS = 2_000
PAIRS_A_STEP = 4
PAIRS_IN_BATCHES = 400
GROUPS = 800

Group = Sequence[Version]


def check(opens: Opens, groups: Sequence[Group], judged: Sequence[Judged]) -> dict[bytes, Verdict]:
    """All that is promised of a store that processes have judged these groups into; the verdicts by reference."""
    store = opens()
    versions = [version for group in groups for version in group]
    references = [version.record.reference for version in versions]
    stored = {
        entry.record.reference: entry.verdict for entry in store.read(references) if entry is not None and entry.verdict
    }
    assert stored.keys() == set(references)
    for process in judged:
        assert process.answers.items() <= stored.items(), "a process was answered otherwise than what is stored"
    assert set().union(*(process.answers for process in judged)) == set(references)
    verdicts = {reference: decode_verdict(event) for reference, event in stored.items()}
    for group in groups:
        check_group(group, verdicts)
    *_, findings = verify(store, SETTINGS)
    assert findings.wrong == []
    assert findings.pending == 0
    detector = Detector(store, SETTINGS, now_ms)
    for batch in in_batches(versions, 100):
        answers = [event.encoded for event in detector.judge(batch)]
        assert answers == [stored[version.record.reference] for version in batch], "a verdict changed"
    store.close()
    return verdicts


def check_group(group: Group, verdicts: dict[bytes, Verdict]) -> None:
    """No two near ones are kept, one at least is, and every chain ends at a kept one of the group."""
    kept = {version.record.reference for version in group if is_kept(verdicts[version.record.reference])}
    assert kept, "none is kept"
    for a, b in combinations([version for version in group if version.record.reference in kept], 2):
        assert not are_near(a, b), "both are kept"
    for version in group:
        reference, steps = version.record.reference, 0
        while not is_kept(verdicts[reference]):
            verdict = verdicts[reference]
            reference, steps = reference_in(verdict.duplicate_of or "", verdict.duplicate_of_version), steps + 1
            assert steps < len(group), "a chain goes round in a circle"
        assert reference in kept


def is_kept(verdict: Verdict) -> bool:
    """Whether the article was passed."""
    return verdict.outcome == "unique"


def lost(judged: Sequence[Judged]) -> int:
    """How often a process was second. If none ever was, the test has tested nothing."""
    return sum(process.lost_compare_and_sets for process in judged)


def test_of_each_pair_that_comes_to_two_processes_at_once_one_is_kept(tmp_path: Path) -> None:
    """Thousands of pairs, one half of each in each process, in step: never both kept and never neither."""
    chance = random.Random("pairs")
    pairs = [near_group(chance, f"pair {number}", 2, 2 * number) for number in range(PAIRS)]
    judged = judge_together(partial(open_lmdb, tmp_path / "store"), dealt(pairs, 2, PAIRS_A_STEP))
    verdicts = check(partial(open_lmdb, tmp_path / "store"), pairs, judged)
    assert sum(map(is_kept, verdicts.values())) == PAIRS
    assert lost(judged) > 0


def test_batches_that_are_written_at_once_come_one_after_the_other(tmp_path: Path) -> None:
    """So a process never loses against one that does as it does."""
    chance = random.Random("at once")
    pairs = [near_group(chance, f"pair {number}", 2, 2 * number) for number in range(PAIRS_IN_BATCHES)]
    opens = partial(open_lmdb_for_batches, tmp_path / "store")
    judged = judge_together(opens, dealt(pairs, 2, PAIRS_A_STEP))
    assert sum(map(is_kept, check(opens, pairs, judged).values())) == PAIRS_IN_BATCHES
    assert lost(judged) == 0


def test_a_batch_that_is_written_at_once_comes_between_calls_of_another_process(tmp_path: Path) -> None:
    """Beside a consumer of an earlier version, which loses against it now and then, one of each pair is kept."""
    chance = random.Random("versions")
    pairs = [near_group(chance, f"pair {number}", 2, 2 * number) for number in range(PAIRS_IN_BATCHES)]
    opens, at_once = (partial(way, tmp_path / "store") for way in (open_lmdb, open_lmdb_for_batches))
    judged = judge_together(opens, dealt(pairs, 2, PAIRS_A_STEP), last_opens=at_once)
    assert sum(map(is_kept, check(opens, pairs, judged).values())) == PAIRS_IN_BATCHES
    assert lost(judged) == lost(judged[:1]) > 0


def test_two_processes_with_the_same_articles_answer_the_same(tmp_path: Path) -> None:
    """A consumer that was thought dead judges what another one has been given: both answer what is stored."""
    chance = random.Random("zombie")
    groups = [near_group(chance, f"group {number}", 3, 3 * number) for number in range(GROUPS)]
    versions = [version for group in groups for version in group]
    forwards = in_batches(versions, 6)
    backwards = [shuffled(batch, chance) for batch in forwards]
    judged = judge_together(partial(open_lmdb, tmp_path / "store"), [forwards, backwards])
    assert judged[0].answers == judged[1].answers
    check(partial(open_lmdb, tmp_path / "store"), groups, judged)
    assert lost(judged) > 0


def test_what_verdicts_say_besides_is_the_same_from_both(tmp_path: Path) -> None:
    """With judges that remember texts and look for parts: groups have a part in common, and texts come back."""
    chance = random.Random("besides")
    groups = [near_group(chance, f"group {number}", 3, 3 * number) for number in range(GROUPS // 2)]
    besides = [[_with_part(version, number // 4) for version in group] for number, group in enumerate(groups)]
    versions = [version for group in besides for version in group]
    forwards = in_batches(versions, 6)
    backwards = [shuffled(batch, chance) for batch in forwards]
    judged = judge_together(partial(open_lmdb, tmp_path / "store"), [forwards, backwards], annotating=True)
    assert judged[0].answers == judged[1].answers
    verdicts = check(partial(open_lmdb, tmp_path / "store"), besides, judged)
    assert sum(isinstance(verdict.parts, tuple) for verdict in verdicts.values()) > GROUPS // 16
    assert sum(isinstance(verdict.seen_before, SeenBefore) for verdict in verdicts.values()) > GROUPS // 16
    assert lost(judged) > 0


def _with_part(version: Version, story: int) -> Version:
    """Return the version with a part of this story, and its text; every other story comes ten days later again."""
    record = version.record
    later_ms = 10 * MS_PER_DAY if story % 2 else 0
    sample = b"".join((1_000 * story + number).to_bytes(4, "big") for number in range(100))
    changed = msgspec.structs.replace(
        record,
        time_ms=record.time_ms + later_ms,
        text_digest=(story // 2).to_bytes(16, "big"),
        anchors=story.to_bytes(8, "little"),
        sample=sample,
    )
    return version._replace(record=changed)


def test_groups_and_chains_over_three_processes_keep_what_they_must(tmp_path: Path) -> None:
    """Groups of three to five that are all near each other, and chains that are not, in the order of chance."""
    chance = random.Random("groups")
    groups: list[Group] = []
    for number in range(GROUPS):
        make = near_group if number % 2 else near_chain
        groups.append(make(chance, f"group {number}", chance.randint(3, 5), 5 * number))
    shares = dealt([shuffled(group, chance) for group in groups], 3, 2)
    judged = judge_together(partial(open_lmdb, tmp_path / "store"), shares)
    verdicts = check(partial(open_lmdb, tmp_path / "store"), groups, judged)
    assert sum(map(is_kept, verdicts.values())) > GROUPS
    assert lost(judged) > 0
