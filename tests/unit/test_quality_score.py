"""The measuring tools: counts known by hand, and pairs against brute force."""

import json
import random
import re
import unicodedata
from itertools import combinations, pairwise
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks.quality import score
from benchmarks.quality.debian_corpus import article_from_page, corpus
from benchmarks.quality.edits import EDITS, edited_feed
from benchmarks.quality.feed import CJK, Article, is_cjk, read_feed, read_lines, write_lines
from benchmarks.quality.pairs import SimilarPair, similar_pairs
from benchmarks.quality.score import Outcome, Verdict, measure, wilson
from benchmarks.quality.shingles import normalise
from tests.examples import examples

FEED = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
PAIRS = [
    SimilarPair("a", "b", 0.95, 0.99),
    SimilarPair("a", "c", 0.7, 0.9),
    SimilarPair("a", "d", 0.6999, 0.8),
    SimilarPair("a", "e", 0.5, 0.7),
    SimilarPair("a", "f", 0.4999, 0.7),
    SimilarPair("a", "h", 0.8, 0.9),
    SimilarPair("g", "h", 0.85, 0.9),
    SimilarPair("b", "i", 0.99, 1.0),
    SimilarPair("h", "j", 0.7999, 0.9),
]
VERDICTS = [
    Verdict("a", "unique"),
    Verdict("b", "duplicate", "a", 0.94, 2),
    Verdict("c", "duplicate", "a"),
    Verdict("d", "duplicate", "a"),
    Verdict("e", "duplicate", "a"),
    Verdict("f", "duplicate", "a", 0.81, 3),
    Verdict("g", "duplicate", "b"),
    Verdict("h", "unique"),
    Verdict("i", "unique"),
    Verdict("j", "unique"),
]


def test_flags_are_right_between_or_wrong_by_the_article_they_name() -> None:
    """0.7 is right, 0.6999 and 0.5 are between, 0.4999 and an unlisted pair are wrong."""
    quality = measure(FEED, PAIRS, VERDICTS)
    assert (quality.flags, quality.right, quality.between, quality.wrong) == (6, 2, 2, 2)
    assert quality.precision.value == 2 / 4
    assert quality.precision_strict.value == 2 / 6
    assert [(f.id, f.other, f.jaccard, f.distance) for f in quality.wrong_flags] == [
        ("g", "b", 0.0, None),
        ("f", "a", 0.4999, 3),
    ]


def test_recall_counts_articles_with_an_earlier_kept_one() -> None:
    """Found is b, missed is h; what i is like is no kept one, j is just below 0.8, nothing like g is earlier."""
    quality = measure(FEED, PAIRS, VERDICTS)
    assert (quality.found, quality.missed, quality.kept, quality.articles) == (1, 1, 4, 10)
    assert quality.recall.value == 1 / 2
    assert quality.f1 == 1 / 2
    assert [(m.id, m.other, m.jaccard) for m in quality.misses] == [("h", "a", 0.8)]


def test_a_miss_names_the_most_alike_kept_article() -> None:
    """With g kept too, h was to be matched to g rather than to a."""
    verdicts = [Verdict("g", "unique") if v.id == "g" else v for v in VERDICTS]
    assert [(m.id, m.other) for m in measure(FEED, PAIRS, verdicts).misses] == [("h", "g")]


def test_a_flag_may_name_a_later_article() -> None:
    """Which of the two came first in the feed does not matter to whether a flag is right."""
    quality = measure(["a", "b"], PAIRS[:1], [Verdict("a", "duplicate", "b"), Verdict("b", "unique")])
    assert (quality.right, quality.found, quality.missed) == (1, 0, 0)


def test_a_retracted_article_is_neither_flag_nor_kept_nor_missed() -> None:
    """Retracted ones are counted apart, and nothing has to be matched to them."""
    feed: list[str] = ["a", "b"]
    retracted: Outcome = "retracted"
    last = measure(feed, PAIRS[:1], [Verdict("a", "unique"), Verdict("b", retracted)])
    first = measure(feed, PAIRS[:1], [Verdict("a", retracted), Verdict("b", "unique")])
    for quality in (first, last):
        assert (quality.retracted, quality.kept, quality.flags, quality.found, quality.missed) == (1, 1, 0, 0, 0)


