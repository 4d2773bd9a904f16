"""The benchmark on public sets: readers of published layouts on small files of our own, counting, and the command."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.quality.feed import Article, write_lines
from benchmarks.quality.real import __main__ as command
from benchmarks.quality.real import detectors, published, retrieval
from benchmarks.quality.real.detectors import SIMHASH_AS_PUBLISHED, Judged, Peer, dupwatch, simhash_as_published
from benchmarks.quality.real.layout import LayoutError
from benchmarks.quality.real.sets import NAMES, SOURCES, read_sets
from benchmarks.quality.real.text_dedup import text_dedup
from benchmarks.quality.real.truth import (
    ComputedPairs,
    Counts,
    Flag,
    Groups,
    LabelledFrames,
    LabelledGroups,
    LabelledPairs,
    LabelledPosts,
    RealSet,
    SpamPairs,
    total,
)
from benchmarks.speed.codes import CodeModel

FERRY = (
    "The ferry between Nordhavn and the island of Lyø sails again from Monday on. Divers repaired both propellers "
    "during the weekend, and the harbour master checked the ramps. Tickets that were bought for the cancelled trips "
    "are valid until the end of the summer, the company said."
)
ORCHARD = (
    "Twelve orchards in the valley open their gates on the first Sunday in October. Visitors may pick apples and pears "
    "themselves, press juice, and taste cider from the barrel. The growers expect a good year after a dry spring and "
    "a mild summer without hail."
)
LIBRARY = "市图书馆新馆将于下月十五日开放，馆内设有三千个座位和一座面向河岸的儿童阅览室。读者凭旧证即可借书。"


def put(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def ced(folder: Path) -> None:
    """Three posts; the last in the order of names is the first in time."""
    for name, text, posted in (("1_b", LIBRARY, 30), ("2_a", f"转发：{LIBRARY}", 40), ("9_z", FERRY, 10)):
        put(
            folder / f"CED_Dataset/original-microblog/{name}.json",
            json.dumps({"text": text, "time": posted, "user": {}}),
        )


def lianbo(folder: Path) -> None:
    """Two evenings with the same item below different headlines."""
    for day in ("20260301", "20260302"):
        items = f"### 新馆开放\n\n<p><strong>本台消息</strong>：{LIBRARY}&nbsp;</p>\n\n[查看原文](https://news.example/{day})\n"
        page = (
            f"# 《新闻联播》 ({day})\n\n## 新闻摘要\n\n1.新馆开放；\n\n## 详细新闻\n\n{items}\n---\n\n(更新时间戳: 1)\n"
        )
        put(folder / f"xin-wen-lian-bo/news/{day}.md", page)


def sms(folder: Path) -> None:
    """One spam twice, and two other messages, one of them with the sign that ends a line for some readers."""
    spam = "spam\tWin a weekend on Lyø! Call 0800 and say FERRY before Friday."
    put(folder / "SMSSpamCollection", f"{spam}\nham\tSee you\u0085at eight\n{spam}\nham\tSee you at nine then\n")


def chains(folder: Path) -> None:
    """Three articles, of which two are one story; later dates first."""
    name = folder / "news_story_chains-2021-06/gedikli-business_energy_news_dataset-2021-06-29"
    texts = [("c", "2021-06-03", ORCHARD), ("b", "2021-06-02", f"{FERRY} It was late."), ("a", "2021-06-01", FERRY)]
    rows = "".join(f'"{url}","{day} 00:00:00","{text}"\n' for url, day, text in texts)
    put(name.with_name(f"{name.name}-article_texts.csv"), f'"url","date","text"\n{rows}')
    put(name.with_name(f"{name.name}.csv"), "\ufeffurl1;url2;relation\na;b;1\n")


def telegram(folder: Path) -> None:
    """Two pools of one language and one of another."""
    head = "INPUT:first_url\tINPUT:second_url\tINPUT:first_text\tINPUT:second_text\tGOLDEN:quality\n"
    pools = folder / "tgcontest/toloka/clustering_pairs"
    put(pools / "en_train_pool.tsv", f"{head}u1\tu2\t{FERRY}\t{FERRY} Again.\tOK\nu1\tu3\t{FERRY}\t{ORCHARD}\tBAD\n")
    put(pools / "en_exam_pool.tsv", f"{head}u3\tu4\t{ORCHARD}\t{ORCHARD} Soon.\tOK\n")
    put(pools / "ru_train_pool.tsv", f"{head}r1\tr2\tПаром снова ходит.\tПаром ходит снова.\tOK\n")


def clough(folder: Path) -> None:
    """One task with a copied and an own answer."""
    corpus = folder / "corpus-20090418"
    put(corpus / "orig_taska.txt", FERRY)
    put(corpus / "g0pA_taska.txt", FERRY)
    put(corpus / "g0pB_taska.txt", ORCHARD)
    rows = "g0pA_taska.txt,a,cut\ng0pB_taska.txt,a,non\norig_taska.txt,a,orig\n"
    put(corpus / "file_information.csv", f"File,Task,Category\n{rows}")


def paws_x(folder: Path) -> None:
    """A pair of paraphrases, one that is none, one without a label, and a quotation mark that closes nothing."""
    head = "id\tsentence1\tsentence2\tlabel\n"
    rows = f'1\t"{FERRY}\t{FERRY}\t1\n2\t{FERRY}\t{ORCHARD}\t0\n3\tNS\tNS\t-1\n'
    put(folder / "x-final/en/test_2k.tsv", head + rows)


def sohu(folder: Path) -> None:
    """A pair for each task."""
    for kind in "AB":
        for task in ("短短匹配", "短长匹配", "长长匹配"):
            line = json.dumps({"source": LIBRARY, "target": LIBRARY, f"label{kind}": "1"}, ensure_ascii=False)
            put(folder / f"sohu2021_open_data_clean/{task}{kind}类/valid.txt", f"{line}\n")


def core(folder: Path) -> None:
    """Two papers that are copies, as numbers in a list and as text, and another one without an abstract."""
    papers = [
        {"core_id": "11", "processed_title": "ferries", "processed_abstract": FERRY, "labelled_duplicates": [12]},
        {"core_id": 12, "processed_title": "ferries", "processed_abstract": FERRY, "labelled_duplicates": "['11']"},
        {"core_id": "13", "processed_title": "orchards", "processed_abstract": None, "labelled_duplicates": []},
    ]
    put(folder / "core_2020-05-10_deduplication/part.json", "".join(json.dumps(paper) + "\n" for paper in papers))


SMALL: dict[str, Callable[[Path], None]] = {
    "weibo": ced,
    "lianbo": lianbo,
    "sms": sms,
    "chains": chains,
    "telegram": telegram,
    "clough": clough,
    "paws-x": paws_x,
    "sohu": sohu,
    "core": core,
}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command run within the test: it neither starts again nor moves to one core."""
    for module in (command, retrieval):
        monkeypatch.setattr(module, "single_threaded", lambda: None)
        monkeypatch.setattr(module, "keep_to_one_core", lambda: None)


