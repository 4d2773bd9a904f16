"""Readers of sets as their publishers lay them out.

Posts, evening news and messages have no labels there: their truth is the Jaccard similarity of all pairs.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.quality.feed import Article
from benchmarks.quality.pairs import similar_pairs
from benchmarks.quality.real.layout import LayoutError, required, rows_of, without_markup
from benchmarks.quality.real.truth import (
    SPAM_RIGHT_MIN,
    ComputedPairs,
    Groups,
    LabelledGroups,
    LabelledPairs,
    RealSet,
    SpamPairs,
)

MESSAGE_SHINGLE_CHARS: Final = 5
_NEWS_TITLE: Final = "### "
_NEWS_LINK: Final = "[查看原文]"
_NEWS_FOOTER: Final = ("---", "(更新时间戳")
_DATE: Final = re.compile(r"\d{8}")
_NUMBER: Final = re.compile(r"\d+")
_CLOUGH_NAME: Final = re.compile(r"(?:g\dp[A-Z]|orig)_task[a-e]\.txt")
_PLAGIARISED: Final = frozenset({"cut", "light", "heavy"})
_NOT_PLAGIARISED: Final = "non"
_QUALITIES: Final = {"OK": True, "BAD": False}
_SOHU_TASKS: Final = ("短短匹配", "短长匹配", "长长匹配")
_SOHU_KINDS: Final = {"A": "same topic", "B": "same event"}
_PAWS_LABELS: Final = {"1": True, "0": False}


class Post(msgspec.Struct, frozen=True):
    """What is read of a file of CED."""

    text: str
    time: int


class Paper(msgspec.Struct, frozen=True):
    """What is read of a line of CORE's set. The duplicates are a list of ids, or one written as text."""

    core_id: str | int
    processed_title: str | None = None
    processed_abstract: str | None = None
    labelled_duplicates: list[str | int] | str | None = None


def ced_posts(folder: Path) -> Iterator[RealSet]:
    """Read ``original-microblog`` of CED, in the order of time."""
    decoder = msgspec.json.Decoder(Post)
    found = []
    for path in _files(required(folder / "original-microblog"), "*.json"):
        try:
            found.append((decoder.decode(path.read_bytes()), path.stem))
        except msgspec.DecodeError as error:
            raise LayoutError(f"{path} is not a post with text and time: {error}") from error
    found.sort(key=lambda post: (post[0].time, post[1]))
    articles = [Article(id=name, body=post.text, lang="zh") for post, name in found]
    yield computed("weibo, without labels", articles)


def evening_news(folder: Path) -> Iterator[RealSet]:
    """Read the items of ``news/YYYYMMDD.md``; each stands below a heading of the third level."""
    articles = [item for path in _files(required(folder / "news"), "*.md") for item in news_items(path)]
    if not articles:
        raise LayoutError(f"{folder / 'news'} has no item below a heading that begins with {_NEWS_TITLE!r}")
    yield computed("lianbo, without labels", articles)


def news_items(path: Path) -> Iterator[Article]:
    """Yield the items of an evening, without the headlines that open the page."""
    if not _DATE.fullmatch(path.stem):
        raise LayoutError(f"{path} should be named by its date, as 20260131.md")
    title, lines = "", list[str]()
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), _NEWS_TITLE]):
        if not line.startswith(_NEWS_TITLE):
            if title and not line.startswith((_NEWS_LINK, *_NEWS_FOOTER)):
                lines.append(line)
            continue
        body = without_markup("\n".join(lines))
        if title and body:
            yield Article(id=f"{path.stem}-{number}", body=body, lang="zh", title=title)
        title, lines = line.removeprefix(_NEWS_TITLE).strip(), []


