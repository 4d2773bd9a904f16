"""The page that shows what reviews teach."""

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from consumer.config.profiles import settings_by_profile
from consumer.console.pages import review_evaluation, thresholds_page
from consumer.console.pages.thresholds_page import HEIGHT, WIDTH, curve_of
from consumer.evaluation.review_figures import figures
from consumer.evaluation.reviewed_pairs import ReviewedPair
from consumer.fingerprint import BlockPlan
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.reviews.database import DatabaseUnavailable
from consumer.reviews.pairs import reviewed_pairs
from tests.cli.command import wait_for
from tests.unit.console.desks import Office, Page, office, page
from tests.unit.console.newsroom import article
from tests.unit.console.reviewed import review, whole_figures

HOSTILE = "<b>\"'\u202e]\x1b[2J\n[judge]"
JUDGING = JudgeSettings(
    plan=BlockPlan.named("4x16"),
    scheme_digest="",
    similarity_min=0.75,
    sources={"strict": SourceRule(similarity_min=0.9)},
)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console whose consumers flag from 0.75 on, and from 0.9 on in one source."""
    with office(tmp_path, judging=JUDGING) as opened:
        yield opened


def toml(desk: Office, **query: object) -> dict[str, object]:
    """The setting that a page offers."""
    (text,) = [node.text() for node in page(desk.ann, f"/thresholds?{urlencode(query)}").all("pre")]
    return tomllib.loads(text)


def row_of(opened: Page, threshold: str) -> list[str]:
    """The cells of a threshold in the table."""
    rows = [[" ".join(cell.text().split()) for cell in row.css("th, td")] for row in opened.all("tbody tr")]
    return next(row for row in rows if row[0] == threshold)


def test_nothing_was_reviewed_yet(desk: Office) -> None:
    """The page says so, and how many pairs wait."""
    desk.room.flag(article("b", "B", "x"), article("a", "A", "x"))
    opened = page(desk.ann, "/thresholds")
    assert "No pair has been decided yet." in opened.answer.shown
    assert "1 pair in the queue" in opened.texts(".empty a")
    assert opened.all("svg") == []


@pytest.mark.parametrize(
    ("flags", "said"), [(1, "There is 1 decision so far."), (49, "There are 49 decisions so far.")]
)
def test_too_few_reviews_say_nothing_else(desk: Office, flags: int, said: str) -> None:
    """No figure, no curve and no advice: it would change with the next review."""
    review(desk, flags=flags)
    wait_for(lambda: said in page(desk.ann, "/thresholds").answer.shown)
    opened = page(desk.ann, "/thresholds?threshold=0.8")
    assert "Figures need at least 50." in opened.answer.shown
    assert opened.all("svg, table, dl, form:not([action='/sign-out']), h2") == []


def test_flags_alone_say_nothing_of_recall(desk: Office) -> None:
    """Why, and what to do: switch near misses on, or look at those that are there."""
    review(desk)
    opened = whole_figures(desk)
    shown = opened.answer.shown
    assert "Recall is unknown: only flags were reviewed" in shown
    assert "Thresholds below 0.75 cannot be assessed." in shown
    assert "kafka.near_miss_share = 0.01" in shown
    assert "80 right, 20 wrong" in shown
    assert opened.all("polyline.recall") == []
    assert row_of(opened, "0.75") == ["0.75", "0.800", "0.713–0.869", "unknown", "–", "–", "0", "0", "current"]
    assert opened.texts("select[name=threshold] option")[0] == "0.75"
    desk.room.near_miss(article("n", "N", "x"), article("m", "M", "y"), 0.7)
    assert "Decide about the 1 near miss in the queue." in page(desk.ann, "/thresholds").texts(".notice a")


def test_with_near_misses_everything_is_known(desk: Office) -> None:
    """The line, both rates of each threshold, and what another one would change, a day."""
    review(desk, 0.7, near_misses=60)
    opened = whole_figures(desk)
    shown = opened.answer.shown
    assert (
        "The lowest similarity at which reviewers call two articles the same is 0.699 (0.695–0.702) . "
        "The threshold is 0.75." in shown
    )
    assert "Exceptions: at most 2 % of the decisions below that, at most 2 % above." in shown
    assert "20 the same, 40 different" in shown
    assert len(opened.all(".curve polyline.recall")) == 1
    # A near miss stands for a hundred: 20 of them are copies that were missed.
    row = row_of(opened, "0.70")
    assert (row[1], row[3], row[5:]) == (
        "1.000",
        "1.000",
        ["1.000", "0", "2,000", "shown above best F1 precision 0.995"],
    )
    assert "Flags gained 2,000 in 10 days; wrong: 0" in shown
    assert tomllib.loads(opened.all("pre")[0].text()) == {"judge": {"similarity_min": 0.7}}
    label = " ".join(opened.texts("svg title, svg desc"))
    assert "At the current threshold, 0.75, precision is 1.000. Recall is 0.048." in label


def test_any_threshold_can_be_asked_for(desk: Office) -> None:
    """Also one above the present one; that one itself changes nothing, and those that nobody can judge are refused."""
    review(desk, near_misses=60)
    whole_figures(desk)
    opened = page(desk.ann, "/thresholds?threshold=0.9&precision=0.8")
    assert "With 0.90 instead of 0.75" in opened.texts("h3")
    assert "Flags lost 60 in 10 days; wrong: 20" in opened.answer.shown
    assert toml(desk, threshold=0.9) == {"judge": {"similarity_min": 0.9}}
    assert opened.texts("select[name=precision] option[selected]") == ["0.8"]
    assert "This is the current threshold." in page(desk.ann, "/thresholds?threshold=0.75").answer.shown
    for query, said in (
        ("threshold=0.2", "only for whole percents from 0.60 to 0.99"),
        ("threshold=nan", "“Threshold” is not a number."),
        ("precision=2", "“Target precision” must be a number from 0 to 1."),
    ):
        answer = desk.ann.get(f"/thresholds?{query}")
        assert (answer.status, said in answer.shown) == (400, True)
    every = page(desk.ann, opened.link("Show every threshold"))
    assert len(every.texts("tbody")[0].split("0.")) > len(opened.texts("tbody")[0].split("0."))
    assert "With 0.90 instead of 0.75" in every.texts("h3")


def test_sources_have_figures_of_their_own(desk: Office) -> None:
    """Those with enough reviews; a rule for one is only ever stricter, and a hostile name stays a name."""
    review(desk, 0.8, near_misses=60, source=HOSTILE)
    review(desk, 0.72, near_misses=60, source="strict", flags=80)
    review(desk, source="few", flags=10)
    opened = whole_figures(desk)
    assert opened.texts("table")[1].count("0.") > 6
    assert "1 source has too few decisions for figures of its own." in opened.answer.shown
    assert not {"\u202e", "\x1b"} & set(opened.answer.text)
    of_hostile = page(desk.ann, next(href for href in opened.hrefs("table a") if "%3Cb%3E" in href))
    assert "80 right, 20 wrong" in of_hostile.answer.shown
    assert toml(desk, source=HOSTILE, threshold=0.85) == {"rules": {HOSTILE: {"similarity_min": 0.85}}}
    lower = page(desk.ann, f"/thresholds?{urlencode({'source': HOSTILE, 'threshold': 0.7})}")
    assert "can only be stricter" in lower.answer.shown
    assert lower.all("pre") == []
    strict = page(desk.ann, "/thresholds?source=strict")
    assert "The threshold is 0.90." in strict.answer.shown
    # Flags from before it was raised are below it.
    assert strict.hrefs("table a")[0].startswith("/thresholds?source=strict")
    answer = desk.ann.get("/thresholds?source=few")
    assert answer.status == 404
    assert "too few decisions" in answer.shown


def of_profile(name: str, **rules: SourceRule) -> JudgeSettings:
    """The settings of a store of this profile."""
    return replace(settings_by_profile(JudgeSettings(BlockPlan.named("4x16"), ""))[name], sources=rules)


def test_a_store_of_news_is_told_of_posts(tmp_path: Path) -> None:
    """A threshold as low as that of posts is better had with its keys; for one source the store becomes mixed."""
    with office(tmp_path, judging=of_profile("news", wire=SourceRule(similarity_min=0.8))) as desk:
        review(desk, 0.32, near_misses=120, least=0.3)
        review(desk, 0.32, near_misses=120, least=0.3, source=HOSTILE)
        opened = whole_figures(desk)
        shown = opened.answer.shown
        assert "The threshold is 0.73. This is the threshold of the profile news ." in shown
        assert "This reaches the threshold of the profile posts , 0.34." in shown
        assert "Its keys differ, so it needs a migration." in shown
        settings = [tomllib.loads(node.text()) for node in opened.all("pre")]
        assert settings[1:] == [{"judge": {"profile": "posts"}}]
        assert "This reaches" not in page(desk.ann, "/thresholds?threshold=0.35").answer.shown
        one = page(desk.ann, f"/thresholds?{urlencode({'source': HOSTILE, 'threshold': 0.34})}")
        assert [tomllib.loads(node.text()) for node in one.all("pre")] == [{"judge": {"profile": "mixed"}}]
        assert 'keep theirs with profile = "news" in their rules' in one.answer.shown


def test_a_store_of_posts_is_told_of_news(tmp_path: Path) -> None:
    """Its keys are needed only if all sources are news; one source is raised by a rule, whatever its name."""
    with office(tmp_path, judging=of_profile("posts", agency=SourceRule(similarity_min=0.73))) as desk:
        for source in ("blog", HOSTILE, "agency"):
            review(desk, 0.8, near_misses=60, source=source)
        opened = whole_figures(desk)
        shown = opened.answer.shown
        assert "The threshold is 0.34. This is the threshold of the profiles posts and mixed ." in shown
        assert (
            "This reaches the threshold of the profile news , 0.73. If all sources are news, use the profile" in shown
        )
        settings = [tomllib.loads(node.text()) for node in opened.all("pre")]
        assert settings[1:] == [{"judge": {"profile": "news"}}, {"rules": {"SOURCE": {"profile": "news"}}}]
        one = page(desk.ann, f"/thresholds?{urlencode({'source': HOSTILE, 'threshold': 0.73})}")
        settings = [tomllib.loads(node.text()) for node in one.all("pre")]
        assert settings == [
            {"rules": {HOSTILE: {"similarity_min": 0.73}}},
            {"rules": {HOSTILE: {"profile": "news"}}},
        ]
        assert not {"\u202e", "\x1b"} & set("".join(node.text() for node in one.all("pre")))
        assert one.all("pre b") == []
        assert "This reaches" not in page(desk.ann, "/thresholds?threshold=0.72").answer.shown
        agency = page(desk.ann, "/thresholds?source=agency")
        assert "The threshold is 0.73. This is the threshold of the profile news ." in agency.answer.shown
        assert "This reaches" not in agency.answer.shown


def test_what_takes_long_is_not_waited_for(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so, and has the figures when they are there."""
    review(desk)
    monkeypatch.setattr(thresholds_page, "WAIT_S", 0.0)
    opened = page(desk.ann, "/thresholds")
    assert "The figures are being computed" in opened.answer.shown
    assert opened.link("Check again") == "/thresholds"
    assert "As of 24 Nov 2025, 16:00:00 UTC" in whole_figures(desk).answer.shown


