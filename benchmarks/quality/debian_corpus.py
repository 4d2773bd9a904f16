"""A feed from the documentation pages of Debian packages.

``python -m benchmarks.quality.debian_corpus PACKAGE… -o FEED.jsonl.gz`` downloads the packages with ``apt-get`` and
unpacks them into a temporary folder. ``PACKAGE=VERSION`` names one of several versions, which are real near-duplicates
of each other, as are the manuals of several architectures.
"""

import gzip
import random
import re
import subprocess
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from selectolax.lexbor import LexborHTMLParser

from benchmarks.quality.feed import Article, in_feed_order, write_lines

BODY_CHARS_MIN = 200
# Beyond this it is an index or a whole book on one page, and no article.
BODY_CHARS_MAX = 100_000
PAGE_BYTES_MAX = 16 * 2**20
DROPPED_ELEMENTS = ["script", "style", "nav", "noscript", "template"]
LANGUAGES = "ar|ca|cs|da|de|el|en|es|fa|fi|fr|hu|id|it|ja|ko|lt|nb|nl|nn|pl|pt|ro|ru|sk|sl|sv|tr|uk|vi|zh"
LANG_IN_PATH = re.compile(rf"(?<=[/.])(?:{LANGUAGES})(?:[-_](?:[a-z]{{2}}|hans|hant))?(?=[/.])", re.IGNORECASE)
LANG_IN_PACKAGE = re.compile(rf"-((?:{LANGUAGES})(?:-[a-z]{{2}})?)(?:=.*)?$", re.IGNORECASE)
PAGE_NAME = re.compile(r"\.html?(?:\.gz)?$", re.IGNORECASE)
CHARSET = re.compile(rb"""charset=["']?\s*([\w-]+)""", re.IGNORECASE)


def article_from_page(package: str, path: str, page: bytes) -> Article | None:
    """Return the text of a page as an article, or None where it is too short or too long to be one.

    ``path`` is the page's inside the package. The language is the one in the path, else the page's own, else the
    package's; empty where none of them says it.
    """
    tree = LexborHTMLParser(_decode(page))
    tree.strip_tags(DROPPED_ELEMENTS)
    body = _one_line(tree.body.text(separator=" ")) if tree.body else ""
    if not BODY_CHARS_MIN <= len(body) <= BODY_CHARS_MAX:
        return None
    title = tree.css_first("title")
    return Article(
        id=f"{package}/{path}",
        source=package,
        lang=_language(package, path, tree),
        title=_one_line(title.text()) if title else "",
        body=body,
    )


def _decode(page: bytes) -> str:
    """Decode by the charset that the page declares near its beginning, else as UTF-8."""
    declared = CHARSET.search(page[:2048])
    try:
        return page.decode(declared[1].decode("ascii") if declared else "utf-8", "replace")
    except LookupError:
        return page.decode("utf-8", "replace")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _language(package: str, path: str, tree: LexborHTMLParser) -> str:
    in_path = LANG_IN_PATH.findall(f"/{path}")
    if in_path:
        return _tag(in_path[-1])
    attributes = tree.root.attributes if tree.root else {}
    declared = attributes.get("lang") or attributes.get("xml:lang")
    if declared:
        return _tag(declared)
    in_package = LANG_IN_PACKAGE.search(package)
    return _tag(in_package[1]) if in_package else ""


def _tag(lang: str) -> str:
    """Write a language tag the usual way: ``zh_cn`` is ``zh-CN``."""
    first, *rest = lang.strip().replace("_", "-").split("-")
    return "-".join([first.lower(), *(part.upper() if len(part) == 2 else part for part in rest)])


def unpacked(package: str, folder: Path) -> Path:
    """Download a package into an empty folder, unpack it there and return where its files are."""
    folder.mkdir()
    subprocess.run(["apt-get", "-qq", "download", package], cwd=folder, check=True)
    (archive,) = folder.glob("*.deb")
    files = folder / "files"
    subprocess.run(["dpkg-deb", "-x", archive, files], check=True)
    return files


def articles_in(package: str, files: Path) -> Iterator[Article]:
    """Yield the pages below ``usr/share`` by path; links are passed over, for what they lead to comes itself."""
    for file in sorted((files / "usr" / "share").rglob("*")):
        if not PAGE_NAME.search(file.name) or file.is_symlink() or not file.is_file():
            continue
        page = _read_page(file)
        article = article_from_page(package, file.relative_to(files).as_posix(), page) if page else None
        if article:
            yield article


def _read_page(file: Path) -> bytes | None:
    """Read a page, unpacked; None where it is larger than a page can sensibly be, or broken."""
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as content:
        try:
            page = content.read(PAGE_BYTES_MAX + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            return None
    return page if len(page) <= PAGE_BYTES_MAX else None


def corpus(articles: Iterable[Article], langs: set[str], seed: int, articles_max: int | None) -> list[Article]:
    """Shuffle articles of the given languages (first subtags; empty: all) into a feed, the same for the same seed."""
    wanted = [a for a in articles if not langs or a.lang.split("-")[0].lower() in langs]
    random.Random(seed).shuffle(wanted)
    return list(in_feed_order(wanted[:articles_max]))


def main(
    packages: Annotated[list[str], typer.Argument(help="Debian packages, NAME or NAME=VERSION.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The feed as JSON lines; .gz is packed.")],
    lang: Annotated[list[str] | None, typer.Option(help="Keep only this language, e.g. zh; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Of the feed order.")] = 1,
    articles_max: Annotated[int | None, typer.Option(help="Keep only so many, the first of the order.")] = None,
) -> None:
    """Make a feed of the HTML pages in Debian packages."""
    articles: list[Article] = []
    for package in packages:
        with tempfile.TemporaryDirectory() as folder:
            found = list(articles_in(package, unpacked(package, Path(folder) / "package")))
        typer.echo(f"{package}: {len(found)} pages")
        articles += found
    chosen = corpus(articles, {tag.lower() for tag in lang or []}, seed, articles_max)
    typer.echo(f"{write_lines(output, chosen)} articles")


if __name__ == "__main__":
    typer.run(main)
