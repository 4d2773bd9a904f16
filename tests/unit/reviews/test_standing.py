"""Standing decisions: which new flags they decide, how they end, and what is counted of them."""

from functools import partial
from typing import Final

import pytest
from sqlalchemy import select, update

from consumer.model.verdict import Verdict
from consumer.reviews import audit, people
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import Database
from consumer.reviews.decisions import decide, own_reviews_at, undo
from consumer.reviews.discussion import Decider, deciders, history
from consumer.reviews.flag_events import FlagSources, set_sources, sources_missing
from consumer.reviews.moderation.reasons import add_reason
from consumer.reviews.repairs.merge import merge, undo_merge
from consumer.reviews.sending import claim_due, mark_sent
from consumer.reviews.sources import source_ids
from consumer.reviews.standing import standing_decisions
from consumer.reviews.standing.application import apply
from consumer.reviews.standing.standing_decisions import (
    LASTS_MS_MAX,
    DuplicateStandingDecision,
    NewStandingDecision,
    OwnerDisabled,
    PairHistory,
    StandingDecision,
    StandingDecisionEnded,
    StandingOutcome,
    StandingRevocation,
    TooManyStandingDecisions,
    UnknownStandingDecision,
    begin,
    counts_in_force,
    end,
    ended_since,
    in_force,
    pair_history,
)
from consumer.reviews.stories import story
from consumer.reviews.tables import REVIEWS
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_matches,
    add_missed,
    add_person,
    at_once,
    bank_match,
    check_counts,
    denied,
    executions,
    flag_ids,
    flagged,
    near_miss,
    number_of,
    read,
    released,
    rows_of,
    write,
)
from tests.unit.reviews.outbox_made import causes_of

UNDO_MS: Final = 10_000
HOUR_MS: Final = 3_600_000
MANY: Final = 1_000