def test_pairs_that_differ_in_too_many_ways_are_for_the_command(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page stays small, and says what to do."""
    review(desk)
    monkeypatch.setattr(reviewed_pairs, "ROWS_MAX", 20)
    opened = page(desk.ann, "/thresholds")
    assert (
        "Export them with dupwatch reviews , and evaluate them with dupwatch evaluate --reviews ."
        in opened.answer.shown
    )


def test_plain_simhash_has_no_threshold_to_learn_about(tmp_path: Path) -> None:
    """Nor has a console that does not know what consumers judge by."""
    plain = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", verify=False, lane1=False)
    for judging in (plain, None):
        folder = tmp_path / str(judging is None)
        folder.mkdir()
        with office(folder, judging=judging) as opened:
            assert "judge by fingerprints alone" in page(opened.ann, "/thresholds").answer.shown


def test_pairs_without_similarity_are_left_out(desk: Office) -> None:
    """And counted."""
    review(desk)
    row = desk.room.flag(article("b", "B", "x"), article("a", "A", "x"), None)
    desk.ann.send(f"/flags/{row.flag_id}/decide", f"/flags/{row.flag_id}", decision="wrong")
    shown = whole_figures(desk, left_out=1).answer.shown
    assert "Not counted: no similarity 1" in shown
    assert "80 right, 20 wrong" in shown


def test_the_page_of_a_database_that_is_away(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every other page."""

    def away(*_: object) -> object:
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(review_evaluation, "pair_counts", away)
    answer = desk.ann.get("/thresholds")
    assert answer.status == 503
    assert "The console's database does not answer." in answer.shown


def test_the_curve_stays_within_its_picture() -> None:
    """Whatever the figures are: one threshold, none flagged, a line beyond everything, huge weights."""
    pairs = [
        [ReviewedPair("flag", 0.99, right=True)],
        [ReviewedPair("flag", 0.5, right=False)] * 3,
        [ReviewedPair("near_miss", 0.1, right=True, sampled_in=1e12), ReviewedPair("flag", 0.999, right=False)],
        [ReviewedPair("near_miss", 0.0, right=False), ReviewedPair("near_miss", 0.7499, right=True)],
    ]
    for now in (0.0, 0.75, 0.99, 1.0):
        for each in pairs:
            drawn = curve_of(figures(None, each, now, 0.9))
            shapes = [drawn.precision, *([drawn.recall] if drawn.recall else [])]
            drawn_parts = [part for shape in shapes for part in (*shape.bands, *shape.lines)]
            places = [place for part in drawn_parts for place in part.split()]
            for place in places:
                x, y = map(float, place.split(","))
                assert drawn.left <= x <= drawn.right <= WIDTH
                assert drawn.top <= y <= drawn.bottom <= HEIGHT
            assert drawn.left <= drawn.now <= drawn.right
            assert drawn.reviewers is None or 1 <= drawn.reviewers.width <= (drawn.right - drawn.left) / 2
            for band in (band for shape in shapes for band in shape.bands):
                corners = [tuple(map(float, corner.split(","))) for corner in band.split()]
                for (_, high), (_, low) in zip(corners, reversed(corners), strict=True):
                    assert abs(low - high) <= (drawn.bottom - drawn.top) / 2 + 0.1
