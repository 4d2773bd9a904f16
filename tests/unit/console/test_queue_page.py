"""The queue: what it lists, in which order, and how somebody finds their way in it."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest

from consumer.config.sections.console import ConsoleSection
from consumer.console.pages import queue_pages, stored_articles
from consumer.console.rendering import BEGINNING_CHARS_MAX
from consumer.reviews import search
from consumer.reviews.moderation.claims import OPEN_MS
from storage.errors import StoreUnavailable
from tests.unit.console.desks import Office, Page, decide, office, page
from tests.unit.console.newsroom import article


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console with pages of three rows."""
    with office(tmp_path, page_rows=3) as opened:
        yield opened


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A console without flags, which tests leave as it is."""
    with office(tmp_path_factory.mktemp("quiet")) as opened:
        yield opened


def filled(desk: Office, count: int = 7) -> list[int]:
    """Flags of one original, each less certain and later than the one before; their numbers."""
    original = article("original", "The first report", "Text.", source="wire")
    return [
        desk.room.flag(
            article(f"copy-{n}", f"Copy {n}", "Text.", source="odd" if n % 2 else "even"),
            original,
            0.99 - n / 100,
            minute=n,
        ).flag_id
        for n in range(count)
    ]


def all_pages(desk: Office, path: str) -> list[list[int]]:
    """The flags of each page, from the first to the last."""
    found = []
    while True:
        opened = page(desk.ann, path)
        found.append(opened.flags())
        following = opened.hrefs("a.further[rel=next]")
        if not following:
            return found
        path = following[0]


def test_the_least_certain_comes_first(desk: Office) -> None:
    """That is where a moderator is needed most; a flag that was not verified is less certain than any other."""
    ids = filled(desk, 2)
    unverified = desk.room.flag(article("short", "", "Hi"), article("shorter", "", "Hi"), None).flag_id
    assert page(desk.ann, "/").flags() == [unverified, ids[1], ids[0]]


@pytest.mark.parametrize(
    ("order", "turned"), [("certainty", True), ("newest", True), ("oldest", False), ("similarity", False)]
)
def test_pages_follow_each_other_in_each_order(desk: Office, order: str, turned: bool) -> None:  # noqa: FBT001
    """Nothing is shown twice or left out, forwards and backwards."""
    ids = filled(desk)
    expected = ids[::-1] if turned else ids
    pages = all_pages(desk, f"/?order={order}")
    assert pages == [expected[:3], expected[3:6], expected[6:]]
    last = page(desk.ann, page(desk.ann, page(desk.ann, f"/?order={order}").link("Next page")).link("Next page"))
    assert page(desk.ann, last.link("Previous page")).flags() == expected[3:6]


def test_both_titles_are_read_in_one_call_without_texts(desk: Office) -> None:
    """A page of the queue costs the store one look-up, whatever the size of the texts."""
    filled(desk)
    opened = page(desk.ann, "/")
    assert desk.articles.asked == [(4, False)]
    assert opened.texts("ol.queue h2") == ["Copy 6", "Copy 5", "Copy 4"]
    (first, *_) = opened.texts("ol.queue li")
    assert "repeats The first report wire" in first
    assert "similarity 0.93" in first
    assert "3 fingerprint bits differ" in first
    assert "even · 24 Nov 2025, 11:06:00 UTC (4 hours ago)" in first
    assert opened.all("ol.queue time")[0].attributes["datetime"] == "2025-11-24T11:06:00+00:00"
    assert "story with 7 copies" in first


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("source=odd", [5, 3, 1]),
        ("original_source=wire&source=even", [6, 4, 2, 0]),
        ("source=nobody", []),
        ("similarity_min=0.95&similarity_max=0.97", [4, 3, 2]),
        ("from=2025-11-24&to=2025-11-24&source=odd", [5, 3, 1]),
        ("to=2025-11-23", []),
        ("from=2025-11-25", []),
        ("kind=near_miss", []),
        ("state=any&order=oldest&source=odd", [1, 3, 5]),
    ],
)
def test_filters_choose(desk: Office, query: str, numbers: list[int]) -> None:
    """By source, original's source, similarity, day, kind and state; the form shows what was chosen."""
    ids = filled(desk)
    assert list(chain.from_iterable(all_pages(desk, f"/?{query}"))) == [ids[n] for n in numbers]
    opened = page(desk.ann, f"/?{query}")
    shown = {str(each.attributes["name"]): each.attributes.get("value") for each in opened.all("details.filters input")}
    assert all(shown[name] == value for name, value in given(query) if name in shown)


