"""Links, anchors, paths and commands in the documentation name something that exists."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.documented_commands import commands_of, what_is_unknown

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for name in ("sample", "docs", "deploy", "benchmarks") for page in ROOT.glob(f"{name}/**/*.md")),
    ]
)
DESCRIBING_TODAY: Final = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
"""Decisions and changes name what was there when they were written."""
ARCHITECTURE: Final = ROOT / "docs" / "contributing" / "architecture.md"
NAMING_FOLDERS: Final = ("consumer", "dupwatch", "storage", "deploy", "benchmarks", "tests")
_FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
_PAGE_IN_CODE: Final = re.compile(r"\bdocs/(?:[a-z_]+/)*[\w-]+\.md\b")
_PATH_IN_DOCS: Final = re.compile(rf"(?<![\w/.-])(?:{'|'.join(NAMING_FOLDERS)})/[\w/.*-]*\w")
DECISIONS: Final = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
DECISION_WORDS_MAX: Final = 300
DECISION_SECTIONS: Final = ["Problem", "Decision", "Cost"]
PICTURE_BYTES_MAX: Final = 200_000
README_LINES_MAX: Final = 110
README_WIDTH_MAX: Final = 120


def name(path: Path) -> str:
    """Return the path of a page below the root, which is how a failing test names it."""
    return path.relative_to(ROOT).as_posix()


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    words = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return frozenset(re.sub(r"[^\w\- ]", "", word.lower()).replace(" ", "-") for word in words)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_anchors_resolve(page: Path) -> None:
    """A relative link leads to a file or folder, and its anchor to a heading of that page."""
    for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def linked(page: Path) -> set[Path]:
    """Return the files and folders of this repository that a page links to."""
    links = _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {(page.parent / link.partition("#")[0]).resolve() for link in links if "://" not in link and link[0] != "#"}


def test_every_page_is_two_clicks_from_the_readme() -> None:
    """A page that nobody finds helps nobody. Runbooks and decisions are found in their folders."""
    first = linked(ROOT / "README.md")
    second = {target for page in first if page.suffix == ".md" for target in linked(page)}
    docs = ROOT / "docs"
    folders = {docs / "operate" / "runbooks", docs / "schemas", docs / "decisions" / "README.md"}
    wanted = folders | {page for part in ("use", "operate", "contributing") for page in (docs / part).glob("*.md")}
    assert not sorted(name(page) for page in wanted - first - second)


def test_pictures_are_small_and_shown() -> None:
    """Each picture of the documentation is on one of its pages, and quick to load."""
    shown = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in _LINK.findall(page.read_text(encoding="utf-8"))
        if link.endswith(".png")
    }
    pictures = set((ROOT / "docs" / "images").iterdir())
    assert pictures
    assert pictures <= shown
    assert max(picture.stat().st_size for picture in pictures) <= PICTURE_BYTES_MAX


@pytest.mark.parametrize("page", DESCRIBING_TODAY, ids=name)
def test_paths_of_code_exist(page: Path) -> None:
    """A module or folder that a page names is there; NAME stands for any name."""
    for path in _PATH_IN_DOCS.findall(page.read_text(encoding="utf-8")):
        assert list(ROOT.glob(path.replace("NAME", "*"))), path


@pytest.mark.parametrize("folder", NAMING_FOLDERS)
def test_pages_that_code_names_exist(folder: str) -> None:
    """Code and configuration that name a page of the documentation name one that exists."""
    for path in (ROOT / folder).rglob("*"):
        if path.suffix in {".py", ".yml", ".yaml", ".toml", ".sh"} and path != Path(__file__):
            for named in _PAGE_IN_CODE.findall(path.read_text(encoding="utf-8")):
                assert (ROOT / named).is_file(), f"{name(path)} names {named}"


@pytest.mark.parametrize("page", DESCRIBING_TODAY, ids=name)
def test_commands_and_options_exist(page: Path) -> None:
    """Commands can be pasted as they are."""
    for command in commands_of(page.read_text(encoding="utf-8")):
        assert not what_is_unknown(command), command


def test_the_architecture_has_every_package() -> None:
    """Each package of ``consumer`` has one row, in the order of the layers, and the files to begin with are in it."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text, re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [found["layers"] for found in contracts if found.get("containers") == ["consumer"]]
    depths = {package: depth for depth, layer in enumerate(layers) for package in re.split(" [:|] ", layer)}
    assert sorted(depths) == sorted(package for package, _ in rows)
    assert [depths[package] for package, _ in rows] == sorted(depths.values())
    for package, files in rows:
        for file in re.findall(r"`([\w/.]+)`", files):
            assert (ROOT / "consumer" / package / file).exists(), f"{package}: {file}"


def defined_in(path: Path) -> set[str]:
    """Return the functions and classes of a module, and the methods as ``Class.method``."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {node.name, *(f"{node.name}.{method}" for method in methods)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


def test_the_picture_of_the_architecture_names_functions_that_exist() -> None:
    """Each step of an article is ``path.py:function``; there are sources, the judge, sinks and commits among them."""
    (picture,) = _FENCE.findall(ARCHITECTURE.read_text(encoding="utf-8"))
    steps = re.findall(r"([\w/]+\.py):([\w.]*\w)", picture)
    assert len(steps) == picture.count(".py")
    for path, function in steps:
        assert (ROOT / path).is_file(), path
        assert function in defined_in(ROOT / path), f"{path} has no {function}"
    named = {function.rpartition(".")[2] for _, function in steps}
    assert {"batches", "judge", "emit", "reject", "commit"} <= named


def test_files_of_the_architecture_exist() -> None:
    """A file is named from the root, below ``consumer``, or below the package that the line is about."""
    for line in _FENCE.sub("", ARCHITECTURE.read_text(encoding="utf-8")).splitlines():
        row = re.match(r"\| `(\w+)` \|", line)
        package = row and ROOT / "consumer" / row[1]
        own = package or (ROOT / "storage" if line.startswith("- `storage/`") else ROOT)
        folders = (ROOT, ROOT / "consumer", own)
        for file in re.findall(r"`([\w/]+/|[\w./-]+\.(?:py|rs|tsv|toml))`", line.replace("NAME", "lmdb")):
            assert any((folder / file).exists() for folder in folders), f"{file}: {line}"


def test_the_index_of_decisions_is_complete() -> None:
    """Every decision has a row with its number and title, in order."""
    folder = ROOT / "docs" / "decisions"
    rows = re.findall(r"^- \[(\d+)\]\(([\w-]+\.md)\): (.*)$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    titles = [page.read_text("utf-8").partition("\n")[0] for page in DECISIONS]
    assert [(file, f"# {number}: {title}") for number, file, title in rows] == list(
        zip([page.name for page in DECISIONS], titles, strict=True)
    )


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_decisions_are_short(page: Path) -> None:
    """A decision says in a few words what was the problem, what was decided and rejected, and what that costs."""
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= DECISION_WORDS_MAX
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == DECISION_SECTIONS


def test_the_readme_fits_its_limits() -> None:
    """It is short enough to read in one go, and its lines fit a terminal."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES_MAX
    assert max(map(len, lines)) <= README_WIDTH_MAX