def read(name: str, folder: Path) -> list[RealSet]:
    """Write a small set as its publisher lays it out, and read it."""
    SMALL[name](folder)
    return read_sets(folder, (name,)).sets


def first(name: str, folder: Path) -> RealSet:
    """Return the only set of a source."""
    (real,) = read(name, folder)
    return real


def test_every_source_has_a_small_set() -> None:
    """So that no reader is left out."""
    assert tuple(SMALL) == NAMES


def test_posts_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    """Their truth is computed: the forwarded one is nearly the same."""
    real = first("weibo", tmp_path)
    assert [article.id for article in real.articles] == ["9_z", "1_b", "2_a"]
    assert real.truth.count([Flag("1_b", "2_a")]) == Counts(1, 1, 0, 1, 1)
    assert real.truth.count([Flag("9_z", "1_b")]) == Counts(1, 0, 1, 0, 0)


def test_items_of_the_evening_news_are_read_without_markup(tmp_path: Path) -> None:
    """Headlines, links and the time of the page are no part of an item."""
    real = first("lianbo", tmp_path)
    assert [article.body for article in real.articles] == [f"本台消息 ：{LIBRARY}"] * 2
    assert {article.title for article in real.articles} == {"新馆开放"}


def test_messages_are_read_line_by_line(tmp_path: Path) -> None:
    """Only a line feed ends a message."""
    real = first("sms", tmp_path)
    assert [article.id for article in real.articles] == ["s0001-spam", "s0002-ham", "s0003-spam", "s0004-ham"]
    assert real.truth.count([Flag("s0001-spam", "s0003-spam")]) == Counts(1, 1, 0, 1, 1)
    assert real.truth.count([Flag("s0002-ham", "s0003-spam")]).wrong == 1