def given(query: str) -> list[tuple[str, str]]:
    """The fields of a query."""
    return [(name, value) for name, _, value in (pair.partition("=") for pair in query.split("&"))]


def test_a_story_can_be_chosen(desk: Office) -> None:
    """All flags of one story, without others."""
    filled(desk, 2)
    other = desk.room.flag(article("x", "X", "x"), article("y", "Y", "y"), 0.8)
    assert page(desk.ann, f"/?story_id={other.story_id}").flags() == [other.flag_id]


def test_states_have_counts_and_pages(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each state is a link with the number of flags that it lists, near misses too, also under a filter."""
    ids = filled(desk)
    decide(desk.ann, ids[0], "right")
    decide(desk.ann, ids[1], "wrong")
    decide(desk.ann, ids[2], "skip")
    opened = page(desk.ann, "/")
    assert opened.texts("nav.tabs a") == ["Open 4", "Skipped 1", "Right 1", "Wrong 1", "Released elsewhere 0", "All 7"]
    assert opened.texts("nav.tabs [aria-current]") == ["Open 4"]
    assert opened.texts("title") == ["(4) Queue · dupwatch"]
    for state, number in (("right", 0), ("wrong", 1), ("skipped", 2)):
        assert page(desk.ann, f"/?state={state}").flags() == [ids[number]]
    filtered = page(desk.ann, "/?source=odd").texts("nav.tabs a")
    assert filtered == ["Open 2", "Skipped 0", "Right 0", "Wrong 1", "Released elsewhere 0", "All 3"]
    monkeypatch.setattr(search, "COUNTED_MAX", 1)
    monkeypatch.setattr(queue_pages, "COUNTED_MAX", 1)
    filtered = page(desk.ann, "/?source=odd").texts("nav.tabs a")
    assert filtered == ["Open 1+", "Skipped 0", "Right 0", "Wrong 1", "Released elsewhere 0", "All 1+"]


def test_near_misses_stand_between_flags_and_say_so(desk: Office) -> None:
    """They are counted with the others, and named."""
    filled(desk, 1)
    missed = desk.room.near_miss(article("near", "Nearly", "x"), article("original", "The first report", "y"), 0.74)
    opened = page(desk.ann, "/")
    assert opened.flags()[0] == missed.flag_id
    assert opened.texts("nav.tabs a")[0] == "Open 2"
    assert "resembles The first report" in opened.texts("ol.queue li")[0]
    assert "near miss" in opened.texts("ol.queue .tag")
    assert "Among the open ones: Near misses (1)" in opened.answer.shown
    assert opened.link("Near misses (1)") == "/?kind=near_miss"
    assert page(desk.ann, "/?kind=near_miss").flags() == [missed.flag_id]


def test_who_has_a_flag_open_is_seen(desk: Office) -> None:
    """For some minutes after somebody opened it; one's own looking is not shown."""
    ids = filled(desk, 2)
    bob = desk.colleague()
    page(bob, f"/flags/{ids[0]}")
    page(desk.ann, f"/flags/{ids[1]}")
    assert page(desk.ann, "/").texts(".open-by") == ["Bob has it open"]
    desk.served.clock.pass_s(OPEN_MS / 1_000)
    assert page(desk.ann, "/").texts(".open-by") == []


def test_an_empty_queue_says_what_to_expect(quiet: Office) -> None:
    """Not a blank page: whether nothing is to do, or nothing fits."""
    assert "Nothing to review." in page(quiet.ann, "/").answer.shown
    assert "There are no flags in this state." in page(quiet.ann, "/?state=wrong").answer.shown
    assert "No flag matches this filter." in page(quiet.ann, "/?source=nobody").answer.shown
    assert "Show everything" in page(quiet.ann, "/?source=nobody").answer.shown


def test_the_queue_is_there_while_the_store_is_away(desk: Office) -> None:
    """With ids for titles, and a word about it."""
    filled(desk, 1)
    desk.articles.error = StoreUnavailable("no route")
    opened = page(desk.ann, "/")
    assert "The store does not answer" in opened.answer.shown
    assert opened.texts("ol.queue h2") == ["copy-0"]


def test_articles_without_title_and_those_that_left_are_named_by_id(desk: Office) -> None:
    """A row can always be clicked."""
    desk.room.flag(article("untitled", " ", "\n"), article("plain", "", None), 0.8)
    desk.room.flag(article("left", "Gone", "x"), article("left-too", "Gone", "x"), 0.9, stored=False)
    assert page(desk.ann, "/").texts("ol.queue h2") == ["(no title) untitled", "left"]


def test_a_flag_without_title_shows_how_its_text_begins(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one line, and cut; only texts without a title are read, and few of them at the same time."""
    monkeypatch.setattr(stored_articles, "_TEXTS_READ_MAX", 1)
    body = "Two\nlines " + "and more " * 99
    desk.room.flag(article("untitled", " ", body), article("untitled-too", "", body), 0.8)
    desk.room.flag(article("titled", "A title", body), article("titled-too", "A title", body), 0.9)
    desk.articles.asked.clear()
    title, _ = page(desk.ann, "/").texts("ol.queue h2")
    assert title.startswith("Two lines and more")
    assert title.endswith("…")
    assert len(title) == BEGINNING_CHARS_MAX
    assert desk.articles.asked == [(4, False), (1, True), (1, True)]
    story_id = desk.room.row("untitled").story_id
    assert "untitled" in page(desk.ann, f"/stories/{story_id}").texts("ol.queue bdi.id")


def test_a_part_of_the_name_of_a_source_finds_it(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond those that the browser offers, and where a name cannot be typed."""
    for n, name in enumerate(("Ävening wire", "odd\u202e", "wire & co")):
        desk.room.flag(article(f"a{n}", "A", "x", source=name), article("b", "B", "x", source="press"), 0.8)
    monkeypatch.setattr(queue_pages, "SOURCES_MAX", 1)
    opened = page(desk.ann, "/?source=%C3%A4VEN&order=newest")
    assert opened.flags() == []
    assert "No flag has the source äVEN . These sources have similar names:" in opened.answer.shown
    assert "The lists offer the first 1 sources." in opened.answer.shown
    assert opened.texts(".guesses a") == ["Ävening wire"]
    assert len(page(desk.ann, opened.hrefs(".guesses a")[0]).flags()) == 1
    odd = page(desk.ann, "/?source=odd")
    assert odd.texts(".guesses a") == ["odd\ufffd"]
    assert len(page(desk.ann, odd.hrefs(".guesses a")[0]).flags()) == 1
    assert page(desk.ann, "/?source=zzz").texts(".guesses a") == []


def changes(desk: Office, opened: Page, ids: Sequence[int] = ()) -> Page:
    """What an open page of the queue is told of these rows."""
    (news,) = opened.all("[data-changes]")
    return page(desk.ann, "&".join([news.attributes["data-changes"] or "", *(f"flag={each}" for each in ids)]))


def test_an_open_page_is_told_what_changed(desk: Office) -> None:
    """How many flags are open and new, what others decided, and who has a row open; of nothing else than its rows."""
    ids = filled(desk, 3)
    opened, filtered = page(desk.ann, "/"), page(desk.ann, "/?source=odd")
    same = changes(desk, opened, ids)
    assert same.texts("[data-live=new], [data-live^=flag-]") == [""] * 4
    bob = desk.colleague()
    decide(bob, ids[0], "wrong")
    page(bob, f"/flags/{ids[1]}")
    original = article("original", "The first report", "Text.", source="wire")
    desk.room.flag(article("new", "New", "Text.", source="even"), original, 0.99, minute=9)
    told = changes(desk, opened, ids[:2])
    assert told.texts("title") == ["(3) Queue · dupwatch"]
    assert told.texts("[data-live^=tab]")[:4] == ["3", "0", "0", "1"]
    assert told.texts("[data-live=new]") == ["1 new flag: show"]
    assert page(desk.ann, told.hrefs("[data-live=new] a")[0]).flags()[0] == desk.room.row("new").flag_id
    assert told.texts("[data-live^=flag]") == ["wrong Bob", "Bob has it open"]
    told = changes(desk, filtered, ids[:1])
    assert told.texts("[data-live=new], [data-live^=tab]") == [""]
    desk.ann.send("/me/language", language="zh")
    assert changes(desk, opened).texts("[data-live=new]") == ["1 个新标记：查看"]


def test_a_flag_that_is_open_again_says_so(desk: Office) -> None:
    """On a page of skipped flags."""
    (number,) = filled(desk, 1)
    decide(desk.ann, number, "skip")
    skipped = page(desk.ann, "/?state=skipped")
    assert changes(desk, skipped, [number]).texts("[data-live^=flag]") == [""]
    decide(desk.ann, number, "right")
    assert changes(desk, skipped, [number]).texts("[data-live^=flag]") == ["right Ann"]
    opened = page(desk.ann, f"/flags/{number}")
    undo = opened.all(".decided form")[0].attributes["action"] or ""
    desk.ann.post(undo, opened.form(undo))
    assert changes(desk, skipped, [number]).texts("[data-live^=flag]") == ["open again"]


def test_a_page_that_asks_by_itself_keeps_no_session_alive(desk: Office) -> None:
    """It is told what changed until the session ends, and then that it has."""
    opened = page(desk.ann, "/")
    idle_s = ConsoleSection().idle_s
    for _ in range(3):
        changes(desk, opened)
        desk.served.clock.pass_s(idle_s / 3 + 1)
    answer = desk.ann.get("/queue/changes")
    assert (answer.status, answer.header("location").partition("?")[0]) == (303, "/sign-in")


def test_only_the_rows_of_a_page_can_be_asked_for(desk: Office) -> None:
    """More would be work for nothing."""
    assert desk.ann.get("/queue/changes?flag=1&flag=2&flag=3").status == 200
    answer = desk.ann.get("/queue/changes?flag=1&flag=2&flag=3&flag=4")
    assert answer.status == 400
    assert "A page of the queue has at most 3 flags." in answer.shown


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("state=closed", "“state” cannot be closed. Possible values: open, skipped"),
        ("order=random", "“Order” cannot be random"),
        ("kind=x", "“Kind” cannot be x"),
        ("similarity_min=2", "“Minimum similarity” must be a similarity from 0 to 1."),
        ("similarity_max=high", "“Maximum similarity” is not a number."),
        ("from=yesterday", "“Arrived on or after (UTC)” is not a date. Write it as 2026-11-21."),
        ("to=9999-12-31", "“Arrived on or before (UTC)” is not a date."),
        ("story_id=one", "“Story number” is not a number."),
        (f"source={'x' * 301}", "“Source” has 301 characters"),
        ("after=nonsense", "This page of the queue does not exist."),
        ("decided=x", "“decided” is not a number."),
    ],
)
def test_what_makes_no_sense_is_said(quiet: Office, query: str, said: str) -> None:
    """An address that somebody wrote by hand gets a page that says what is wrong with it."""
    answer = quiet.ann.get(f"/?{query}")
    assert answer.status == 400
    assert said in answer.shown


def test_flags_of_a_filter_lead_to_the_next_of_the_same_filter(desk: Office) -> None:
    """Whoever works on one source goes on with it, by the links and after a decision, until there is none left."""
    ids = filled(desk)
    opened = page(desk.ann, "/?source=odd")
    (first, *_) = opened.hrefs("[data-item]")
    assert first == f"/flags/{ids[5]}?source=odd"
    flag = page(desk.ann, first)
    following = desk.ann.get(flag.link("Next flag")).header("location")
    assert following == f"/flags/{ids[3]}?source=odd"
    assert page(desk.ann, following).link("Previous flag") == first
    assert (
        decide(desk.ann, ids[5], "right", "?source=odd").header("location").startswith(f"/flags/{ids[3]}?source=odd&")
    )
    decide(desk.ann, ids[3], "right", "?source=odd")
    assert decide(desk.ann, ids[1], "right", "?source=odd").header("location").startswith("/?source=odd&decided=")
