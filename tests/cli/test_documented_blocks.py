"""Command lines in the documentation: those of the README, and of blocks that are marked `run`, do what pages say."""

import csv
import gzip
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from sqlalchemy import Connection

from consumer.reviews.database import open_database
from consumer.reviews.decisions import decide
from consumer.reviews.flag_events import add_events
from consumer.reviews.people import add_person
from tests.cli.command import LABELS, ROOT, SAMPLE, json_lines, write_lines
from tests.cli.shell import Shell
from tests.documented_commands import ShellBlock, ShellLine, commands_of, shell_blocks
from tests.unit.reviews.made import NOW_MS, flagged

README: Final = ROOT / "README.md"
LASTING: Final = MappingProxyType(
    {r"dupwatch (demo|serve|console|top)\b": "lasts until it is stopped; tests of its own start it"}
)
"""Beginnings of lines that are not run in any page, and why."""
EXCEPTIONS: Final = MappingProxyType(
    {
        **LASTING,
        r"make ": "works on this checkout; `make run` and `make test` are how it is tested",
        r"(git clone|cd |pip install|python -m pip|\. \.venv)": "makes a checkout, or installs",
        r"(docker|kubectl) ": "needs a container engine or a cluster; tests/compose and tests/deploy check the files",
        r"curl ": "asks a service; tests/cli/serve run such examples",
        r".*\b(HOST:PORT|kafka://)": "needs servers; tests/kafka and tests/hbase run these commands",
    }
)
"""Beginnings of lines that are not run in the README, and why."""
WORDS: Final = MappingProxyType(
    {
        "ID": "zh-metro-line.zero_width",
        "OTHER": "zh-metro-line",
        "A-17": "zh-metro-line",
        "FILE": "feed.toml",
        "STORE": "lmdb:articles.store",
        "N": "1000",
    }
)
"""Names that a reader replaces, and what they stand for here."""
_WORD: Final = re.compile(rf"(?<![\w/.:-])(?:{'|'.join(WORDS)})(?![\w/.:])")
ARTICLES: Final = 60
"""The first articles of the sample are a reader's own feed."""
README_COMMANDS_MIN: Final = 4
PAGES: Final = [
    page
    for page in sorted([*ROOT.glob("sample/*.md"), *ROOT.glob("docs/**/*.md")])
    if any(block.runs for block in shell_blocks(page.read_text(encoding="utf-8")))
]


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """A shell with a quick ``dupwatch``."""
    with Shell() as shell:
        yield shell


@pytest.fixture(scope="module")
def readers_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample and the files that a reader brings: a feed, new articles, an archive, labels, a text."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(SAMPLE.parent, folder / "sample")
    articles = json_lines(SAMPLE.read_bytes())[:ARTICLES]
    names = {article["id"] for article in articles}
    labels = [label for label in json_lines(LABELS.read_bytes()) if {label["id"], label["of"]} <= names]
    copies = [(label["id"], label["of"], label["operator"] != "half_cut") for label in labels]
    lines: dict[str, list[Any]] = {
        "feed": [*articles, b"not JSON"],
        "archive": articles,
        "new": [article | {"id": f"new-{article['id']}"} for article in articles[:9]],
        "pairs": copies,
        "part_pairs": [(one, other, not near) for one, other, near in copies],
    }
    for name, records in lines.items():
        path = write_lines(folder / f"{name}.jsonl", records)
        path.with_name(f"{name}.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    with (folder / "feed.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["id", "title", "body"], restval="", extrasaction="ignore")
        table.writeheader()
        table.writerows(articles)
    (folder / "offer.txt").write_text(articles[4]["body"])
    (folder / "feed.toml").write_text('[source]\nurl = "feed.jsonl"\n[store]\nurl = "lmdb:articles.store"\n')
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture
def folder(readers_files: Path, tmp_path: Path) -> Path:
    """A folder with these files, to write to."""
    return shutil.copytree(readers_files, tmp_path / "folder", symlinks=True)


@pytest.fixture
def store(folder: Path, judged_sample: Path) -> Path:
    """A folder that also has a store of the sample feed, and the database of a console that has two decisions."""
    shutil.copytree(judged_sample / "store", folder / "articles.store")
    database = open_database(f"sqlite:///{folder / 'console.db'}")

    def filled(connection: Connection) -> None:
        add_events(connection, [flagged(f"a{number}", "o", similarity=0.8) for number in range(2)])
        person = add_person(connection, "An Na", "reviewer", NOW_MS)
        decide(connection, [1, 2], person.person_id, "right", "", NOW_MS, 0)

    database.write(filled)
    database.close()
    return folder


def test_a_page_with_blocks_of_each_kind() -> None:
    """Output and remarks are no command lines; a line has its continuations, and the exit code of its comment."""
    page = (
        "Text:\n\n    make x  # indented\n\n```console run\n$ dupwatch a \\\n    --b\noutput\n```\n"
        "```sh\n# remark\ndupwatch c  # ends with exit code 3\n```\n```toml run\ndupwatch d\n```\n"
    )
    blocks = shell_blocks(page, indented=True)
    assert [(block.row, block.runs) for block in blocks] == [(3, False), (5, True), (10, False)]
    assert [line for block in blocks for line in block.lines] == [
        ShellLine("make x  # indented"),
        ShellLine("dupwatch a \\\n    --b"),
        ShellLine("dupwatch c  # ends with exit code 3", 3),
    ]
    assert commands_of(page) == ["a ", "c"]


@pytest.mark.parametrize(("line", "code"), [("false", 1), ("dupwatch show", 2), ("dupwatch --help", 0)])
def test_a_line_with_another_exit_code_ends_the_script(shell: Shell, tmp_path: Path, line: str, code: int) -> None:
    """With the exit code that its comment names, the script goes on."""
    lines = [(ShellLine(line, expected), ShellLine("echo the end")) for expected in (code, 9)]
    blocks = [ShellBlock(1, runs=True, lines=two) for two in lines]
    expected, unexpected = (shell.run(script_of([block], LASTING), tmp_path) for block in blocks)
    assert (expected.code, expected.out.endswith(b"the end\n")) == (0, True), expected.err
    assert unexpected.code
    assert not unexpected.out.endswith(b"the end\n")
    assert line in unexpected.err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_that_are_marked_run(shell: Shell, store: Path, page: Path) -> None:
    """They run one after another, in one folder."""
    blocks = [block for block in shell_blocks(page.read_text(encoding="utf-8")) if block.runs]
    ended = shell.run(script_of(blocks, LASTING), store)
    assert ended.code == 0, ended.err


def test_all_commands_of_the_readme(shell: Shell, folder: Path) -> None:
    """They run as for a newcomer, who has a checkout and no store."""
    blocks = shell_blocks(README.read_text(encoding="utf-8"), indented=True)
    script = script_of(blocks, EXCEPTIONS)
    assert script.count("\ndupwatch ") >= README_COMMANDS_MIN
    ended = shell.run(script, folder)
    assert ended.code == 0, ended.err


def script_of(blocks: list[ShellBlock], exceptions: Mapping[str, str]) -> str:
    """Return a script of all lines but the ``exceptions``.

    It names each line before it runs it, and ends with the first that has another exit code than it should.
    """
    steps = []
    for line in (line for block in blocks for line in block.lines):
        if not any(re.match(beginning, line.text.partition(" #")[0]) for beginning in exceptions):
            text = _WORD.sub(lambda found: WORDS[found[0]], line.text)
            steps += [f"echo {shlex.quote(text)} >&2", "status=0"]
            steps += ["{", text, "} || status=$?", f"[ $status -eq {line.code} ]"]
    return "\n".join(steps)