def messages(file: Path) -> Iterator[RealSet]:
    """Read ``SMSSpamCollection``: ``ham`` or ``spam``, a tab, and the message."""
    articles = []
    for number, line in enumerate(filter(None, file.read_text(encoding="utf-8").split("\n")), 1):
        kind, tab, body = line.partition("\t")
        if kind not in {"ham", "spam"} or not tab:
            raise LayoutError(f"{file}, line {number} should begin with ham or spam and a tab")
        articles.append(Article(id=f"s{number:04}-{kind}", body=body))
    spam = frozenset(article.id for article in articles if article.id.endswith("spam"))
    pairs = similar_pairs(articles, SPAM_RIGHT_MIN, shingle_chars=MESSAGE_SHINGLE_CHARS)
    similarities = {(pair.earlier, pair.later): pair.jaccard for pair in pairs}
    yield RealSet("sms", articles, SpamPairs(spam, similarities))


def stories(folder: Path) -> Iterator[RealSet]:
    """Read the two tables of news story chains, in the order of dates."""
    name = "gedikli-business_energy_news_dataset-2021-06-29"
    texts = sorted(
        rows_of(folder / f"{name}-article_texts.csv", ("url", "date", "text"), ","), key=lambda row: row["date"]
    )
    articles = [Article(id=row["url"], body=row["text"], lang="en") for row in texts]
    pairs = list(rows_of(folder / f"{name}.csv", ("url1", "url2", "relation"), ";"))
    known = {article.id for article in articles}
    unknown = next((url for row in pairs for url in (row["url1"], row["url2"]) if url not in known), None)
    if unknown is not None:
        raise LayoutError(f"{folder / name}.csv names {unknown}, which {name}-article_texts.csv does not have")
    same = frozenset(frozenset((row["url1"], row["url2"])) for row in pairs if row["relation"] == "1")
    yield RealSet("chains", articles, LabelledPairs(same))


def channels(folder: Path) -> Iterator[RealSet]:
    """Read the labelled pairs of tgcontest, by language; each text once, in the order of the files."""
    columns = [f"INPUT:{side}_{name}" for side in ("first", "second") for name in ("url", "text")]
    pools = _files(required(folder / "toloka" / "clustering_pairs"), "*_pool.tsv")
    for lang in sorted({path.name[:2] for path in pools}):
        texts: dict[str, str] = {}
        labels: dict[frozenset[str], bool] = {}
        for path in (path for path in pools if path.name.startswith(f"{lang}_")):
            for row in rows_of(path, [*columns, "GOLDEN:quality"], "\t"):
                one, other = row[columns[0]], row[columns[2]]
                texts.setdefault(one, row[columns[1]])
                texts.setdefault(other, row[columns[3]])
                if row["GOLDEN:quality"] in _QUALITIES and one != other:
                    labels[frozenset((one, other))] = _QUALITIES[row["GOLDEN:quality"]]
        articles = [Article(id=url, body=text, lang=lang) for url, text in texts.items()]
        yield RealSet(f"telegram {lang}", articles, _truth_of(labels))


def short_answers(folder: Path) -> Iterator[RealSet]:
    """Read Clough and Stevenson's answers, each in a pair with the source of its task.

    ``file_information.csv`` has the columns *File* and *Category* of the corpus's table. Copied, lightly and heavily
    revised answers count as the same.
    """
    table = folder / "file_information.csv"
    texts, labels = list[Article](), dict[frozenset[str], bool]()
    for row in rows_of(table, ("File", "Category"), ","):
        name, category = row["File"].strip(), row["Category"].strip()
        if name.startswith("orig"):
            continue
        if not _CLOUGH_NAME.fullmatch(name) or category not in _PLAGIARISED | {_NOT_PLAGIARISED}:
            raise LayoutError(
                f"{table} should have a name such as g0pA_taska.txt and a category, not {name}, {category}"
            )
        source = f"orig_{name.partition('_')[2]}"
        pair = [Article(id=f"{name}/{part}", body=_text_of(folder / part), lang="en") for part in (source, name)]
        texts += pair
        labels[frozenset(article.id for article in pair)] = category in _PLAGIARISED
    yield RealSet("clough-stevenson", texts, _truth_of(labels), in_pairs=True)


