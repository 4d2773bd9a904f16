"""The public sets: how to get each, where its files have to be, and what reads them."""

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.quality.real import labelled, published
from benchmarks.quality.real.layout import LayoutError
from benchmarks.quality.real.truth import RealSet


class Source(NamedTuple):
    """A public set: its terms, where to find it, the file or folder that holds it in DIR, and what is read there."""

    name: str
    title: str
    terms: str
    where: str
    place: str
    files: str
    read: Callable[[Path], Iterator[RealSet]]


SOURCES: Final = (
    Source(
        "weibo",
        "Weibo posts of the CED corpus, Tsinghua University",
        "no licence stated; cite Song et al., CED, 2018",
        "github.com/thunlp/CED_Dataset",
        "CED_Dataset",
        "CED_Dataset/original-microblog/*.json",
        published.ced_posts,
    ),
    Source(
        "lianbo",
        "Xinwen Lianbo, the evening news of CCTV, collected by DuckBurnIncense",
        "MIT for the collection; the texts are the broadcaster's",
        "github.com/DuckBurnIncense/xin-wen-lian-bo",
        "xin-wen-lian-bo",
        "xin-wen-lian-bo/news/YYYYMMDD.md",
        published.evening_news,
    ),
    Source(
        "sms",
        "SMS Spam Collection, Almeida and Gómez Hidalgo, UCI",
        "CC BY 4.0",
        "archive.ics.uci.edu/dataset/228",
        "SMSSpamCollection",
        "SMSSpamCollection",
        published.messages,
    ),
    Source(
        "chains",
        "News story chains, Gedikli, Stockem Novo and Jannach",
        "CC BY-NC 4.0",
        "github.com/fatih-gedikli/news_story_chains-2021-06",
        "news_story_chains-2021-06",
        "the two files news_story_chains-2021-06/gedikli-*.csv",
        published.stories,
    ),
    Source(
        "telegram",
        "Telegram pairs of tgcontest, Gusev and others",
        "Apache-2.0",
        "github.com/IlyaGusev/tgcontest",
        "tgcontest",
        "tgcontest/toloka/clustering_pairs/*_pool.tsv",
        published.channels,
    ),
    Source(
        "clough",
        "A Corpus of Plagiarised Short Answers, Clough and Stevenson, Sheffield",
        "freely available; cite Clough and Stevenson, 2011",
        "ir.shef.ac.uk/cloughie/resources/plagiarism_corpus.html",
        "corpus-20090418",
        "corpus-20090418/*.txt and file_information.csv: the corpus's table, with the columns File and Category",
        published.short_answers,
    ),
    Source(
        "paws-x",
        "PAWS-X, Google",
        "free for any purpose; naming Google as the source is appreciated",
        "github.com/google-research-datasets/paws/tree/master/pawsx",
        "x-final",
        "x-final/LANGUAGE/test_2k.tsv",
        published.paraphrases,
    ),
    Source(
        "sohu",
        "Sohu 2021 campus text matching",
        "the competition's terms; needs an account",
        "www.biendata.xyz/competition/sohu_2021/data",
        "sohu2021_open_data_clean",
        "valid.txt in the folders 短短匹配A类, 短短匹配B类, 短长匹配A类, 短长匹配B类, 长长匹配A类 and 长长匹配B类 "
        "of sohu2021_open_data_clean",
        published.sohu,
    ),
    Source(
        "core",
        "CORE deduplication 2020, The Open University",
        "MIT according to its data card",
        "core.ac.uk/documentation/dataset",
        "core_2020-05-10_deduplication",
        "core_2020-05-10_deduplication/*.json with a paper on each line: core_id, processed_title, processed_abstract, "
        "labelled_duplicates",
        published.papers,
    ),
)
NAMES: Final = tuple(source.name for source in SOURCES)


class Found(NamedTuple):
    """The sets that are there, and the sources of those that are not."""

    sets: list[RealSet]
    missing: list[Source]


def read_sets(folder: Path, names: tuple[str, ...] = NAMES) -> Found:
    """Read the sets that the folder has, the labelled form of one before the published one.

    Raises ``LayoutError`` if a set is there in another layout.
    """
    found, missing = list[RealSet](), list[Source]()
    for source in SOURCES:
        if source.name not in names:
            continue
        if (folder / f"{source.name}.jsonl.gz").exists() and source.name in labelled.READERS:
            found += _checked(labelled.READERS[source.name], folder)
        elif (folder / source.place).exists():
            found += _checked(source.read, folder / source.place)
        else:
            missing.append(source)
    return Found(found, missing)


def _checked(read: Callable[[Path], Iterator[RealSet]], path: Path) -> list[RealSet]:
    """Read sets. Raises ``LayoutError`` also for a file that cannot be read, and for a set that has no texts."""
    try:
        sets = list(read(path))
    except UnicodeDecodeError as error:
        raise LayoutError(f"{path} has a file that is not UTF-8: {error}") from error
    except (OSError, csv.Error) as error:
        raise LayoutError(f"{path} cannot be read: {error}") from error
    for real in sets:
        names = Counter(article.id for article in real.articles)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise LayoutError(f"{path} has the id {twice} twice")
        if not names:
            raise LayoutError(f"{path} has no texts")
    return sets


def how_to_get() -> str:
    """Return a paragraph for each set: who publishes it, its terms, its address, and its place in the folder."""
    return "\n\n".join(
        f"{source.name}: {source.title}. Terms: {source.terms}. Get it from {source.where}. DIR needs {source.files}."
        for source in SOURCES
    )
