"""The corpora of scripts, Chinese copies, short posts and whole pages, and the schemes side by side on them."""

import gzip
import json
import random
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.quality import edits, web_pages
from benchmarks.quality.chinese import Convert, converted, is_chinese, is_traditional
from benchmarks.quality.chinese_copies import OF_SIMPLIFIED, OF_TRADITIONAL, feed_of_copies
from benchmarks.quality.edits import EDITS, edited_feed
from benchmarks.quality.feed import Article, read_feed, write_lines
from benchmarks.quality.manual_pages import HEAD_CHARS, manuals_in, passages
from benchmarks.quality.pairs import SimilarPair, similar_pairs
from benchmarks.quality.schemes import SCHEMES, By, groups, judge_with_scheme, rows
from benchmarks.quality.score import Verdict, measure
from benchmarks.quality.short_posts import EMOJI, EMOJI_LANG, as_seen, feed_of_posts
from benchmarks.quality.short_posts import rows as post_rows
from benchmarks.quality.troff import text_of_manual
from consumer.decode.html.markup import MarkupTooComplex

MANUAL = r""".\" A comment.
.de FerryURL
\\$1 is not printed
..
.ig
Neither is this.
..
.TH FERRY 1 "март"
.ie \n(.g .ds note hidden
.el \{\
.  ds note hidden too
.br
not this line either
.\}
.SH "НАЗВАНИЕ ПАРОМА"
\fBferry\fP \- водит \fI\,ПАРОМ\/\fP\&... \(em через\ реку \[u00AB]Ока\[u00BB] \" a comment
.TP 4
\fB\-\-rope\fR=\fI"канат"\fR
.BI \-r " N"
.IP \(bu 2
пункт
.TS
l l.
таблица	цифры
.TE
.It Fl a Ar файл
.sp 2
'br
\s-1МЕЛКО\s0 C:\e
"""


def test_a_manual_page_is_what_it_prints() -> None:
    """Definitions, conditions, tables and fonts are gone; arguments of headings, fonts and items stay."""
    assert text_of_manual(MANUAL) == (
        'НАЗВАНИЕ ПАРОМА ferry - водит ПАРОМ... — через реку «Ока» --rope="канат" -r N • пункт a файл МЕЛКО C:\\'
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('.B "open quote', "open quote"),
        (".de X END\nno\n.END\nyes", "yes"),
        (".if n \\{\nno\n.if t \\{ no \\}\nno\n.\\}\nyes", "yes"),
        (".if n no\nyes", "yes"),
        ("\\*(xx\\*[note]\\f[B]a\\f(CWb\\m[red]c\\h'2n'd", "abcd"),
        ("\\[no such]a\\[u4E00]", "a一"),
        ("", ""),
    ],
)
def test_requests_and_escapes_of_manual_pages(source: str, text: str) -> None:
    """An own end of a definition, nested conditions, strings, fonts, and characters by number."""
    assert text_of_manual(source) == text


def _words(number: int, chars: int) -> str:
    rng = random.Random(number)
    words: list[str] = []
    while sum(map(len, words)) + len(words) < chars:
        words.append("".join(rng.choices("абвгдежзиклмнопрст", k=rng.randint(4, 9))))
    return " ".join(words)


def test_passages_are_whole_words_that_follow_each_other_behind_the_head() -> None:
    """Two of a long page, each of 200 to 1,500 characters; none of a page that is hardly more than its head."""
    text = _words(1, 5_000)
    first, second = passages(text, random.Random(1))
    start = text.index(first)
    assert HEAD_CHARS < start < HEAD_CHARS + 12
    assert text[start:].startswith(f"{first} {second}")
    assert set(f"{first} {second}".split()) <= set(text.split())
    assert all(200 <= len(passage) <= 1_500 for passage in (first, second))
    assert list(passages(_words(1, 490), random.Random(1))) == []
    assert list(passages("x" * 5_000, random.Random(1))) == []


def test_passages_of_a_package_have_the_language_of_their_folder(tmp_path: Path) -> None:
    """A link is no second page, and the language is written as a tag."""
    folder = tmp_path / "usr" / "share" / "man" / "pt_BR.UTF-8" / "man1"
    folder.mkdir(parents=True)
    (folder / "ferry.1.gz").write_bytes(gzip.compress(_words(2, 5_000).encode()))
    (folder / "boat.1.gz").symlink_to("ferry.1.gz")
    found = list(manuals_in("ferry-manuals", tmp_path, random.Random(1)))
    assert [article.id for article in found] == [
        f"ferry-manuals/pt_BR.UTF-8/man1/ferry.1.gz#{number}" for number in (1, 2)
    ]
    assert {(article.lang, article.title, article.source) for article in found} == {
        ("pt-BR", "ferry.1", "ferry-manuals")
    }


