"""Pairs that are alike, counted: for thresholds, where a million rows are too many."""

from collections import Counter

import pytest

from consumer.reviews.database import Database
from consumer.reviews.decisions import decide
from consumer.reviews.pairs import reviewed_pairs
from consumer.reviews.pairs.reviewed_pairs import (
    TooManyCombinations,
    count_unverified,
    pair_counts,
    reviews_by_source,
)
from consumer.reviews.sources import source_ids
from consumer.reviews.standing.application import apply
from consumer.reviews.standing.standing_decisions import NewStandingDecision, begin
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_missed,
    add_person,
    flag_ids,
    flagged,
    near_miss,
    read,
    released,
    rows_of,
    write,
)


def fill(database: Database) -> None:
    """Flags and near misses of several sources, most of them decided."""
    person = add_person(database, "Ann").person_id
    for number in range(12):
        sources = (f"s{number % 3}", "wire") if number % 4 else (None, None)
        flag = flagged(f"a{number}", "o", similarity=0.8 + number % 2 / 10, sources=sources, at_ms=NOW_MS + number)
        add(database, flag)
        if number == 11:
            add(database, released(flag))
    add(database, flagged("unverified", "o", similarity=None), flagged("open", "o", similarity=None))
    add_missed(database, *(near_miss(f"n{number}", "o", sampled_in=10.0 + number % 2) for number in range(4)))
    ids = flag_ids(database)
    write(database, decide, ids[:5], person, "right", "", NOW_MS, 0)
    write(database, decide, ids[5:9], person, "wrong", "", NOW_MS, 0)
    write(database, decide, ids[12:13], person, "wrong", "", NOW_MS, 0)
    write(database, decide, ids[-3:-1], person, "right", "", NOW_MS, 0)
    decide_by_rule(database, person)


def decide_by_rule(database: Database, person: int) -> None:
    """Let standing decisions decide flags, of which one has no similarity, and one is released elsewhere later."""
    sources = write(database, source_ids, ("s0", "s1", "wire"))
    mute = NewStandingDecision("wrong", person, NOW_MS + 9, "", sources=(sources["s0"], sources["wire"]))
    story_id = rows_of(database)["a0"].story_id
    for new in (mute, NewStandingDecision("right", person, NOW_MS + 9, "", story_id=story_id)):
        write(database, begin, new, NOW_MS)
    muted = [flagged(f"m{n}", "x", similarity=0.9, sources=("s0", "wire"), at_ms=NOW_MS + n) for n in range(3)]
    further = [flagged(f"f{n}", "o", similarity=None if n == 3 else 0.9, sources=("s1", "wire")) for n in range(4)]
    added = add(database, *muted, *further)
    assert write(database, apply, added.flag_ids, NOW_MS, 5) == {"right": 4, "wrong": 3}
    add(database, released(further[0]), released(muted[0]))


def test_counts_are_those_of_the_pairs(database: Database) -> None:
    """As the export has them, one by one; those without a similarity are counted apart."""
    fill(database)
    with database.read_connection() as connection:
        pairs = list(reviewed_pairs.pairs(connection))
    expected = Counter(
        (pair.kind, pair.similarity, pair.decision, pair.sampled_in) for pair in pairs if pair.similarity is not None
    )
    counted = read(database, pair_counts)
    found: Counter[object] = Counter()
    for each in counted:
        found[each.kind, each.similarity, each.decision, each.sampled_in] += each.pairs
    assert found == expected
    assert (min(each.first_ms for each in counted), max(each.last_ms for each in counted)) == (NOW_MS, NOW_MS + 11)
    assert read(database, count_unverified) == 1


def test_what_standing_decisions_decide_is_decided_by_nobody(database: Database) -> None:
    """They have not looked at the pair; but whoever releases one elsewhere has."""
    fill(database)
    rows = rows_of(database)
    assert [rows[f"m{n}"].state for n in range(3)] == ["wrong"] * 3
    assert [rows[f"f{n}"].state for n in range(4)] == ["released", "right", "right", "right"]
    with database.read_connection() as connection:
        of_rules = list(reviewed_pairs.pairs(connection))[-7:]
    assert [(pair.decision, pair.at_ms, pair.person) for pair in of_rules] == [
        *[(None, None, None)] * 3,
        ("wrong", NOW_MS + 1_000, None),
        *[(None, None, None)] * 3,
    ]
    decided = sum(each.pairs for each in read(database, pair_counts) if each.decision is not None)
    with database.read_connection() as connection:
        pairs = [pair for pair in reviewed_pairs.pairs(connection) if pair.similarity is not None]
    assert decided == sum(pair.decision is not None for pair in pairs)


def test_sources_have_the_reviews_of_their_later_articles(database: Database) -> None:
    """Most first; the counts of one are of its own pairs."""
    fill(database)
    with database.read_connection() as connection:
        pairs = [pair for pair in reviewed_pairs.pairs(connection) if pair.similarity is not None]
    decided = Counter(pair.source or "" for pair in pairs if pair.decision)
    sources = read(database, reviews_by_source)
    assert {each.name: each.reviews for each in sources} == decided
    assert [each.reviews for each in sources] == sorted(decided.values(), reverse=True)
    for source in sources:
        if source.source_id is not None:
            counts = read(database, pair_counts, source.source_id)
            assert sum(each.pairs for each in counts) == sum(pair.source == source.name for pair in pairs)


def test_pairs_that_differ_in_too_many_ways_are_not_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can make a page hold a million rows."""
    add_missed(database, *(near_miss(f"n{number}", "o", sampled_in=1.0 + number) for number in range(4)))
    monkeypatch.setattr(reviewed_pairs, "ROWS_MAX", 3)
    with pytest.raises(TooManyCombinations, match="more than 3 different combinations"):
        read(database, pair_counts)
    monkeypatch.setattr(reviewed_pairs, "ROWS_MAX", 4)
    assert len(read(database, pair_counts)) == 4