def test_stories_are_read_in_the_order_of_dates(tmp_path: Path) -> None:
    """Pairs that are not listed are not the same story."""
    real = first("chains", tmp_path)
    assert [article.id for article in real.articles] == ["a", "b", "c"]
    assert real.truth.count([Flag("a", "b"), Flag("b", "c")]) == Counts(2, 1, 1, 1, 1)


def test_pools_of_one_language_are_one_set(tmp_path: Path) -> None:
    """A text that comes in several pairs is there once; unlabelled pairs do not count."""
    english, russian = read("telegram", tmp_path)
    assert (english.name, russian.name) == ("telegram en", "telegram ru")
    assert sorted(article.id for article in english.articles) == ["u1", "u2", "u3", "u4"]
    flags = [Flag("u1", "u2"), Flag("u1", "u3"), Flag("u2", "u4")]
    assert english.truth.count(flags) == Counts(3, 1, 1, 1, 2)


def test_answers_are_paired_with_the_source_of_their_task(tmp_path: Path) -> None:
    """Copied ones count as the same, own ones do not."""
    real = first("clough", tmp_path)
    assert real.in_pairs
    assert [len(feed) for feed in real.feeds()] == [2, 2]
    flags = dupwatch("news", 0)(real).flags
    assert flags == [Flag("g0pA_taska.txt/orig_taska.txt", "g0pA_taska.txt/g0pA_taska.txt")]
    assert real.truth.count(flags) == Counts(1, 1, 0, 1, 1)


@pytest.mark.parametrize(("name", "pairs", "same"), [("paws-x", [2], [1]), ("sohu", [3, 3], [3, 3])])
def test_sentence_pairs_are_judged_one_by_one(name: str, pairs: list[int], same: list[int], tmp_path: Path) -> None:
    """A sentence that other pairs have as well does not flag them. A pair without a label is left out."""
    sets = read(name, tmp_path)
    assert [len(list(real.feeds())) for real in sets] == pairs
    for real, count in zip(sets, same, strict=True):
        assert real.truth.count(dupwatch("news", 0)(real).flags) == Counts(count, count, 0, count, count)


def test_papers_are_grouped_by_their_labels(tmp_path: Path) -> None:
    """Whether the ids are numbers, a list, or a list that was written as text."""
    real = first("core", tmp_path)
    assert [article.id for article in real.articles] == ["11", "12", "13"]
    assert real.truth.count([Flag("11", "12")]) == Counts(1, 1, 0, 1, 1)
    assert real.truth.count([Flag("11", "13")]) == Counts(1, 0, 1, 0, 1)


POOLS = "tgcontest/toloka/clustering_pairs"
ANSWERS = "corpus-20090418/file_information.csv"
PAPERS = "core_2020-05-10_deduplication"