def test_only_the_edits_asked_for_are_made() -> None:
    """All kinds named is the same as none named."""
    articles = [Article(id=f"{number}", body=_words(number, 400), lang="ru") for number in range(40)]
    chosen = edited_feed(articles, 1, 1.0, shuffle=False, names=["reworded", "truncated"])
    assert {article.id.partition("~")[2] for article in chosen} == {"", "reworded", "truncated"}
    every = edited_feed(articles, 1, 1.0, shuffle=False)
    assert every == edited_feed(articles, 1, 1.0, shuffle=False, names=list(EDITS))


def test_the_command_makes_the_edits_it_is_asked_for(tmp_path: Path) -> None:
    """One that it does not know is refused with the names of those that there are."""
    feed, output = tmp_path / "feed.jsonl", tmp_path / "edited.jsonl"
    write_lines(feed, [Article(id=f"{number}", body=_words(number, 400), lang="ru") for number in range(9)])
    app = typer.Typer()
    app.command()(edits.main)
    arguments = [str(feed), "-o", str(output), "--share", "1", "--edit"]
    assert CliRunner().invoke(app, [*arguments, "truncated", "--edit", "framed"]).exit_code == 0
    kinds = {article.id.partition("~")[2] for article in read_feed(output)}
    assert kinds <= {"", "truncated", "framed"}
    refused = CliRunner().invoke(app, [*arguments, "shouted"])
    assert refused.exit_code == 2
    assert "rearranged" in refused.output


def test_truth_by_shorter_shingles() -> None:
    """A changed word costs less by shingles of 5 than of 9; Chinese is always compared by 5."""
    words = _words(3, 600).split()
    articles = [
        Article(id="1", body=" ".join(words), lang="ru"),
        Article(id="2", body=" ".join([*words[:40], "весло", *words[41:]]), lang="ru"),
        Article(id="3", body="天地玄黄宇宙洪荒日月盈昃", lang="zh"),
        Article(id="4", body="天地玄黄宇宙洪荒日月盈", lang="zh"),
    ]
    by_nine, by_five = similar_pairs(articles), similar_pairs(articles, shingle_chars=5)
    assert by_five[0].jaccard > by_nine[0].jaccard > 0.9
    assert by_five[1] == by_nine[1]


CHINESE = [
    Article(id="1", body="简体文", title="简题", lang="zh-CN"),
    Article(id="2", body="日本文", lang="ja"),
    Article(id="3", body="繁體文", lang="zh_TW"),
    Article(id="4", body="same", lang="zh"),
]


def _renaming(name: str) -> Convert:
    """Write the name of the conversion behind a text, in place of converting; but for one text that has nothing."""
    return lambda text: text if text in {"same", ""} else f"{text}+{name}"


def test_languages_written_in_chinese_characters() -> None:
    """Japanese is not Chinese; region or script say which characters are meant. All texts are converted."""
    assert [is_chinese(article) for article in CHINESE] == [True, False, True, True]
    assert [is_traditional(article) for article in CHINESE] == [False, False, True, False]
    assert is_traditional(Article(id="5", body="", lang="zh-Hant-HK"))
    assert [article.body for article in converted(CHINESE, _renaming("x"))] == [
        "简体文+x",
        "日本文+x",
        "繁體文+x",
        "same",
    ]


def test_every_chinese_article_has_a_copy_in_the_other_script() -> None:
    """A copy comes after its original; one that is converted back has its original converted; Japanese is left out."""
    made: dict[str, tuple[str, str]] = {}
    for seed in range(60):
        feed = feed_of_copies(CHINESE, seed, _renaming)
        ids = [article.id for article in feed]
        assert sorted(part for part in ids if "~" not in part) == ["1", "3", "4"]
        assert len(ids) == 5
        bodies = {article.id: article.body for article in feed}
        for copy in (part for part in ids if "~" in part):
            original, kind = copy.split("~")
            assert ids.index(original) < ids.index(copy)
            made[f"{original} {kind}"] = (bodies[original], bodies[copy])
    assert made == {
        **{f"1 {kind}": ("简体文", f"简体文+{kind}") for kind in ("s2t", "s2tw", "s2hk", "s2twp", "s2hkp")},
        "1 t2s": ("简体文+s2t", "简体文+s2t+t2s"),
        "1 tw2sp": ("简体文+s2twp", "简体文+s2twp+tw2sp"),
        "3 t2s": ("繁體文", "繁體文+t2s"),
        "3 tw2sp": ("繁體文", "繁體文+tw2sp"),
    }
    assert len(OF_SIMPLIFIED) + len(OF_TRADITIONAL) == len(made)