def test_rates_of_nothing_are_missing() -> None:
    """Without flags and without anything to find there are no rates, and the interval is everything."""
    quality = measure(["a"], [], [Verdict("a", "unique")])
    assert (quality.precision, quality.recall, quality.f1) == ((None, 0.0, 1.0), (None, 0.0, 1.0), None)


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)],
)
def test_wilson_intervals(hits: int, trials: int, low: float, high: float) -> None:
    """The two in the middle of the range are Newcombe's published examples (Statistics in Medicine 17, 1998)."""
    rate = wilson(hits, trials)
    assert (rate.value, round(rate.low, 4), round(rate.high, 4)) == (hits / trials, low, high)


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        ([Verdict("a", "unique")], "1 of 2 articles have no verdict, the first is 'b'"),
        ([Verdict("z", "unique")], "'z' belongs to no article"),
        ([Verdict("a", "unique"), Verdict("a", "duplicate", "b")], "'a' has two verdicts"),
    ],
)
def test_verdicts_have_to_cover_the_feed_once(verdicts: list[Verdict], message: str) -> None:
    """A missing, a foreign and a second, other verdict are errors."""
    with pytest.raises(ValueError, match=re.escape(message)):
        measure(["a", "b"], [], verdicts)


def test_a_verdict_delivered_twice_counts_once() -> None:
    """Delivery is at least once, so the same verdict may stand there again."""
    assert measure(FEED, PAIRS, VERDICTS + VERDICTS) == measure(FEED, PAIRS, VERDICTS)


def test_pairs_of_another_feed_are_refused() -> None:
    """A pair that names an unknown article means that the wrong file was given."""
    with pytest.raises(ValueError, match="not of this feed"):
        measure(["a"], PAIRS[:1], [Verdict("a", "unique")])