def paraphrases(folder: Path) -> Iterator[RealSet]:
    """Read ``LANG/test_2k.tsv`` of PAWS-X, a set for each language."""
    found = sorted(folder.glob("*/test_2k.tsv"))
    if not found:
        raise LayoutError(f"{folder} has no LANG/test_2k.tsv")
    for path in found:
        rows = rows_of(path, ("id", "sentence1", "sentence2", "label"), "\t", quoted=False)
        pairs = [(row["sentence1"], row["sentence2"], row["label"]) for row in rows]
        yield paired(f"paws-x {path.parent.name}", path.parent.name, pairs, path)


def sohu(folder: Path) -> Iterator[RealSet]:
    """Read ``valid.txt`` of the six tasks of Sohu 2021: a set of the three with label A, and one of those with B."""
    for kind, meaning in _SOHU_KINDS.items():
        pairs = chain.from_iterable(_sohu_rows(folder / f"{task}{kind}类" / "valid.txt", kind) for task in _SOHU_TASKS)
        yield paired(f"sohu {kind} ({meaning})", "zh", list(pairs), folder)


def papers(folder: Path) -> Iterator[RealSet]:
    """Read the JSON lines of CORE's set: title and abstract of each paper."""
    decoder = msgspec.json.Decoder(Paper)
    articles, joined = list[Article](), list[tuple[str, str]]()
    for path in _files(folder, "*.json*"):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            try:
                paper = decoder.decode(line)
            except msgspec.DecodeError as error:
                raise LayoutError(f"{path}, line {number} is not a paper with a core_id: {error}") from error
            name = str(paper.core_id)
            body = "\n".join(filter(None, (paper.processed_title, paper.processed_abstract)))
            articles.append(Article(id=name, body=body, lang="en"))
            copies = paper.labelled_duplicates or ()
            joined += [(name, str(copy)) for copy in (_NUMBER.findall(copies) if isinstance(copies, str) else copies)]
    yield RealSet("core", articles, LabelledGroups([article.id for article in articles], Groups(joined)))


def computed(name: str, articles: Sequence[Article]) -> RealSet:
    """Return a set whose truth is computed from all pairs."""
    return RealSet(name, articles, ComputedPairs([article.id for article in articles], similar_pairs(articles)))


def paired(name: str, lang: str, pairs: Sequence[tuple[str, str, str]], path: Path) -> RealSet:
    """Return a set of pairs with a label, 1 for the same and 0 for not; pairs with another label are left out."""
    texts, labels = list[Article](), dict[frozenset[str], bool]()
    for number, (one, other, label) in enumerate(pairs):
        if label not in _PAWS_LABELS:
            continue
        ids = f"{number}-a", f"{number}-b"
        texts += [Article(id=text_id, body=body, lang=lang) for text_id, body in zip(ids, (one, other), strict=True)]
        labels[frozenset(ids)] = _PAWS_LABELS[label]
    if not texts:
        raise LayoutError(f"{path} has no pair with a label of 0 or 1")
    return RealSet(name, texts, _truth_of(labels), in_pairs=True)


def _truth_of(labels: dict[frozenset[str], bool]) -> LabelledPairs:
    same, different = (frozenset(pair for pair, label in labels.items() if label is kind) for kind in (True, False))
    return LabelledPairs(same, different)


def _sohu_rows(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(required(path).read_bytes().splitlines(), 1):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
            yield str(row["source"]), str(row["target"]), str(row[f"label{kind}"])
        except (msgspec.DecodeError, KeyError) as error:
            raise LayoutError(f"{path}, line {number} should have source, target and label{kind}: {error}") from error


def _files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if not found:
        raise LayoutError(f"{folder} has no {pattern}")
    return found


def _text_of(path: Path) -> str:
    # The corpus has Windows' quotation marks.
    return required(path).read_bytes().decode("utf-8", errors="replace")