class Desk:
    """Ann and Bob, and a database with a story of three copies."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.ann, self.bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))
        add(database, *(flagged(name, "original") for name in "abc"))
        self.story_id = rows_of(database)["a"].story_id

    def of_story(self, *, ends_ms: int = NOW_MS + HOUR_MS, note: str = "", at_ms: int = NOW_MS) -> StandingDecision:
        """Let Ann decide that all further copies of the story are right."""
        return self._begin(NewStandingDecision("right", self.ann, ends_ms, note, story_id=self.story_id), at_ms)

    def mute(
        self, *, sources: tuple[str, str] = ("a", "b"), reason_id: int | None = None, at_ms: int = NOW_MS
    ) -> StandingDecision:
        """Let Bob mute a pair of sources."""
        numbers = write(self.database, source_ids, sources)
        pair = numbers[sources[0]], numbers[sources[1]]
        return self._begin(NewStandingDecision("wrong", self.bob, at_ms + HOUR_MS, "", reason_id, sources=pair), at_ms)

    def take(self, *events: Verdict, at_ms: int = NOW_MS + 1) -> dict[StandingOutcome, int]:
        """Take in events as the intake does, and return what was decided."""
        return dict(write(self.database, apply, add(self.database, *events).flag_ids, at_ms, UNDO_MS))

    def end(self, standing: StandingDecision, at_ms: int = NOW_MS + 2) -> StandingRevocation:
        """End one."""
        return write(self.database, end, standing.standing_id, at_ms)

    def states(self) -> dict[str, str]:
        """The state of each entry; everything that is counted is checked as well."""
        check_counts(self.database)
        return {name: row.state for name, row in rows_of(self.database).items()}

    def known(self, at_ms: int = NOW_MS + 2) -> list[StandingDecision]:
        """All that are in force."""
        return read(self.database, in_force, at_ms)

    def audited(self) -> list[tuple[str, str, str]]:
        """Who did what to which article, and why, the first entry first."""
        entries = read(self.database, audit.search, AuditFilters(), None, 100).rows
        return [(entry.person, f"{entry.action} {entry.subject}", entry.why) for entry in entries[::-1]]

    def _begin(self, new: NewStandingDecision, at_ms: int) -> StandingDecision:
        return write(self.database, begin, new, at_ms)


@pytest.fixture
def desk(database: Database) -> Desk:
    """Two people and a story."""
    return Desk(database)


def test_further_copies_of_a_story_are_right_as_they_come(desk: Desk) -> None:
    """In the name of the owner, with the note, as if they had clicked; what came before, and other stories, stay."""
    standing = desk.of_story(note="the ferry")
    assert desk.take(flagged("d", "original"), flagged("e", "original"), flagged("x", "other")) == {"right": 2}
    assert desk.states() == {**dict.fromkeys("abcx", "open"), "d": "right", "e": "right"}
    (said,) = read(desk.database, history, rows_of(desk.database)["d"].flag_id)
    assert (said.person, said.decision, said.text, said.is_standing) == ("Ann", "right", "the ferry", True)
    assert (said.at_ms, said.final_ms) == (NOW_MS + 1, NOW_MS + 1 + UNDO_MS)
    why = f"standing decision {standing.standing_id}: the ferry"
    assert desk.audited() == [("Ann", "flag.right d", why), ("Ann", "flag.right e", why)]
    (known,) = desk.known()
    assert (known.flags, known.person, known.root_id, known.subject) == (2, "Ann", "original", "original")
    found = read(desk.database, story, desk.story_id)
    assert found is not None
    assert (found.copies, found.open_copies) == (5, 3)


def test_flags_of_a_muted_pair_are_released(desk: Desk) -> None:
    """By the usual way, once they are final, with the reason; the other way round the sources are another pair."""
    reason = write(desk.database, add_reason, "Mirror")
    desk.mute(sources=("copier", "wire"), reason_id=reason.reason_id)
    events = [flagged("d", "o", sources=("copier", "wire")), flagged("e", "o", sources=("wire", "copier"))]
    assert desk.take(*events) == {"wrong": 1}
    assert desk.states() == {**dict.fromkeys("abce", "open"), "d": "wrong"}
    assert write(desk.database, claim_due, "w", NOW_MS + UNDO_MS, 9, 9) == []
    (release,) = write(desk.database, claim_due, "w", NOW_MS + 1 + UNDO_MS, 9, 9)
    assert (release.flag.article_id, release.person, release.reason) == ("d", "Bob", "Mirror")
    assert desk.known()[0].subject == "copier -> wire"
    assert read(desk.database, counts_in_force, NOW_MS) == {"wrong": 1}


def test_the_decision_about_the_story_counts_before_that_about_the_sources(desk: Desk) -> None:
    """Whichever was made first."""
    desk.mute()
    desk.of_story()
    assert desk.take(flagged("d", "original"), flagged("x", "other")) == {"right": 1, "wrong": 1}
    assert desk.states()["d"] == "right"
    assert {each.decision: each.flags for each in desk.known()} == {"right": 1, "wrong": 1}


def test_a_story_that_was_merged_keeps_its_decision(desk: Desk) -> None:
    """For what would belong to it, and to those that were merged into it, however far it is merged; not for others."""
    add(desk.database, flagged("x", "further"), flagged("y", "other"))
    other, further = (rows_of(desk.database)[name].story_id for name in "yx")
    eve = add_person(desk.database, "Eve")
    write(desk.database, merge, other, desk.story_id, eve, NOW_MS)
    desk.of_story()
    write(desk.database, merge, desk.story_id, further, eve, NOW_MS)
    assert desk.take(flagged("d", "original"), flagged("e", "other"), flagged("f", "further")) == {"right": 2}
    assert {rows_of(desk.database)[name].story_id for name in "def"} == {further}
    write(desk.database, undo_merge, desk.story_id, eve, NOW_MS)
    assert desk.take(flagged("g", "original"), flagged("h", "other"), flagged("i", "further")) == {"right": 2}
    states = desk.states()
    assert [states[name] for name in "defghi"] == ["right", "right", "open"] * 2


def test_other_kinds_and_what_is_decided_or_released_are_left_alone(desk: Desk) -> None:
    """Also a flag that comes together with its release."""
    desk.of_story()
    add_missed(desk.database, near_miss("near", "original"))
    add_matches(desk.database, bank_match("match", denied("offer")))
    gone, decided = flagged("gone", "original"), flagged("decided", "original")
    add(desk.database, decided)
    ids = {name: row.flag_id for name, row in rows_of(desk.database).items()}
    write(desk.database, decide, [ids["decided"]], desk.bob, "skip", "", NOW_MS, UNDO_MS)
    assert desk.take(gone, released(gone)) == {}
    assert dict(write(desk.database, apply, list(ids.values())[3:], NOW_MS + 1, UNDO_MS)) == {}
    states = desk.states()
    assert [states[name] for name in ("near", "match", "gone", "decided")] == ["open", "open", "released", "skipped"]


def test_what_comes_again_changes_nothing(desk: Desk) -> None:
    """Neither what was decided nor what is counted; a decision that its owner undid is not made again."""
    desk.of_story()
    events = [flagged("d", "original"), flagged("e", "original")]
    assert desk.take(*events) == {"right": 2}
    (review, *_) = read(desk.database, history, rows_of(desk.database)["d"].flag_id)
    assert write(desk.database, undo, [review.entry_id], desk.ann, NOW_MS + 2) == [review.entry_id]
    assert desk.take(*events, *(flagged(name, "original") for name in "abc")) == {}
    assert desk.states() == {**dict.fromkeys("abcd", "open"), "e": "right"}
    assert (number_of(desk.database, REVIEWS), desk.known()[0].flags) == (2, 2)


def test_it_ends_by_itself(desk: Desk) -> None:
    """From that moment on; it is listed as one that has ended."""
    standing = desk.of_story(ends_ms=NOW_MS + 100)
    assert desk.take(flagged("d", "original"), at_ms=NOW_MS + 99) == {"right": 1}
    assert desk.take(flagged("e", "original"), at_ms=NOW_MS + 100) == {}
    assert desk.known(NOW_MS + 100) == []
    (ended,) = read(desk.database, ended_since, NOW_MS, NOW_MS + 100)
    assert (ended.standing_id, ended.ended_ms, ended.flags) == (standing.standing_id, NOW_MS + 100, 1)
    assert read(desk.database, ended_since, NOW_MS + 101, NOW_MS + 200) == []
    with pytest.raises(StandingDecisionEnded):
        desk.end(standing, NOW_MS + 100)


def test_ended_it_takes_back_what_is_not_final(desk: Desk) -> None:
    """Whatever is final, or is being sent, stays; then the same may be decided anew."""
    standing = desk.mute()
    desk.take(flagged("final", "o"), at_ms=NOW_MS + 1)
    desk.take(flagged("sent", "o"), flagged("undone", "o"), flagged("open", "o"), at_ms=NOW_MS + UNDO_MS)
    ids = {name: row.flag_id for name, row in rows_of(desk.database).items()}
    with desk.database.write_transaction() as connection:
        claimed = update(REVIEWS).where(REVIEWS.c.flag_id == ids["sent"])
        connection.execute(claimed.values(claimed_by="w", claimed_ms=NOW_MS))
        own = connection.execute(select(REVIEWS.c.review_id).where(REVIEWS.c.flag_id == ids["undone"])).scalar_one()
    write(desk.database, undo, [own], desk.bob, NOW_MS + UNDO_MS)
    ending = desk.end(standing, NOW_MS + 1 + UNDO_MS)
    assert ([flag.article_id for flag in ending.reopened], ending.kept) == (["open"], 2)
    states = desk.states()
    assert [states[name] for name in ("final", "sent", "undone", "open")] == ["wrong", "wrong", "open", "open"]
    with pytest.raises(StandingDecisionEnded):
        desk.end(standing, NOW_MS + 1 + UNDO_MS)
    assert desk.take(flagged("later", "o"), at_ms=NOW_MS + 2 + UNDO_MS) == {}
    desk.mute(at_ms=NOW_MS + 3 + UNDO_MS)
    with pytest.raises(UnknownStandingDecision):
        write(desk.database, end, 999, NOW_MS)


def test_a_mute_fits_flags_whose_sources_become_known_later(desk: Desk) -> None:
    """Unless they were judged before it began, or somebody has decided about them since; a story's rule is past."""
    with_sources = partial(flagged, sources=(None, None))
    desk.take(with_sources("before", "o", at_ms=NOW_MS - 1_000))
    standing = desk.mute(sources=("copier", "wire"))
    events = [with_sources(name, "o", at_ms=NOW_MS) for name in ("later", "undone", "other")]
    assert desk.take(*events) == {}
    ids = {name: row.flag_id for name, row in rows_of(desk.database).items()}
    made = write(desk.database, decide, [ids["undone"]], desk.ann, "right", "", NOW_MS, UNDO_MS).review_ids
    write(desk.database, undo, made, desk.ann, NOW_MS)
    missing = read(desk.database, sources_missing, 9)
    names = {ids["other"]: "somebody"}
    filled = [FlagSources(row.flag_id, names.get(row.flag_id, "copier"), "wire") for row in missing]
    write(desk.database, set_sources, filled)
    found = write(desk.database, apply, [row.flag_id for row in filled], NOW_MS + 1, UNDO_MS, are_stored=True)
    assert dict(found) == {"wrong": 1}
    states = desk.states()
    assert [states[name] for name in ("before", "later", "undone", "other")] == ["open", "wrong", "open", "open"]
    assert next(each for each in desk.known() if each.standing_id == standing.standing_id).flags == 1