def test_rows_count_the_articles_of_their_group() -> None:
    """Flags and misses are counted with the article that was judged, whatever group the other one is of."""
    articles = [
        Article(id=article_id, body="", lang=lang)
        for article_id, lang in (("a", "ru"), ("b", "vi-VN"), ("a~cut", "ru"), ("b~cut", "vi-VN"), ("b~new", "vi-VN"))
    ]
    pairs = [
        SimilarPair("a", "a~cut", 0.9, 0.9),
        SimilarPair("b", "b~cut", 0.9, 0.9),
        SimilarPair("b", "b~new", 0.5, 0.9),
    ]
    verdicts = [
        Verdict("a", "unique"),
        Verdict("b", "unique"),
        Verdict("a~cut", "duplicate", "a"),
        Verdict("b~cut", "unique"),
        Verdict("b~new", "duplicate", "a"),
    ]
    assert {name: sorted(ids) for name, ids in groups(articles, By.COPY).items()} == {
        "cut": ["a~cut", "b~cut"],
        "new": ["b~new"],
        "all": ["a", "a~cut", "b", "b~cut", "b~new"],
    }
    assert list(groups(articles, By.ALL)) == ["all"]
    by_lang = rows(articles, pairs, {"x": verdicts}, By.LANG)
    figures = [
        (row["lang"], row["articles"], row["copies flagged"], row["found"], row["flags"], row["wrong"])
        for row in by_lang
    ]
    assert figures == [
        ("ru", 2, "1 of 1", "1 of 1", 1, 0),
        ("vi", 3, "1 of 2", "0 of 1", 1, 1),
        ("all", 5, "2 of 3", "1 of 2", 2, 1),
    ]
    whole = measure([article.id for article in articles], pairs, verdicts)
    assert whole == measure([article.id for article in articles], pairs, verdicts, [article.id for article in articles])


def test_all_schemes_judge_a_feed_in_a_script_without_keywords(tmp_path: Path) -> None:
    """The cut copy of a Russian text is found from the second scheme on, and not by the first."""
    body = _words(5, 1_200)
    articles = [Article(id="1", body=body, lang="ru"), Article(id="1~cut", body=body[:1_090], lang="ru")]
    write_lines(tmp_path / "feed.jsonl", articles)
    outcomes = {scheme: judge_with_scheme(tmp_path / "feed.jsonl", scheme)[1].outcome for scheme in SCHEMES}
    assert outcomes == {"jieba-tfidf/1": "unique", "jieba-tfidf/2": "duplicate", "jieba-tfidf/3": "duplicate"}


def _posts() -> list[Article]:
    return [
        Article(id=f"{lang}{number}", body=f"Конец. {_words(number, 80)}. Ещё одно.", lang=lang)
        for lang in ("ru", "uk")
        for number in range(12)
    ]


def test_posts_have_a_verbatim_and_a_changed_copy_behind_all_of_them() -> None:
    """No two posts are equal, a changed one differs in one character or emoji, and is no other post."""
    posts = feed_of_posts(_posts(), 1)
    originals = [article for article in posts.articles if "~" not in article.id]
    copies = {article.id: article.body for article in posts.articles[len(originals) :]}
    bodies = {as_seen(article.body) for article in originals}
    assert posts.counts["ru"] + posts.counts["uk"] == 12
    assert posts.counts[EMOJI_LANG] > 30
    assert len(bodies) == len(originals) == len(copies) / 2
    changed = {as_seen(copies[f"{article.id}~changed"]) for article in originals}
    assert len(changed) == len(originals)
    assert not changed & bodies
    for article in originals:
        assert copies[f"{article.id}~verbatim"] == article.body
        if article.lang != EMOJI_LANG:
            assert 10 <= len(article.body) <= 30
            pairs = zip(article.body, copies[f"{article.id}~changed"], strict=True)
            assert sum(before != after for before, after in pairs) == 1
    assert posts == feed_of_posts(_posts(), 1)


