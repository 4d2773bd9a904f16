"""Feeds and other JSON lines, plain or gzipped."""

import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

Line = TypeVar("Line")

PUBLISHED_AT_FIRST_S = 1_700_000_000
PUBLISHED_AT_STEP_S = 7

# Kana, the ideographs with extension A and the compatibility block, and the two ideographic planes.
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
CJK_SHARE_MIN = 0.2


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a feed; ``lang`` is a BCP 47 tag, or empty where it is not known; ``published_at`` in seconds."""

    id: str
    body: str
    lang: str = ""
    source: str = ""
    title: str = ""
    published_at: int = 0


def is_cjk(lang: str | None, text: str) -> bool:
    """Say whether a text counts as Chinese or Japanese: by its language, or by its share of characters without one."""
    if lang:
        return re.split("[-_]", lang, maxsplit=1)[0].lower() in {"zh", "ja"}
    return bool(text) and len(CJK.findall(text)) >= CJK_SHARE_MIN * len(text)


def read_lines(path: Path, line_type: type[Line]) -> Iterator[Line]:
    """Yield each line of a file as ``line_type``; ``ValueError`` names the line that is none."""
    decoder = msgspec.json.Decoder(line_type)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error


def read_feed(path: Path) -> list[Article]:
    """Read a feed; ``ValueError`` where an id comes twice, for pairs name articles by their ids."""
    articles = list(read_lines(path, Article))
    seen: set[str] = set()
    for article in articles:
        if article.id in seen:
            raise ValueError(f"{path}: the id {article.id!r} comes twice")
        seen.add(article.id)
    return articles


def write_lines(path: Path, lines: Iterable[Any]) -> int:
    """Write JSON lines, gzipped if the name ends so, and return their number; equal lines give equal bytes."""
    encoder = msgspec.json.Encoder()
    count = 0
    with ExitStack() as files:
        out: BinaryIO = files.enter_context(path.open("wb"))
        if path.suffix == ".gz":
            # No name and no time in the header, or each run would write another file.
            packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=out, mtime=0)
            out = cast("BinaryIO", files.enter_context(packed))
        for line in lines:
            out.write(encoder.encode(line) + b"\n")
            count += 1
    return count


def in_feed_order(articles: Iterable[Article]) -> Iterator[Article]:
    """Give articles publication times that rise in the order in which they stand."""
    for number, article in enumerate(articles):
        yield msgspec.structs.replace(article, published_at=PUBLISHED_AT_FIRST_S + number * PUBLISHED_AT_STEP_S)