def test_a_story_s_decision_does_not_reach_flags_whose_sources_become_known(desk: Desk) -> None:
    """They came before it."""
    desk.take(flagged("d", "original", sources=(None, None), at_ms=NOW_MS + 50))
    desk.of_story()
    ids = [rows_of(desk.database)["d"].flag_id]
    assert write(desk.database, apply, ids, NOW_MS + 1, UNDO_MS, are_stored=True) == {}


def test_it_follows_a_story_that_another_takes_over(desk: Desk) -> None:
    """The original has turned out to be a copy itself."""
    standing = desk.of_story()
    desk.take(flagged("original", "first"))
    assert desk.take(flagged("d", "original"), at_ms=NOW_MS + 1) == {"right": 1}
    states = desk.states()
    assert (states["original"], states["d"]) == ("open", "right")
    moved = rows_of(desk.database)["d"].story_id
    assert moved != desk.story_id
    (known,) = desk.known()
    assert (known.standing_id, known.story_id) == (standing.standing_id, moved)


def test_an_account_that_is_disabled_has_no_standing_decisions(desk: Desk) -> None:
    """They end, and stay ended when it is enabled again; what they decided stays, and those of others go on."""
    desk.of_story()
    desk.mute(sources=("copier", "wire"))
    desk.take(flagged("d", "original"))
    write(desk.database, people.disable, desk.ann, NOW_MS + 5)
    assert [each.person for each in desk.known(NOW_MS + 5)] == ["Bob"]
    assert desk.take(flagged("e", "original"), at_ms=NOW_MS + 6) == {}
    with pytest.raises(OwnerDisabled):
        desk.of_story(at_ms=NOW_MS + 7)
    write(desk.database, people.enable, desk.ann)
    assert desk.take(flagged("f", "original"), at_ms=NOW_MS + 8) == {}
    assert desk.states() == {**dict.fromkeys("abcef", "open"), "d": "right"}
    assert [each.ended_ms for each in read(desk.database, ended_since, NOW_MS, NOW_MS + 9)] == [NOW_MS + 5]