@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_posts_are_counted_by_what_their_flags_name(tmp_path: Path, scheme: str) -> None:
    """Naming another post is no find; from the second scheme on every emoji post is found and no changed one."""
    posts = feed_of_posts(_posts(), 1)
    write_lines(tmp_path / "posts.jsonl", posts.articles)
    verdicts = judge_with_scheme(tmp_path / "posts.jsonl", scheme)
    found = {row["language"]: row for row in post_rows(posts, {scheme: verdicts})}
    for lang, count in posts.counts.items():
        counts = [found[lang][column] for column in ("posts", "verbatim found", "changed flagged", "other flags")]
        assert counts == [count, count, 0, 0]
    first, other, *_ = (article.id for article in posts.articles if article.lang == EMOJI_LANG)
    wrong = [Verdict(f"{first}~verbatim", "duplicate", other), Verdict(f"{first}~changed", "duplicate", first)]
    (row,) = (row for row in post_rows(posts, {"x": wrong}) if row["language"] == EMOJI_LANG)
    assert (row["verbatim found"], row["changed flagged"], row["other flags"]) == (0, 1, 1)
    assert len(set(EMOJI)) == len(EMOJI)


def _write_page(folder: Path, name: str, article: str, around: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "source.html").write_text(f"<html><body><nav>{around}</nav><p>{article}</p></body></html>")
    (folder / name / "expected.html").write_text(f"<div><p>{article}</p></div>" if article else "")


def test_pages_are_judged_against_the_text_of_their_article(tmp_path: Path) -> None:
    """A page with little around its article finds it, one with much does not; one without an article is left out."""
    folder = tmp_path / "test-pages"
    story, other = _words(11, 2_000), _words(12, 2_000)
    _write_page(folder, "clean", story, _words(13, 20))
    _write_page(folder, "crowded", other, _words(14, 4_000))
    _write_page(folder, "empty", "", _words(15, 400))
    app = typer.Typer()
    app.command()(web_pages.main)
    result = CliRunner().invoke(app, [str(folder), "--out", str(tmp_path), "--show", "5"])
    assert result.exit_code == 0, result.output
    assert "jieba-tfidf/2: crowded does not find its text" in result.output
    assert "jieba-tfidf/2: clean does not find its text" not in result.output
    lines = (tmp_path / "web_pages.jsonl").read_text().splitlines()
    assert len(lines) == len(SCHEMES) * len(web_pages.EXTRACTORS)
    assert '"pages":2,"find their text":1' in lines[1]


def test_pages_of_the_article_extraction_benchmark_are_read(tmp_path: Path) -> None:
    """Compressed pages and the texts of their articles; what is extracted is written as its own script reads it."""
    folder, output = tmp_path / "benchmark", tmp_path / "output"
    (folder / "html").mkdir(parents=True)
    output.mkdir()
    stories = {name: _words(seed, 2_000) for name, seed in (("b", 11), ("a", 12))}
    for name, story in stories.items():
        page = f"<html><body><nav>{_words(13, 20)}</nav><p>{story}</p></body></html>"
        (folder / "html" / f"{name}.html.gz").write_bytes(gzip.compress(page.encode()))
    truth = {name: {"articleBody": story, "url": "https://example.org"} for name, story in stories.items()}
    (folder / "ground-truth.json").write_text(json.dumps(truth))
    assert [page.name for page in web_pages.read_pages(folder)] == ["a", "b"]
    app = typer.Typer()
    app.command()(web_pages.main)
    result = CliRunner().invoke(app, [str(folder), "--out", str(tmp_path), "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert '"find their text":2,"even, odd":"1 + 1"' in (tmp_path / "web_pages.jsonl").read_text()
    written = json.loads((output / "dupwatch, article, fast.json").read_text())
    assert {name: page["articleBody"] for name, page in written.items()} == stories


def test_times_are_the_best_of_three_and_refused_pages_give_no_text() -> None:
    """The clock is read around each extraction."""
    pages = [web_pages.TestPage("a", "x", "text"), web_pages.TestPage("b", "deep", "text")]
    ticks = iter([0.0, 9.0, 10.0, 12.0, 20.0, 25.0, 30.0])

    def extract(markup: str) -> str:
        if markup == "deep":
            raise MarkupTooComplex
        return markup.upper()

    assert web_pages.extracted(pages, extract, lambda: next(ticks)) == (["X", ""], [2.0, 0.0], 1)


def test_a_page_finds_its_text_through_another_one() -> None:
    """The text was itself flagged as a duplicate of the one that the page names; another text does not count."""
    pages = [web_pages.TestPage(name, "", "") for name in ("a", "b", "c", "d")]
    verdicts = [
        *(Verdict(f"{name}~text", "unique") for name in ("a", "c", "d")),
        Verdict("b~text", "duplicate", "a~text"),
        Verdict("a", "duplicate", "a~text"),
        Verdict("b", "duplicate", "a~text"),
        Verdict("c", "duplicate", "a~text"),
        Verdict("d", "unique"),
    ]
    assert web_pages.found_their_text(pages, verdicts) == [True, True, False, False]
