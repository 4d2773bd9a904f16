"""The page of a flag: both texts, why it was flagged, its story, its history."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from consumer.console.pages.text_differences import PART_CHARS_MAX
from consumer.fingerprint import BlockPlan
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.model.verdict import Match, Part, SeenBefore, Verdict
from storage.errors import StoreUnavailable
from tests.unit.console.desks import Office, Page, decide, office, page
from tests.unit.console.newsroom import article, version_of

JUDGING = JudgeSettings(
    plan=BlockPlan.named("4x16"), scheme_digest="", sources={"strict": SourceRule(similarity_min=0.9)}
)
ELEVEN = "24 Nov 2025, 11:00:00 UTC (5 hours ago)"
AT = "2025-11-24T11:00:00.000Z"
OWN = "window.owned=1"
HOSTILE = f'"\'></title></style></bdi></h2><script>{OWN}</script><img src=x onerror="{OWN}">{{{{ 7*7 }}}}'
UNSEEN = "\u202egnp.exe\u202c\x1b[31m\x07\u2066"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A console that all tests of this module add flags to."""
    with office(tmp_path_factory.mktemp("desk"), judging=JUDGING) as opened:
        yield opened


def shown(desk: Office, flag_id: int, query: str = "") -> Page:
    """The page of a flag."""
    return page(desk.ann, f"/flags/{flag_id}{query}")


def reasons(opened: Page) -> list[str]:
    """Why it was flagged."""
    return opened.texts(".reasons li")


def test_both_texts_stand_side_by_side_with_what_differs(desk: Office) -> None:
    """What only the article has is an insertion, what only the original has a deletion; titles, sources, times."""
    flag = desk.room.flag(
        article(
            "pair-b", "Ferry, again", "Rebuilt on Friday evening.", source="post", url="https://post.example/x?a=1"
        ),
        article("pair-a", "Ferry", "Rebuilt on Tuesday evening.", source="wire", url="javascript:alert(1)"),
        0.83,
        minute=5,
    )
    desk.articles.asked.clear()
    opened = shown(desk, flag.flag_id)
    assert opened.texts(".side .text") == ["Rebuilt on Friday evening.", "Rebuilt on Tuesday evening."]
    assert opened.texts(".side ins") == ["Friday"]
    assert opened.texts(".side del") == ["Tuesday"]
    assert opened.texts(".side h2") == ["Ferry, again", "Ferry"]
    assert opened.texts(".side .role") == ["Article", "repeats this earlier article"]
    assert [text.split(" UTC")[0] for text in opened.texts(".side .about")] == [
        "pair-b · post · 24 Nov 2025, 11:05:00",
        "pair-a · wire · 24 Nov 2025, 11:00:00",
    ]
    looked_up = [f"/look-up?id={name}&version={version_of(name)}" for name in ("pair-b", "pair-a")]
    assert opened.hrefs(".side .about a") == [looked_up[0], "https://post.example/x?a=1", looked_up[1]]
    assert desk.articles.asked == [(2, True)]


def test_equal_texts_are_said_to_be_equal(desk: Office) -> None:
    """There is nothing to mark."""
    flag = desk.room.flag(article("same-b", "B", "Text."), article("same-a", "A", "Text."), 1.0)
    opened = shown(desk, flag.flag_id)
    assert "the same, character for character" in opened.answer.shown
    assert opened.all("main ins, main del") == []


def test_shared_keywords_are_listed(desk: Office) -> None:
    """As the verdict names them, or as both articles have them without one; none that says nothing."""
    a = article("kw-a", "A", "x", keywords=("ferry", "the", "000", "rain"))
    b = article("kw-b", "B", "y", keywords=("rain", "the", "000", "ferry"))
    flag = desk.room.flag(b, a, 0.8)
    assert shown(desk, flag.flag_id).texts(".shared mark") == ["rain", "ferry"]
    missed = desk.room.near_miss(article("kw-c", "C", "z", keywords=("rain", "sun")), a, 0.74)
    assert shown(desk, missed.flag_id).texts(".shared mark") == ["rain"]
    none = desk.room.near_miss(article("kw-d", "D", "z", keywords=("sun",)), a, 0.74)
    assert "No shared keywords" in shown(desk, none.flag_id).answer.shown


