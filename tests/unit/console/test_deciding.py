"""Decisions: what each does, how long it can be undone, and what happens where two people decide."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.reviews import decisions, sending
from consumer.reviews.database import DatabaseUnavailable
from consumer.reviews.moderation import claims
from consumer.reviews.moderation.claims import OPEN_MS
from tests.unit.console.desks import Office, decide, office, page
from tests.unit.console.newsroom import article
from tests.unit.console.serving import Answer, Browser

FEED = "The article counts as unique."
UNTIL = "24 Nov 2025, 16:00:10 UTC"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console with two flags, of which the first is less certain."""
    with office(tmp_path, undo_s=10) as opened:
        original = article("original", "First report", "Text.")
        opened.room.flag(article("one", "One", "Text."), original, 0.8)
        opened.room.flag(article("two", "Two", "Text."), original, 0.9)
        yield opened


def following(browser: Browser, answer: Answer) -> str:
    """What the page says that an answer leads to."""
    assert answer.status == 303, answer.shown
    return page(browser, answer.header("location")).answer.shown


def undone(desk: Office, browser: Browser, review_id: int = 1, page_path: str = "/me") -> Answer:
    """Undo a decision, as its button does."""
    return browser.send(f"/reviews/{review_id}/undo", page_path, queue="")


@pytest.mark.parametrize(
    ("decision", "state", "said"),
    [
        ("right", "right", f"one · Decided: right. This can be undone until {UNTIL} . Undo"),
        (
            "wrong",
            "wrong",
            f"one · Decided: wrong. {FEED} This can be undone until {UNTIL} ; after that it is final. Undo",
        ),
        ("skip", "skipped", f"one · Skipped. This can be undone until {UNTIL} . Undo"),
    ],
)
def test_a_decision_leads_to_the_next_flag_and_says_what_was_decided(
    desk: Office, decision: str, state: str, said: str
) -> None:
    """The line on the next page says until when it can be undone, and what wrong does."""
    answer = decide(desk.ann, 1, decision, note="Because.")
    assert answer.header("location") == "/flags/2?decided=1"
    assert said in following(desk.ann, answer)
    assert desk.room.state("one") == state
    assert desk.audited() == [("Ann", f"flag.{decision}", "one")]
    assert desk.room.row("one").copies == (2 if state != "wrong" else 1)
    assert "Because." in page(desk.ann, "/flags/1").texts(".history li")[0]


def test_after_the_last_flag_comes_the_queue(desk: Office) -> None:
    """With the same line."""
    decide(desk.ann, 1, "right")
    answer = decide(desk.ann, 2, "right")
    assert answer.header("location") == "/?decided=2"
    shown = following(desk.ann, answer)
    assert "two · Decided: right." in shown
    assert "Nothing to review." in shown


def test_undo_makes_the_flag_open_again(desk: Office) -> None:
    """It comes back as it was, and can be decided again."""
    decide(desk.ann, 1, "wrong")
    answer = undone(desk, desk.ann)
    assert answer.header("location") == "/flags/1?decided=1"
    shown = following(desk.ann, answer)
    assert "Undone: it is open again." in shown
    assert "counts as unique. This" not in shown
    assert desk.room.state("one") == "open"
    assert decide(desk.ann, 1, "wrong").status == 303
    assert [action for _, action, _ in desk.audited()] == ["flag.wrong", "flag.undo", "flag.wrong"]


def test_after_that_time_it_is_final(desk: Office) -> None:
    """There is no button, the form of an older page is refused, and the release goes out."""
    answer = decide(desk.ann, 1, "wrong")
    desk.served.clock.pass_s(10)
    shown = following(desk.ann, answer)
    assert "The article counts as unique. This is final." in shown
    assert "Undo" not in shown
    late = undone(desk, desk.ann)
    assert late.status == 409
    assert "can no longer be undone" in late.shown
    assert desk.room.state("one") == "wrong"
    now_ms = desk.served.clock()
    (due,) = desk.room.database.write(lambda c: sending.claim_due(c, "sender", now_ms, 60_000, 10))
    assert (due.flag.article_id, due.person) == ("one", "Ann")
    assert "final; the release is on its way" in page(desk.ann, "/flags/1").answer.shown
    desk.room.database.write(lambda c: sending.mark_sent(c, due.review_id, now_ms + 1_000))
    assert "released 24 Nov 2025, 16:00:11 UTC" in page(desk.ann, "/flags/1").answer.shown