@pytest.mark.parametrize(
    ("name", "path", "content", "reason"),
    [
        ("weibo", "CED_Dataset/readme", "", "original-microblog is missing"),
        ("weibo", "CED_Dataset/original-microblog/1.json", "{}", "1.json is not a post with text and time"),
        ("lianbo", "xin-wen-lian-bo/news/today.md", "### a\nb", "today.md should be named by its date"),
        ("lianbo", "xin-wen-lian-bo/news/20260101.md", "a", "has no item below a heading"),
        ("sms", "SMSSpamCollection", "ham;hello", "line 1 should begin with ham or spam and a tab"),
        ("chains", "news_story_chains-2021-06/readme", "", "article_texts.csv is missing"),
        ("telegram", f"{POOLS}/en_pool.tsv", "a\tb\n", "en_pool.tsv has no column INPUT:first_url"),
        ("telegram", f"{POOLS}/en.tsv", "", "has no \\*_pool.tsv"),
        ("clough", ANSWERS, "File,Category\ng0pA_taska.txt,cut\n", "orig_taska.txt is missing"),
        ("clough", ANSWERS, "File,Category\nessay.txt,cut\n", "not essay.txt, cut"),
        ("clough", ANSWERS, "File,Category\ng0pA_taska.txt\n", "row 2 has fewer columns"),
        ("paws-x", "x-final/readme", "", "has no LANG/test_2k.tsv"),
        ("paws-x", "x-final/en/test_2k.tsv", "id\tsentence1\tsentence2\tlabel\n", "has no pair with a label"),
        ("sohu", "sohu2021_open_data_clean/短短匹配A类/valid.txt", "{}\n", "should have source, target and labelA"),
        ("core", f"{PAPERS}/a.json", "[]\n", "line 1 is not a paper with a core_id"),
        ("core", f"{PAPERS}/readme", "", "has no \\*.json"),
        ("core", f"{PAPERS}/a.json", "", f"{PAPERS} has no texts"),
        ("core", f"{PAPERS}/a.json", '{"core_id": 7}\n{"core_id": "7"}\n', f"{PAPERS} has the id 7 twice"),
        ("sms", "SMSSpamCollection/readme", "", "SMSSpamCollection cannot be read: .*directory"),
    ],
)  # fmt: skip
def test_another_layout_is_refused_by_name(name: str, path: str, content: str, reason: str, tmp_path: Path) -> None:
    """The error says which file is wrong and what it should have."""
    put(tmp_path / path, content)
    with pytest.raises(LayoutError, match=reason):
        read_sets(tmp_path, (name,))


def test_files_in_another_encoding_are_refused(tmp_path: Path) -> None:
    """By the name of their set."""
    (tmp_path / "SMSSpamCollection").write_bytes("ham\tfünf".encode("latin-1"))
    with pytest.raises(LayoutError, match="SMSSpamCollection has a file that is not UTF-8"):
        read_sets(tmp_path, ("sms",))


def test_unknown_articles_of_stories_are_refused(tmp_path: Path) -> None:
    """A pair has to name articles whose texts are there."""
    chains(tmp_path)
    table = next((tmp_path / "news_story_chains-2021-06").glob("*29.csv"))
    table.write_text("url1;url2;relation\na;z;1\n")
    with pytest.raises(LayoutError, match="names z, which"):
        read_sets(tmp_path, ("chains",))


def test_labelled_sets_come_before_published_ones(tmp_path: Path) -> None:
    """And a part of them that is missing or wrong is named."""
    ced(tmp_path)
    write_lines(tmp_path / "weibo.jsonl.gz", [{"id": "a", "body": FERRY}, {"id": "b", "body": FERRY}])
    with pytest.raises(LayoutError, match=r"weibo-labels.jsonl is missing"):
        read_sets(tmp_path, ("weibo",))
    write_lines(tmp_path / "weibo-labels.jsonl", [{"a": "a", "b": "c", "label": "S"}])
    with pytest.raises(LayoutError, match=r"weibo-labels.jsonl names c, which is not in the feed"):
        read_sets(tmp_path, ("weibo",))
    write_lines(tmp_path / "weibo-labels.jsonl", [{"a": "a", "b": "b", "label": "S"}])
    (real,) = read_sets(tmp_path, ("weibo",)).sets
    assert real.truth.count([Flag("a", "b")]) == Counts(1, 1, 0, 1, 1)
    write_lines(tmp_path / "weibo.jsonl.gz", [{"id": "a"}])
    with pytest.raises(LayoutError, match=r"weibo.jsonl.gz cannot be read: .*line 1.*body"):
        read_sets(tmp_path, ("weibo",))


def test_labels_say_what_a_flag_on_a_post_is() -> None:
    """Same posts form groups; variants are right and counted, doubtful ones count nowhere, the rest is wrong."""
    labels = {("a", "b"): "S", ("b", "c"): "S", ("a", "d"): "V", ("a", "e"): "D", ("a", "f"): "N"}
    truth = LabelledPosts("abcdefg", labels)
    flags = [Flag("a", later) for later in "cdefg"]
    assert truth.count(flags) == Counts(flags=5, right=2, wrong=2, found=1, expected=2, variants=1)
    assert truth.count([Flag("d", "c")]).variants == 1


def test_labels_of_frames_call_other_facts_wrong() -> None:
    """In either order; there is no recall, and so no F1."""
    counts = LabelledFrames({("a", "b"): "E", ("a", "c"): "F"}).count([Flag("b", "a"), Flag("a", "c"), Flag("b", "c")])
    assert counts == Counts(3, 1, 2, 0, 0)
    assert (counts.precision, counts.recall, counts.f1) == (1 / 3, None, None)