def test_there_is_one_about_a_story_or_a_pair(desk: Desk, second: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where two people make one at the same moment; and no more in all than batches can be compared with."""

    def muted(database: Database) -> bool:
        pair = write(database, source_ids, ("a", "b"))
        new = NewStandingDecision("wrong", desk.bob, NOW_MS + HOUR_MS, "", sources=(pair["a"], pair["b"]))
        try:
            write(database, begin, new, NOW_MS)
        except DuplicateStandingDecision:
            return False
        return True

    assert sorted(at_once([partial(muted, desk.database), partial(muted, second)])) == [False, True]
    desk.of_story()
    with pytest.raises(DuplicateStandingDecision):
        desk.of_story(at_ms=NOW_MS + 1)
    monkeypatch.setattr(standing_decisions, "IN_FORCE_MAX", 2)
    with pytest.raises(TooManyStandingDecisions):
        desk.mute(sources=("copier", "wire"))


@pytest.mark.parametrize("decision", ["right", "wrong"])
def test_none_is_for_ever(desk: Desk, decision: StandingOutcome) -> None:
    """Nor over before it begins."""
    longest = NewStandingDecision(decision, desk.ann, NOW_MS + LASTS_MS_MAX[decision], "", story_id=desk.story_id)
    for ends_ms in (longest.ends_ms + 1, NOW_MS):
        with pytest.raises(ValueError, match="must be within"):
            write(desk.database, begin, longest._replace(ends_ms=ends_ms), NOW_MS)
    assert write(desk.database, begin, longest, NOW_MS).ends_ms == longest.ends_ms


def test_a_large_batch_costs_few_statements(desk: Desk) -> None:
    """None for each flag."""
    desk.of_story()
    desk.mute()
    added = add(desk.database, *(flagged(f"d{n}", "original" if n % 2 else "other") for n in range(MANY)))
    with executions(desk.database) as executed:
        decided = write(desk.database, apply, added.flag_ids, NOW_MS + 1, UNDO_MS)
    assert dict(decided) == {"right": MANY // 2, "wrong": MANY // 2}
    assert len(executed) < MANY / 20
    check_counts(desk.database)


def test_no_story_is_told_to_be_decided(desk: Desk) -> None:
    """Again and again, as its further copies come. A person's decision about the last copy before is told."""
    desk.of_story()
    write(desk.database, decide, flag_ids(desk.database), desk.bob, "right", "", NOW_MS, UNDO_MS)
    assert [cause for cause, *_ in causes_of(desk.database)] == ["decided"]
    for name in "de":
        desk.take(flagged(name, "original"))
    assert [cause for cause, *_ in causes_of(desk.database)] == ["decided"]


def test_people_are_told_apart_from_standing_decisions(desk: Desk) -> None:
    """By the name in lists, in what became of a pair of sources, and in what one undoes together."""
    desk.mute()
    desk.take(*(flagged(name, "o") for name in "de"))
    ids = {name: row.flag_id for name, row in rows_of(desk.database).items()}
    write(desk.database, decide, [ids["a"], ids["b"]], desk.bob, "wrong", "", NOW_MS + 1, UNDO_MS)
    write(desk.database, decide, [ids["c"]], desk.ann, "right", "", NOW_MS + 1, UNDO_MS)
    told = read(desk.database, deciders, [ids["a"], ids["d"]])
    assert told == {ids["a"]: Decider("Bob", is_standing=False), ids["d"]: Decider("Bob", is_standing=True)}
    pair = write(desk.database, source_ids, ("a", "b"))
    assert read(desk.database, pair_history, (pair["a"], pair["b"]), NOW_MS) == PairHistory(5, right=1, wrong=2)
    assert read(desk.database, pair_history, (pair["a"], pair["b"]), NOW_MS + 1) == PairHistory(0, right=0, wrong=0)
    own = read(desk.database, own_reviews_at, desk.bob, None, NOW_MS + 1)
    assert [review.flag_id for review in own] == [ids["a"], ids["b"]]


def test_a_release_that_was_sent_comes_back(desk: Desk) -> None:
    """The flag stays wrong, and is a copy of nothing."""
    desk.mute()
    gone = flagged("d", "o")
    desk.take(gone)
    (release,) = write(desk.database, claim_due, "w", NOW_MS + HOUR_MS, 9, 9)
    write(desk.database, mark_sent, release.review_id, NOW_MS + HOUR_MS)
    assert desk.take(released(gone), at_ms=NOW_MS + HOUR_MS) == {}
    assert desk.states()["d"] == "wrong"
    assert len(flag_ids(desk.database)) == 4