def test_why_it_was_flagged(desk: Office) -> None:
    """The similarity beside the threshold of these sources, the distance, and all that the verdict remarks."""
    original = article("why-a", "A", "x", source="strict")
    flag = desk.room.flag(
        article("why-b", "B", "y"), original, 0.934, distance=1, truncated=True,
        seen_before=SeenBefore(first="2025-11-02T08:00:00.000Z", last="2025-11-19T21:10:00.000Z", times=14),
        matches=tuple(
            Match(id=name, version=version_of(name), distance=3, similarity=0.9) for name in ("why-a", "why-other")
        ),
    )  # fmt: skip
    assert reasons(shown(desk, flag.flag_id)) == [
        "About 93 % of the text is in both articles. Pairs are flagged from 90 %.",
        "A limit cut the search short, so a nearer article may exist.",
        (
            "The same text arrived at least 14 times before, first on 2 Nov 2025, 08:00:00 UTC and last on "
            "19 Nov 2025, 21:10:00 UTC."
        ),
        "Also near: why-other.",
    ]


def part(name: str, share_of_this: float, share_of_that: float) -> Part:
    """What a verdict says of a related article."""
    return Part(id=name, version=version_of(name), share_of_this=share_of_this, share_of_that=share_of_that)


def test_related_articles_stand_beside_the_story(desk: Office) -> None:
    """Those that the verdicts of the copy and of the original name, once each; none of the story's own articles."""
    of_original = (part("rel-wire", 0.3, 0.5), part("rel-away\u202e", 0.35, 0.2))
    verdict = Verdict(
        id="rel-a", version=version_of("rel-a"), outcome="unique", arrived_at=AT, decided_at=AT, parts=of_original
    )
    original = article("rel-a", "A", "x", verdict=verdict)
    desk.room.hold(article("rel-wire", "The wire's <story>", "y", source="wire"))
    parts = (part("rel-wire", 0.25, 0.93), part("rel-a", 0.9, 0.9))
    opened = shown(desk, desk.room.flag(article("rel-b", "B", "y"), original, 0.9, parts=parts).flag_id)
    (related,) = [each for each in opened.all("section.part") if each.css_first("#related")]
    assert [" ".join(each.text().split()) for each in related.css("li")] == [
        f"The wire's <story> rel-wire · wire · {ELEVEN} · It contains 25 % of rel-b, which contains 93 % of it.",
        "rel-away\ufffd It contains 35 % of rel-a, which contains 20 % of it.",
    ]
    assert [each.attributes["href"] for each in related.css("a")][:1] == [
        f"/look-up?id=rel-wire&version={version_of('rel-wire')}"
    ]
    story = page(desk.ann, f"/stories/{desk.room.row('rel-b').story_id}")
    assert len(story.all("section:has(#related) li")) == 2


def test_nothing_is_related_where_no_verdict_says_so(desk: Office) -> None:
    """Without judge.parts pages have no empty section."""
    flag = desk.room.flag(article("unrelated-b", "B", "y"), article("unrelated-a", "A", "x"), 0.9)
    assert shown(desk, flag.flag_id).all("#related") == []
    assert page(desk.ann, f"/stories/{flag.story_id}").all("#related") == []


def test_what_was_not_measured_is_said(desk: Office) -> None:
    """Short texts have no similarity; and where the store has no verdict any more, the flag itself says a part."""
    flag = desk.room.flag(
        article("short-b", "B", "Hi"), article("short-a", "A", "Hi"), None, stored=False, truncated=True
    )
    assert reasons(shown(desk, flag.flag_id)) == [
        "The similarity was not measured: both texts are short, or only fingerprints are compared.",
        "A limit cut the search short, so a nearer article may exist.",
    ]


def test_articles_that_are_not_there_do_not_keep_a_flag_from_being_decided(desk: Office) -> None:
    """Those that left the window, those whose text is not kept, and empty texts: each says which it is."""
    gone = desk.room.flag(article("gone-b", "B", "x"), article("gone-a", "A", "x"), 0.8, stored=False)
    opened = shown(desk, gone.flag_id)
    assert opened.answer.shown.count("The store no longer has this article. It left the window.") == 2
    assert "nothing to compare" in opened.answer.shown
    assert opened.texts(".decide button") == ["Right", "Wrong", "Skip"]
    half = desk.room.flag(article("half-b", "B", None), article("half-a", "A", "Only this one."), 0.8)
    opened = shown(desk, half.flag_id)
    assert opened.texts(".side .text") == ["The store keeps no text of this article.", "Only this one."]
    empty = desk.room.flag(article("empty-b", "B", " \n"), article("empty-a", "A", "x"), 0.8)
    assert shown(desk, empty.flag_id).texts(".side .text")[0] == "The text is empty."