def test_rates_follow_from_counts() -> None:
    """Runs are added up; nothing found is an F1 of 0."""
    assert total([Counts(4, 3, 1, 3, 6), Counts(2, 1, 1, 3, 6)]) == Counts(6, 4, 2, 6, 12)
    assert Counts(4, 3, 1, 3, 6).f1 == pytest.approx(0.6)
    assert Counts(0, 0, 0, 0, 6).f1 == 0
    assert SpamPairs(frozenset(), {("a", "b"): 0.5}).count([Flag("a", "b")]) == Counts(1, 1, 0, 0, 0)
    assert LabelledPairs(frozenset({frozenset("ab")}), frozenset()).count([Flag("a", "c")]) == Counts(1, 0, 0, 0, 1)
    assert LabelledGroups("abc", Groups([("a", "c")])).count([]) == Counts(0, 0, 0, 0, 1)
    assert ComputedPairs("ab", []).count([]) == Counts(0, 0, 0, 0, 0)


def test_simhash_as_published_is_plain() -> None:
    """It compares fingerprints alone, so that one of the best thresholds finds more."""
    articles = [Article(id=str(place), body=body) for place, body in enumerate((FERRY, FERRY, ORCHARD))]
    judged = simhash_as_published(RealSet("own", articles, LabelledPairs(frozenset())), 3)
    assert judged.flags == [Flag("0", "1")]
    assert judged.seconds > 0


def test_an_index_of_a_peer_is_new_for_each_pair() -> None:
    """Whatever threshold it has."""

    class Equal:
        def __init__(self, _: float) -> None:
            self.kept: dict[str, str] = {}

        def named(self, article_id: str, text: str, /) -> str | None:
            return self.kept.setdefault(text, article_id) if text in self.kept else self.kept.update({text: article_id})

    articles = [Article(id=name, body=body) for name, body in zip("abcd", "xxyx", strict=True)]
    judge = detectors._one_by_one(Equal)
    truth = LabelledPairs(frozenset())
    assert judge(RealSet("pairs", articles, truth, in_pairs=True), 1).flags == [Flag("a", "b")]
    assert judge(RealSet("feed", articles, truth), 1).flags == [Flag("a", "b"), Flag("a", "d")]


def test_the_best_threshold_is_marked_and_left_out_where_the_published_one_is() -> None:
    """A peer is shown as its publisher sets it, and once more if another threshold has a higher F1."""
    real = RealSet("own", [], LabelledPairs(frozenset({frozenset("ab"), frozenset("cd")})))

    def judge(_: RealSet, threshold: float) -> Judged:
        return Judged([Flag("a", "b"), Flag("c", "d")][: int(threshold)], 1e-6)

    shown = [row["setting"] for row in command.rows_of_peer(real, Peer("peer", "bits", 1, (0, 2), judge))]
    assert shown == ["1 bits", "best: 2 bits"]
    assert len(list(command.rows_of_peer(real, Peer("peer", "bits", 2, (0, 1), judge)))) == 1


def test_the_python_of_text_dedup_has_to_have_it() -> None:
    """The command checks it before it measures anything."""
    with pytest.raises(ValueError, match=r"has text-dedup not installed; this benchmark runs text-dedup 0\.4\.0"):
        text_dedup(Path(sys.executable))