def test_a_release_that_was_refused_says_why(desk: Office) -> None:
    """The window may have ended meanwhile; there is nothing left to undo, whatever the time."""
    decide(desk.ann, 1, "wrong")
    desk.room.database.write(lambda c: sending.mark_refused(c, 1, "the window has ended", desk.served.clock()))
    opened = page(desk.ann, "/flags/1?decided=1")
    assert "could not be released: the window has ended" in opened.answer.shown
    assert opened.texts(".decided button") == []


def test_without_time_to_undo_it_is_final_at_once(tmp_path: Path) -> None:
    """And the page says so before."""
    with office(tmp_path, undo_s=0) as desk:
        desk.room.flag(article("one", "One", "x"), article("original", "O", "x"), 0.8)
        assert "This is final immediately." in page(desk.ann, "/flags/1").answer.shown
        shown = following(desk.ann, decide(desk.ann, 1, "wrong"))
        assert "This is final." in shown
        assert undone(desk, desk.ann).status == 409


def test_whoever_comes_back_in_time_can_still_undo(desk: Office) -> None:
    """The flag's own page offers it as well, to the person who decided and to nobody else."""
    decide(desk.ann, 1, "wrong")
    assert page(desk.ann, "/flags/1").texts(".decided button") == ["Undo"]
    assert page(desk.colleague(), "/flags/1").texts(".decided button") == []


def test_two_people_at_once(desk: Office) -> None:
    """Both have it open and know it; the second one's decision changes nothing, and the page says why."""
    bob = desk.colleague()
    page(bob, "/flags/1")
    opened = page(desk.ann, "/flags/1")
    assert opened.texts(".open-by") == ["Bob has it open"]
    assert page(bob, "/flags/1").texts(".open-by") == ["Ann has it open"]
    form = opened.form("/flags/1/decide")
    assert decide(bob, 1, "wrong").status == 303
    late = desk.ann.post("/flags/1/decide", {**form, "decision": "right", "note": ""})
    assert late.status == 409
    assert "Somebody else decided this first." in late.shown
    assert "Wrong · Bob" in late.shown
    assert desk.room.state("one") == "wrong"
    assert desk.audited() == [("Bob", "flag.wrong", "one")]


def test_nobody_undoes_what_another_decided(desk: Office) -> None:
    """Not even by its number; nor does the line on a page tell of it."""
    decide(desk.colleague(), 1, "wrong")
    assert undone(desk, desk.ann).status == 404
    assert "Decided" not in page(desk.ann, "/?decided=1").answer.shown
    assert desk.room.state("one") == "wrong"


def test_one_flag_is_not_decided_twice(desk: Office) -> None:
    """A second click on an older page changes the decision as long as it can be undone, and then no more."""
    form = page(desk.ann, "/flags/1").form("/flags/1/decide")
    desk.ann.post("/flags/1/decide", {**form, "decision": "right", "note": ""})
    changed = desk.ann.post("/flags/1/decide", {**form, "decision": "wrong", "note": ""})
    assert changed.status == 303
    assert desk.room.state("one") == "wrong"
    desk.served.clock.pass_s(11)
    late = desk.ann.post("/flags/1/decide", {**form, "decision": "right", "note": ""})
    assert late.status == 409
    assert "Your decision about this flag is final." in late.shown
    assert desk.room.state("one") == "wrong"


def test_a_near_miss_is_decided_and_nothing_is_released(desk: Office) -> None:
    """It only shows how good the threshold is."""
    missed = desk.room.near_miss(article("near", "Near", "x"), article("original", "O", "y"), 0.74)
    said = following(desk.ann, decide(desk.ann, missed.flag_id, "wrong"))
    assert "near · Decided: different articles. This can be undone until" in said
    desk.served.clock.pass_s(11)
    assert desk.room.database.write(lambda c: sending.claim_due(c, "s", desk.served.clock(), 60_000, 10)) == []


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({"decision": "maybe"}, 400, "A decision must be right, wrong or skip."),
        ({}, 400, "A decision must be right, wrong or skip."),
        ({"decision": "right", "note": "x" * 2001}, 400, "“Note (optional)” has 2,001 characters"),
        ({"decision": "right", "queue": "state=nowhere"}, 400, "“state” cannot be nowhere"),
    ],
)
def test_a_form_that_makes_no_sense_changes_nothing(desk: Office, form: dict[str, str], status: int, said: str) -> None:
    """Whoever sends it is told."""
    answer = desk.ann.send("/flags/1/decide", "/flags/1", **form)
    assert answer.status == status
    assert said in answer.shown
    assert desk.room.state("one") == "open"
    assert desk.audited() == []


def test_what_is_not_there_cannot_be_decided(desk: Office) -> None:
    """Nor undone."""
    assert desk.ann.send("/flags/4711/decide", "/flags/1", decision="right").status == 404
    assert undone(desk, desk.ann, 4711).status == 404