def test_a_replaced_version_says_so(desk: Office) -> None:
    """Whoever reads it knows that it is not what the source says now."""
    flag = desk.room.flag(article("ended-b", "B", "x", ended_ms=1_764_000_000_000), article("ended-a", "A", "x"), 0.8)
    assert "replaced or retracted 24 Nov 2025, 16:00:00 UTC" in shown(desk, flag.flag_id).answer.shown


def test_the_page_is_there_while_the_store_is_away(desk: Office) -> None:
    """With everything that the console knows itself; the whole text says when to come back."""
    flag = desk.room.flag(article("away-b", "B", "x"), article("away-a", "A", "x"), 0.8)
    desk.articles.error = StoreUnavailable("no route")
    try:
        opened = shown(desk, flag.flag_id)
        assert opened.texts(".side .text") == ["The store does not answer at the moment."] * 2
        assert reasons(opened)
        assert desk.ann.get(f"/flags/{flag.flag_id}/text/article").status == 503
    finally:
        desk.articles.error = None


def test_a_text_of_a_megabyte_comes_in_parts(desk: Office) -> None:
    """Each page is small, parts lead to each other, and the whole text is there as plain text."""
    long = "The harbour ledger, line by line. " * 30_000
    flag = desk.room.flag(
        article("long-b", "B", long.replace("by line", "by row", 1)), article("long-a", "A", long), 0.9
    )
    opened = shown(desk, flag.flag_id)
    assert len(opened.answer.data) < 150_000
    assert opened.texts(".side ins") == ["row"]
    assert len(opened.all(".side .text")[0].text()) <= PART_CHARS_MAX
    assert "too long or too different for a full comparison" in opened.answer.shown
    assert opened.texts(".parts span")[1] == "Part 1 of 85"
    following = shown(desk, flag.flag_id, opened.link("Next part"))
    assert following.texts(".parts span") == ["Part 2 of 85"]
    assert opened.link("Whole text, 1,019,999 characters") == f"/flags/{flag.flag_id}/text/article"
    whole = desk.ann.get(f"/flags/{flag.flag_id}/text/original")
    assert whole.header("content-type") == "text/plain; charset=utf-8"
    assert whole.text == long
    assert "part" not in shown(desk, flag.flag_id, "?part=999").link("Queue")


def test_a_part_that_only_one_text_has_says_so(desk: Office) -> None:
    """A text that ends earlier leaves a note, not a hole."""
    flag = desk.room.flag(article("longer-b", "B", "x " * PART_CHARS_MAX), article("longer-a", "A", "x x"), 0.8)
    assert shown(desk, flag.flag_id, "?part=2").texts(".side .text")[1] == "This text ends before this part."


def test_texts_have_the_direction_and_the_language_of_their_own(desk: Office) -> None:
    """Arabic runs from right to left within an English page; a declared language that is none is left out."""
    flag = desk.room.flag(
        article("rtl-b", "مجلس الميناء", "أعاد المجلس البناء.", lang="ar"),
        article("rtl-a", "مجلس", "أعاد المجلس.", lang='en" onclick="x'),
        0.8,
    )
    opened = shown(desk, flag.flag_id)
    assert [node.attributes.get("dir") for node in opened.all(".side .text")] == ["auto", "auto"]
    assert [node.attributes.get("lang") for node in opened.all(".side .text")] == ["ar", None]
    assert opened.all(".side h2 bdi")[0].attributes.get("lang") == "ar"


def test_the_story_around_it(desk: Office) -> None:
    """The copies that came before and after, this one among them without a link, and the way to the story."""
    original = article("around-a", "A", "x")
    flags = [desk.room.flag(article(f"around-{n}", f"Copy {n}", "x"), original, 0.8, minute=n) for n in range(12)]
    opened = shown(desk, flags[6].flag_id)
    listed = opened.texts(".short:not(.history) li")
    assert [text.split(" · wire")[0] for text in listed] == [f"Copy {n} around-{n}" for n in range(3, 10)]
    assert opened.texts(".short [aria-current]") == ["Copy 6"]
    assert opened.link("12 copies of this original") == f"/stories/{flags[6].story_id}"