@pytest.mark.usefixtures("in_this_process")
def test_the_command_scores_what_is_there_and_names_the_rest(tmp_path: Path) -> None:
    """One table; sets and detectors that are not there are counted and named."""
    chains(tmp_path)
    clough(tmp_path)
    ran = CliRunner().invoke(
        command.app, [str(tmp_path), "--secrets", "1", "--out", str(tmp_path / "out")], env={"COLUMNS": "400"}
    )
    assert ran.exit_code == 0, ran.output
    said = " ".join(ran.output.split())
    assert "2 sets; 7 of 9 sources skipped" in said
    assert "text-dedup" in said
    assert f"Skipped core: {tmp_path}/core_2020-05-10_deduplication is not there. Get it at" in said
    lines = [json.loads(line) for line in (tmp_path / "out/real.jsonl").read_text().splitlines()]
    rows = {(line["row"]["set"], line["row"]["detector"]): line["row"] for line in lines}
    assert {name for name, _ in rows} == {"chains", "clough-stevenson"}
    assert {detector for _, detector in rows} >= {"dupwatch, news", "dupwatch, posts", SIMHASH_AS_PUBLISHED}
    assert rows["chains", "dupwatch, posts"]["F1"] == "1.000"
    assert rows["chains", "dupwatch, posts"]["wrong"] == 0


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "has none of the sets. --help says how to get each"),
        (["--set", "weebo"], "weebo is not a set; choose from weibo"),
        (["--set", "sms"], "line 1 should begin with ham or spam"),
        (["--text-dedup", sys.executable], "has text-dedup not installed"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], reason: str, tmp_path: Path) -> None:
    """And ends with 2."""
    if "sms" in arguments:
        put(tmp_path / "SMSSpamCollection", "hello")
    ran = CliRunner().invoke(command.app, [str(tmp_path), *arguments], env={"COLUMNS": "400"})
    assert ran.exit_code == 2
    assert reason in ran.output


def test_the_help_says_how_to_get_every_set() -> None:
    """Publisher, terms, address and place."""
    ran = CliRunner().invoke(command.app, ["--help"], env={"COLUMNS": "400"})
    for source in SOURCES:
        assert f"{source.name}: {source.title}. Terms: {source.terms}. Get it from {source.where}." in ran.output
        assert source.place in ran.output


def test_the_page_says_how_to_get_every_set() -> None:
    """The same as the help."""
    page = Path(command.__file__).with_name("README.md").read_text(encoding="utf-8")
    for source in SOURCES:
        row = (source.name, source.title, source.terms, source.where, source.files)
        assert f"| {' | '.join(row)} |\n" in page


def test_ways_of_retrieval_find_what_they_promise() -> None:
    """Four blocks within 3 bits, with neighbours 7; 16x28 within 3, with neighbours 4; brute force and lists all."""
    rng = np.random.default_rng(3)
    model = CodeModel.fitted(rng.integers(0, 1 << 63, 300, dtype=np.uint64), classes=8)
    stored = model.sample(2_000, rng)
    queries = retrieval.draw_queries(stored, model, 128, rng)
    rows = {row["way"]: row for row in retrieval.rows(list(retrieval.ways(stored)), queries, rounds=1)}
    exact = {
        retrieval.BRUTE_FORCE: 7,
        retrieval.PER_BIT: 7,
        retrieval.FOUR_BLOCKS: 3,
        retrieval.FOUR_NEIGHBOURS: 7,
        retrieval.SIXTEEN: 3,
        retrieval.SIXTEEN_NEIGHBOURS: 4,
    }
    assert rows.keys() == exact.keys()
    for way, bits in exact.items():
        recalls = {rows[way][f"recall, {within} bits"] for within in retrieval.DISTANCES if within <= bits}
        assert recalls == {"1.000"}, way
    assert rows[retrieval.BRUTE_FORCE]["postings"] == 2_000
    assert rows[retrieval.SIXTEEN]["recall, 7 bits"] < "1.000"
    assert rows[retrieval.FOUR_BLOCKS]["postings"] < rows[retrieval.FOUR_NEIGHBOURS]["postings"] < 2_000


@pytest.mark.usefixtures("in_this_process")
def test_retrieval_is_measured_on_the_texts_of_the_sets(tmp_path: Path) -> None:
    """A folder without sets is refused."""
    chains(tmp_path)
    retrieval.main(tmp_path, fingerprints=200, queries=16, out=tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "out/retrieval.jsonl").read_text().splitlines()]
    assert {line["arguments"]["texts"] for line in lines} == {3}
    with pytest.raises(Exception, match="has none of the sets"):
        retrieval.main(tmp_path / "out", fingerprints=200, queries=16, out=tmp_path / "out")


def test_messages_have_similarities_of_five_characters(tmp_path: Path) -> None:
    """As the labelled set has them."""
    assert published.MESSAGE_SHINGLE_CHARS == 5
    truth = first("sms", tmp_path).truth
    assert isinstance(truth, SpamPairs)
    assert truth.similarities["s0001-spam", "s0003-spam"] == 1