def _run(folder: Path, verdicts: list[Verdict], *options: str) -> tuple[int, str]:
    write_lines(folder / "feed.jsonl.gz", [Article(id=article_id, body="") for article_id in FEED])
    write_lines(folder / "pairs.jsonl", PAIRS)
    write_lines(folder / "verdicts.jsonl", verdicts)
    files = ["--feed", "feed.jsonl.gz", "--pairs", "pairs.jsonl", "--verdicts", "verdicts.jsonl"]
    arguments = [str(folder / part) if ".jsonl" in part else part for part in files]
    app = typer.Typer()
    app.command()(score.main)
    result = CliRunner().invoke(app, [*arguments, *options], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_command_prints_tables_and_json(tmp_path: Path) -> None:
    """Both show the counts, and as many of the worst findings as were asked for."""
    code, tables = _run(tmp_path, VERDICTS, "--show", "1")
    assert code == 0
    assert "2  (33.3% of flags)" in tables
    assert "0.0000" in tables
    assert "0.4999" not in tables
    code, text = _run(tmp_path, VERDICTS, "--show", "1", "--json")
    report = json.loads(text)
    assert (code, report["flags"], report["right"], report["precision"][0]) == (0, 6, 2, 0.5)
    assert report["misses"] == [["h", "a", 0.8, 0.9, None, None]]
    assert len(report["wrong_flags"]) == 1


def test_command_fails_without_all_verdicts(tmp_path: Path) -> None:
    """A run that lost a verdict gives no figures but an error."""
    code, text = _run(tmp_path, VERDICTS[:-1])
    assert code == 2
    assert "no verdict" in text


def _shingles_by_definition(article: Article) -> set[str]:
    text = re.sub(r"\W+", " ", unicodedata.normalize("NFKC", article.body).casefold())
    if text in {"", " "}:
        return set()
    widths = [5 if CJK.match(text[start:].lstrip(" ")) else 9 for start in range(len(text))]
    found = {text[start : start + width] for start, width in enumerate(widths) if start + width <= len(text)}
    return found or {text}


def _pairs_by_definition(articles: list[Article], jaccard_min: float) -> list[tuple[str, str, float, float]]:
    sets = {article.id: _shingles_by_definition(article) for article in articles}
    order = {article.id: place for place, article in enumerate(articles)}
    pairs = []
    for first, second in combinations(sets, 2):
        shingles, other = sets[first], sets[second]
        shared = len(shingles & other)
        if shared and shared / len(shingles | other) >= jaccard_min:
            jaccard, containment = shared / len(shingles | other), shared / min(len(shingles), len(other))
            pairs.append((first, second, round(jaccard, 4), round(containment, 4)))
    return sorted(pairs, key=lambda pair: (order[pair[1]], order[pair[0]]))


def _random_articles(seed: int) -> list[Article]:
    """60 texts, most of them put together from the same few pieces, some equal, empty, or shorter than a shingle."""
    rng = random.Random(seed)
    articles = [Article(id="empty", body=""), Article(id="empty too", body=" …!", lang="zh")]
    for number in range(58):
        lang = rng.choice(["zh-CN", "ja", "en", ""])
        letters = "天地玄黄宇宙洪荒" if lang in {"zh-CN", "ja"} else "abcde fgh"
        pieces = ["".join(random.Random(piece).choices(letters, k=12)) for piece in range(9)]
        body = "。".join(rng.sample(pieces, rng.randrange(1, 9))) if number % 5 else rng.choice(["天 地", "Ab", "ab."])
        articles.append(Article(id=f"{number}", body=body, lang=lang))
    return articles


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("jaccard_min", [0.05, 0.4, 0.7, 1.0])
def test_pairs_are_those_of_the_definition(seed: int, jaccard_min: float) -> None:
    """Naming shingles, prefixes and bounds lose no pair, add none, and change no figure or order."""
    articles = _random_articles(seed)
    expected = _pairs_by_definition(articles, jaccard_min)
    assert similar_pairs(articles, jaccard_min) == expected
    assert len(expected) > 5


@examples(60)
@given(
    bodies=st.lists(st.text(alphabet="ab 一二。\u200b\0", max_size=24), max_size=12),
    langs=st.lists(st.sampled_from(["zh", "en", ""]), min_size=12, max_size=12),
)
def test_pairs_of_any_texts_are_those_of_the_definition(bodies: list[str], langs: list[str]) -> None:
    """Texts of few letters, with much in common and many short ones, have the pairs that sets of strings have."""
    articles = [
        Article(id=f"{number}", body=body, lang=lang)
        for number, (body, lang) in enumerate(zip(bodies, langs, strict=False))
    ]
    assert similar_pairs(articles) == _pairs_by_definition(articles, 0.4)


def test_language_decides_the_shingles_and_characters_where_it_is_missing() -> None:
    """Chinese and Japanese by tag in any spelling; without one a fifth of the characters is enough."""
    assert [is_cjk(lang, "x") for lang in ("zh-CN", "ZH_tw", "ja", "en", "zho")] == [True, True, True, False, False]
    assert [is_cjk("", text) for text in ("かabcd", "かabcde", "天", "")] == [True, False, True, False]


def test_invisible_characters_count_unless_dropped() -> None:
    """By the definition a zero-width space parts two words; dropped first, the two texts are equal."""
    articles = [Article(id="1", body="天地玄黄宇宙洪荒"), Article(id="2", body="天地玄\u200b黄宇宙洪荒")]
    assert similar_pairs(articles) == []
    assert similar_pairs(articles, drop_invisible=True) == [("1", "2", 1.0, 1.0)]


def test_feeds_are_written_and_read_alike_plain_and_packed(tmp_path: Path) -> None:
    """What is written is what is read, packed twice gives the same bytes, and an id that comes twice is refused."""
    articles = [Article(id="1", body="天地", lang="zh"), Article(id="2", body="x")]
    for name in ("feed.jsonl", "feed.jsonl.gz"):
        assert write_lines(tmp_path / name, articles) == 2
        assert read_feed(tmp_path / name) == articles
    write_lines(tmp_path / "again.jsonl.gz", articles)
    assert (tmp_path / "again.jsonl.gz").read_bytes() == (tmp_path / "feed.jsonl.gz").read_bytes()
    # Bytes 4 to 7 of the header are the time of writing (RFC 1952), which two runs would not share.
    assert (tmp_path / "again.jsonl.gz").read_bytes()[4:8] == bytes(4)
    write_lines(tmp_path / "twice.jsonl", articles[:1] * 2)
    with pytest.raises(ValueError, match="comes twice"):
        read_feed(tmp_path / "twice.jsonl")


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    """The error says which line could not be read."""
    (tmp_path / "feed.jsonl").write_text('{"id": "1", "body": ""}\n\n{"id": 2}\n')
    with pytest.raises(ValueError, match="line 3"):
        list(read_lines(tmp_path / "feed.jsonl", Article))


SENTENCES = {
    "zh": "清晨的渡口停着三条木船。船夫把缆绳系在石柱上！雾气很久才散去。",
    "en": "Three boats lay at the landing. The ferryman tied a rope to the post! The fog took long to lift. ",
}


def _letters() -> list[Article]:
    return [
        Article(id=f"{lang}{number}", body="".join(f"{number + day} {text}" for day in range(8)), lang=lang)
        for lang, text in SENTENCES.items()
        for number in range(40)
    ]


def test_edited_copies_follow_their_originals() -> None:
    """Half of the articles get a copy each, under a new id, later and changed; the originals stay as they were."""
    originals = {article.id: article.body for article in _letters()}
    feed = edited_feed(_letters(), seed=3, share=0.5, shuffle=True)
    places = {article.id: place for place, article in enumerate(feed)}
    copies = {article.id: article.body for article in feed if "~" in article.id}
    assert (len(feed), len(copies), len(places)) == (120, 40, 120)
    assert {article.id: article.body for article in feed if article.id not in copies} == originals
    assert {copy.split("~")[1] for copy in copies} == set(EDITS)
    for copy, body in copies.items():
        assert places[copy.split("~")[0]] < places[copy]
        assert body != originals[copy.split("~")[0]]
    assert all(later.published_at > earlier.published_at for earlier, later in pairwise(feed))


def test_edits_repeat_with_their_seed() -> None:
    """Equal arguments give the same feed, another seed another one, and the order stays unless it is shuffled."""
    first, again, other = (edited_feed(_letters(), seed, 0.3, shuffle=True) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    kept = edited_feed(_letters(), 1, 0.3, shuffle=False)
    assert [article.id for article in kept if "~" not in article.id] == [article.id for article in _letters()]


@pytest.mark.parametrize("lang", SENTENCES)
def test_each_edit_does_what_it_says(lang: str) -> None:
    """A frame is around the text, moved sentences are the same ones, a cut takes 10 to 20 %, noise reads the same."""
    article = Article(id="1", body="".join(f"{n} {SENTENCES[lang]}" for n in range(10)), lang=lang)
    edited = {name: edit(article, random.Random(5), ["word"]) for name, edit in EDITS.items()}
    assert article.body in edited["framed"]
    assert sorted(edited["rearranged"]) == sorted(article.body)
    assert edited["rearranged"] != article.body
    assert article.body.startswith(edited["truncated"])
    assert 0.8 <= len(edited["truncated"]) / len(article.body) <= 0.9
    assert edited["noisy"] != article.body
    assert normalise(edited["noisy"], drop_invisible=True) == normalise(article.body)
    assert "\u200b" in edited["noisy"]
    assert 0.9 * len(article.body) < len(edited["reworded"]) < 1.1 * len(article.body)


def _page(body: str, head: str = "<title>Ferry \n times</title>", lang: str = "") -> bytes:
    return f"<!DOCTYPE html><html {lang}><head>{head}</head><body>{body}</body></html>".encode()


def test_a_page_becomes_an_article_without_its_machinery() -> None:
    """Scripts, styles and navigation are gone, entities are read, white space is one space."""
    machinery = "<script>let a;</script><style>p {}</style><nav>Home</nav>"
    article = article_from_page("ferry", "usr/share/doc/x.html", _page(machinery + "<p>fish &amp;\n chips </p>" * 30))
    assert article is not None
    assert (article.id, article.source, article.title) == ("ferry/usr/share/doc/x.html", "ferry", "Ferry times")
    assert article.body == " ".join(["fish & chips"] * 30)


@pytest.mark.parametrize(("chars", "kept"), [(199, False), (200, True), (100_000, True), (100_001, False)])
def test_pages_too_short_or_too_long_are_no_articles(chars: int, kept: bool) -> None:  # noqa: FBT001
    """From 200 to 100,000 characters a page is an article."""
    assert (article_from_page("p", "x.html", _page("x" * chars)) is not None) == kept


@pytest.mark.parametrize(
    ("package", "path", "lang", "expected"),
    [
        ("faq-ja", "usr/share/doc/a/zh_CN/x.html", 'lang="en"', "zh-CN"),
        ("faq-ja", "usr/share/doc/a/x.zh-tw.html", "", "zh-TW"),
        ("faq-ja", "usr/share/doc/a/x.html", 'lang="en-us"', "en-US"),
        ("faq-zh-cn=1.2", "usr/share/doc/a/x.html", "", "zh-CN"),
        ("faq", "usr/share/doc/a/x.html", "", ""),
    ],
)
def test_language_of_a_page(package: str, path: str, lang: str, expected: str) -> None:
    """The path says it, else the page, else the package's name, else nobody."""
    article = article_from_page(package, path, _page("x" * 300, lang=lang))
    assert article is not None
    assert article.lang == expected


def test_pages_are_decoded_by_their_own_charset() -> None:
    """An old Japanese page is read as EUC-JP if it says so, and as UTF-8 if the charset is unknown."""
    text = "渡し場" * 80
    old = f'<html><head><meta charset="euc-jp"></head><body>{text}</body></html>'
    odd = f'<html><head><meta charset="no-such"></head><body>{text}</body></html>'
    for page in (old.encode("euc-jp"), odd.encode()):
        article = article_from_page("p", "x.html", page)
        assert article is not None
        assert article.body == text


def test_a_corpus_keeps_languages_and_repeats_its_order() -> None:
    """Only the languages asked for stay, times rise, and the seed alone decides the order."""
    langs = ["zh-CN", "ja", "en"] * 10
    articles = [Article(id=f"{number}", body="", lang=lang) for number, lang in enumerate(langs)]
    chosen = corpus(articles, {"zh", "ja"}, seed=1, articles_max=15)
    assert {article.lang for article in chosen} == {"zh-CN", "ja"}
    assert [article.published_at for article in chosen] == [1_700_000_000 + 7 * place for place in range(15)]
    assert chosen == corpus(articles, {"zh", "ja"}, seed=1, articles_max=15)
    assert chosen != corpus(articles, {"zh", "ja"}, seed=2, articles_max=15)
    assert len(corpus(articles, set(), seed=1, articles_max=None)) == 30