def test_the_audit_log_and_the_decision_are_one_transaction(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the entry cannot be written, nothing is decided."""
    decided = decisions.decide

    def broken(*given: object) -> object:
        decided(*given)  # type: ignore[arg-type]  # as it was called
        raise RuntimeError("after the decision, before the entry")

    monkeypatch.setattr(decisions, "decide", broken)
    assert decide(desk.ann, 1, "wrong").status == 500
    assert desk.room.state("one") == "open"


def test_what_was_decided_is_said_although_the_next_flag_cannot_be_read(
    desk: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database may go away in between: an error would say of a decision that is stored that it is not."""

    def away(*_: object) -> None:
        raise DatabaseUnavailable("gone")

    action = f"/flags/{desk.room.row('one').flag_id}/decide"
    form = page(desk.ann, action.removesuffix("/decide")).form(action)
    with monkeypatch.context() as patch:
        patch.setattr(claims, "next_flag", away)
        answer = desk.ann.post(action, {**form, "decision": "wrong"})
    assert desk.room.state("one") == "wrong"
    assert FEED in following(desk.ann, answer)


SELECTED = "/flags/decide"


def selected(desk: Office, browser: Browser, decision: str, *flag_ids: int, query: str = "") -> Answer:
    """Select flags on a page of the queue, and decide."""
    form = page(browser, f"/{query}").form(SELECTED)
    flags = [("flag", str(flag_id)) for flag_id in flag_ids]
    return browser.post(SELECTED, [*form.items(), *flags, ("decision", decision), ("note", "Together.")])


@pytest.mark.parametrize(
    ("decision", "said"),
    [("right", "2 flags decided: right."), ("wrong", "2 flags decided: wrong."), ("skip", "2 flags skipped.")],
)
def test_flags_that_are_selected_are_decided_and_undone_together(desk: Office, decision: str, said: str) -> None:
    """The queue says how many, and one click takes all of it back; each has its entry in the audit log."""
    answer = selected(desk, desk.ann, decision, 1, 2, 1, query="?order=oldest")
    assert answer.header("location").startswith("/?order=oldest&decided_at=")
    shown = page(desk.ann, answer.header("location"))
    assert said in shown.answer.shown
    assert ("The articles that were flagged count as unique." in shown.answer.shown) == (decision == "wrong")
    assert {desk.room.state("one"), desk.room.state("two")} == {{"skip": "skipped"}.get(decision, decision)}
    assert "Together." in page(desk.ann, "/flags/2").texts(".history li")[0]
    at_ms = shown.form("/flags/undo")["at_ms"]
    assert desk.colleague().send("/flags/undo", at_ms=at_ms).status == 409
    back = desk.ann.post("/flags/undo", shown.form("/flags/undo"))
    assert "Undone: they are open again." in following(desk.ann, back)
    assert desk.ann.post("/flags/undo", shown.form("/flags/undo")).status == 409
    assert desk.audited() == [
        ("Ann", action, name) for action in (f"flag.{decision}", "flag.undo") for name in ("one", "two")
    ]


def test_what_was_decided_again_is_not_open_again(desk: Office) -> None:
    """The page of the first decision says that a later one counts; once that is undone, the flags are open."""
    first = selected(desk, desk.ann, "right", 1, 2)
    desk.served.clock.pass_s(1)
    form = {**page(desk.ann, "/").form("/sign-out"), "queue": "", "decision": "wrong"}
    second = desk.ann.post(SELECTED, [*form.items(), ("flag", "1"), ("flag", "2")])
    assert "2 flags decided: wrong." in following(desk.ann, second)
    assert "They were decided again later, and those decisions count." in following(desk.ann, first)
    desk.ann.post("/flags/undo", page(desk.ann, second.header("location")).form("/flags/undo"))
    assert "Undone: they are open again." in following(desk.ann, first)


def test_what_could_not_be_decided_is_counted(desk: Office) -> None:
    """One sentence tells of flags that others have decided, and of numbers of none; near misses are decided as well."""
    missed = desk.room.near_miss(article("near", "Near", "x"), article("original", "O", "y"), 0.74)
    form = page(desk.ann, "/").form(SELECTED)
    decide(desk.colleague(), 1, "right")
    flags = [("flag", str(number)) for number in (1, 2, missed.flag_id, 4711, 4712)]
    answer = desk.ann.post(SELECTED, [*form.items(), *flags, ("decision", "wrong")])
    said = "2 flags decided: wrong; 1 had already been decided; 2 no longer exist."
    assert said in following(desk.ann, answer)
    assert [desk.room.state(name) for name in ("one", "two", "near")] == ["right", "wrong", "wrong"]
    nothing = desk.ann.post(SELECTED, [*form.items(), ("flag", "1"), ("flag", "4711"), ("decision", "wrong")])
    assert (nothing.status, "Nothing was decided" in nothing.shown) == (409, True)


def test_no_more_than_a_page_is_selected(tmp_path: Path) -> None:
    """What is decided already has no box; a form with more flags, with none or with nonsense has no effect."""
    with office(tmp_path, page_rows=3, reviewed_at_once_max=2) as desk:
        for name in "abcd":
            desk.room.flag(article(name, name, "x"), article("o", "O", "x"), 0.8)
        decide(desk.ann, 1, "right")
        opened = page(desk.ann, "/?state=any&order=oldest")
        assert [box.attributes["value"] for box in opened.all(".pick")] == ["2", "3"]
        assert opened.all("#selection")[0].attributes["data-most"] == "2"
        assert page(desk.ann, "/?state=right").all(".pick, .many, .select-all") == []
        many = selected(desk, desk.ann, "wrong", 2, 3, 4)
        assert (many.status, "At most 2 flags can be decided together" in many.shown) == (400, True)
        none = selected(desk, desk.ann, "wrong")
        assert (none.status, "No flag is selected." in none.shown) == (400, True)
        assert desk.ann.send(SELECTED, decision="wrong", flag="one").status == 400
        assert desk.ann.send(SELECTED, decision="all", flag="2").status == 400
        assert [desk.room.state(name) for name in "bcd"] == ["open"] * 3


def test_whoever_decides_on_a_later_page_stays_there(tmp_path: Path) -> None:
    """With the same filter and order."""
    with office(tmp_path, page_rows=2) as desk:
        for name in "abcde":
            desk.room.flag(article(name, name, "x"), article("o", "O", "x"), 0.8)
        second = page(desk.ann, page(desk.ann, "/?order=oldest&source=wire").link("Next page"))
        assert second.flags() == [3, 4]
        fields = [*second.form(SELECTED).items(), ("flag", "3"), ("flag", "4"), ("decision", "skip")]
        answer = desk.ann.post(SELECTED, fields)
        assert page(desk.ann, answer.header("location")).flags() == [5]


def test_next_is_a_flag_that_nobody_else_has(desk: Office) -> None:
    """By the link and after a decision; leaving it lets it go. Where others have all of them, the page says so."""
    desk.room.flag(article("three", "Three", "Text."), article("original", "First report", "Text."), 0.95)
    bob, cy = desk.colleague(), desk.colleague("Cy")
    page(bob, "/flags/2")
    opened = page(desk.ann, "/flags/1?order=certainty")
    assert opened.link("Next flag") == "/flags/1/next"
    assert desk.ann.get(opened.link("Next flag")).header("location") == "/flags/3"
    assert cy.get("/flags/2/next?source=wire").header("location") == "/flags/1?source=wire"
    alone = decide(bob, 2, "right")
    assert alone.header("location") == "/flags/3?decided=1&with_others=1"
    assert page(desk.ann, "/flags/2").texts(".open-by") == []
    said = "Other people already have all remaining flags open. This is the first of them."
    assert said in following(bob, alone)
    assert desk.ann.get(page(desk.ann, "/flags/3").hrefs(".crumbs a")[0]).header("location") == "/"
    assert page(cy, "/flags/3?with_others=1").texts(".open-by") == ["Bob has it open"]
    assert page(cy, "/flags/1?with_others=1").answer.shown.count(said) == 0
    desk.served.clock.pass_s(OPEN_MS / 1_000)
    assert desk.ann.get("/flags/1/next").header("location") == "/flags/3"
    assert desk.ann.get("/flags/3/next?source=nobody").header("location") == "/?source=nobody"
    assert desk.ann.get("/flags/4711/next").status == 404


def test_a_page_that_goes_away_gives_its_flag_back(desk: Office) -> None:
    """By a form that the browser sends, with its token; not where the page was opened again, and nothing is shown."""
    bob = desk.colleague()
    opened = str(page(desk.ann, "/flags/1").all("[data-leave]")[0].attributes["data-leave"])
    assert page(bob, "/flags/1").texts(".open-by") == ["Ann has it open"]
    assert desk.ann.post("/flags/1/leave", {"opened_ms": opened}).status == 403
    earlier = desk.ann.send("/flags/1/leave", "/me", opened_ms=str(int(opened) - 1))
    assert (earlier.status, earlier.text) == (204, "")
    assert page(bob, "/flags/1").texts(".open-by") == ["Ann has it open"]
    assert desk.ann.send("/flags/1/leave", "/me", opened_ms=opened).status == 204
    assert page(bob, "/flags/1").texts(".open-by") == []