def test_a_near_miss_asks_another_question(desk: Office) -> None:
    """It was not flagged, nothing is released, and the buttons say what is meant."""
    missed = desk.room.near_miss(article("near-b", "B", "x y"), article("near-a", "A", "x z"), 0.74)
    opened = shown(desk, missed.flag_id)
    assert opened.texts(".decide button") == ["Same article", "Different articles", "Skip"]
    assert "resembles this earlier article" in opened.texts(".side .role")
    assert "Why it was not flagged" in opened.answer.shown
    assert "does not affect the two articles" in opened.answer.shown
    assert "counts as unique" not in opened.answer.shown


def test_notes_and_history_are_kept(desk: Office) -> None:
    """With who and when; an empty note is refused, and what was undone is struck out."""
    flag = desk.room.flag(article("note-b", "B", "x"), article("note-a", "A", "x"), 0.8)
    path = f"/flags/{flag.flag_id}"
    assert "No decisions or notes yet." in shown(desk, flag.flag_id).answer.shown
    sent = desk.ann.send(f"{path}/note", path, text=f"Ask Wei.\nToday. {HOSTILE}{UNSEEN}", queue="source=wire")
    assert (sent.status, sent.header("location")) == (303, f"{path}?source=wire")
    refused = desk.ann.send(f"{path}/note", path, text="  ", queue="")
    assert refused.status == 400
    assert "The note is empty" in refused.shown
    decided = decide(desk.ann, flag.flag_id, "right", note="Plain copy.")
    assert decided.status == 303
    opened = shown(desk, flag.flag_id)
    undo = opened.all(".decided form")[0].attributes["action"] or ""
    desk.ann.post(undo, opened.form(undo))
    texts = shown(desk, flag.flag_id).texts(".history li")
    assert texts[0].startswith("Note · Ann · 24 Nov 2025, 16:00:00 UTC (just now) Ask Wei. Today. ")
    assert texts[1].startswith("Right · Ann")
    assert "undone 24 Nov 2025" in texts[1]
    assert texts[1].endswith("Plain copy.")
    assert shown(desk, flag.flag_id).texts(".history s") == ["Right"]


def test_the_rule_for_the_configuration(desk: Office) -> None:
    """For one source within itself, for two sources, for all of a source, and none where there is no source."""
    within = desk.room.flag(
        article("rule-b", "B", "x", source='of "all"\u202e'), article("rule-a", "A", "x", source='of "all"\u202e'), 0.8
    )
    opened = shown(desk, within.flag_id)
    assert opened.texts("pre") == [r'[rules."of \"all\"\U0000202E"] within_source = false']
    assert "will no longer be compared with each other" in opened.answer.shown
    across = desk.room.flag(article("rule-c", "C", "x", source="p"), article("rule-a", "A", "x", source="q"), 0.8)
    opened = shown(desk, across.flag_id)
    assert opened.texts("pre") == ['[rules."p"] never_with = ["q"]']
    assert "Articles of p and of q will never be flagged as copies of each other" in opened.answer.shown
    assert "dupwatch migrate" in opened.answer.shown
    unknown = desk.room.flag(article("rule-e", "E", "x", source="p"), article("rule-a", "A", "x", source=""), 0.8)
    opened = shown(desk, unknown.flag_id)
    assert opened.texts("pre") == ['[rules."p"] flag = "never"']
    assert "there is no rule for the pair" in opened.answer.shown
    nameless = desk.room.flag(article("rule-d", "D", "x", source=""), article("rule-a", "A", "x"), 0.8)
    assert "this article has none" in shown(desk, nameless.flag_id).answer.shown


def test_hostile_content_is_text_in_every_field(desk: Office) -> None:
    """Markup, scripts and templates are shown; control and bidi characters are not; nothing becomes an element."""
    fields: dict[str, Any] = {"title": HOSTILE + UNSEEN, "body": HOSTILE + UNSEEN, "source": HOSTILE + UNSEEN,
              "url": f"https://x.example/{HOSTILE}", "lang": HOSTILE, "keywords": (HOSTILE, UNSEEN)}  # fmt: skip
    copy = article(f"copy{HOSTILE}{UNSEEN}", **fields)
    original = article(f"original{HOSTILE}{UNSEEN}", **fields)
    flag = desk.room.flag(copy, original, 0.81)
    paths = ["/?state=any", f"/flags/{flag.flag_id}", f"/flags/{flag.flag_id}?queue={HOSTILE}", "/stories", "/sources",
             f"/stories/{flag.story_id}", f"/stories/{flag.story_id}/decide?decision=wrong"]  # fmt: skip
    bob = desk.colleague(f"B{HOSTILE[:120]}"[:150])
    page(bob, f"/flags/{flag.flag_id}")
    for path in paths:
        opened = page(desk.ann, path.replace(" ", "%20").replace('"', "%22"))
        assert opened.all("script:not(head script), img, iframe, base, main style, [onerror], [onclick]") == [], path
        assert not {"\u202e", "\u202c", "\u2066", "\x1b", "\x07"} & set(opened.answer.text), path
        assert "49" not in opened.texts("h1, h2, h3, bdi"), path
        assert f"<script>{OWN}</script>" in opened.tree.text(), path
        assert all(not href.startswith("javascript:") for href in opened.hrefs("a")), path


@pytest.mark.parametrize("path", ["/flags/4711", "/flags/4711/text/article", "/flags/1/text/both", "/stories/4711"])
def test_what_is_not_there_is_not_found(desk: Office, path: str) -> None:
    """A page says so."""
    desk.room.flag(article("first-b", "B", "x"), article("first-a", "A", "x"), 0.8)
    assert desk.ann.get(path).status == 404


def test_a_flag_is_found_by_the_version_of_its_article(desk: Office) -> None:
    """As links of other programs name it, whatever an id has in it, also after signing in. A near miss is no flag."""
    odd = article(f"b&id=c#{OWN} %\u202e", "B", "x")
    flag, miss = desk.room.flag(odd, article("found-a", "A", "x"), 0.8), article("missed", "C", "x")
    desk.room.near_miss(miss, article("found-a", "A", "x"), 0.7)
    address = f"/flags?{urlencode({'id': odd.id, 'version': odd.version})}"
    assert desk.ann.get(address).header("location") == f"/flags/{flag.flag_id}"
    stranger = desk.served.browser()
    back = stranger.get(address).header("location")
    assert back == f"/sign-in?{urlencode({'back': address})}"
    for query in (
        {"id": odd.id},
        {"id": "b", "version": odd.version},
        {"id": miss.id, "version": miss.version},
        {"id": "x" * 600},
        dict[str, str](),
    ):
        lost = desk.ann.get(f"/flags?{urlencode(query)}")
        assert (lost.status, "has no flag for this version" in lost.shown) == (404, True), query


def test_the_plain_text_controls_no_terminal(desk: Office) -> None:
    """Whoever fetches it with curl sees marks in place of what could harm."""
    flag = desk.room.flag(article("curl-b", "B", f"x{UNSEEN}\r\ny"), article("curl-a", "A", None), 0.8)
    answer = desk.ann.get(f"/flags/{flag.flag_id}/text/article")
    assert answer.text == "x\ufffdgnp.exe\ufffd\ufffd[31m\ufffd\ufffd\ny"
    assert answer.header("x-content-type-options") == "nosniff"
    assert desk.ann.get(f"/flags/{flag.flag_id}/text/original").status == 404


def test_in_chinese_too(tmp_path: Path) -> None:
    """The same page in the other language, with its numbers and times."""
    with office(tmp_path, language="zh") as desk:
        flag = desk.room.flag(article("zh-b", "重建码头", "港口委员会星期五决定重建码头。"),
                              article("zh-a", "重建码头", "港口委员会星期二决定重建码头。"), 0.83,
                              parts=(part("zh-c", 0.25, 0.93),))  # fmt: skip
        opened = page(desk.ann, f"/flags/{flag.flag_id}")
        assert opened.texts(".decide button") == ["正确", "误判", "跳过"]
        assert opened.texts(".side ins") == ["五"]
        assert "两篇文章约有 83 % 的内容相同。" in opened.answer.shown
        assert "2025年11月24日 11:00:00 UTC" in opened.answer.shown
        assert opened.texts("#related") == ["相关文章：同一报道，文字不同"]
        assert "其中含有 zh-b 的 25 %；zh-b 含有它的 93 %。" in opened.texts("section:has(#related) .about")
