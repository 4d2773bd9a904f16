"""The source distribution of the compiled engine has all that a build outside of this checkout needs."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

CORE = Path(__file__).parents[3] / "core"
NEEDED = (
    "Cargo.lock",
    "LICENSE",
    "NOTICE",
    "THIRD_PARTY",
    "pyproject.toml",
    "src/letters/decorations.tsv",
    "src/letters/letters.tsv",
    "src/simplified/traditional_chinese.tsv",
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the source distribution unpacks to."""
    folder = tmp_path_factory.mktemp("source")
    command = [
        sys.executable,
        "-m",
        "maturin",
        "sdist",
        "--manifest-path",
        str(CORE / "Cargo.toml"),
        "--out",
        str(folder),
    ]
    subprocess.run(command, capture_output=True, check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        assert not [member.name for member in opened if not (member.isfile() or member.isdir())]
        opened.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_it_has_what_this_folder_only_links_to(unpacked: Path) -> None:
    """As files, with the same bytes; a link would lead nowhere."""
    for name in NEEDED:
        assert (unpacked / name).read_bytes() == (CORE / name).read_bytes(), name


def test_every_source_file_is_in_it(unpacked: Path) -> None:
    """And no more than those."""
    for folder in ("src", "build"):
        ours = {path.relative_to(CORE) for path in (CORE / folder).rglob("*") if path.is_file()}
        assert len(ours) > 3
        assert {path.relative_to(unpacked) for path in (unpacked / folder).rglob("*") if path.is_file()} == ours


def test_every_file_that_is_built_in_is_in_it(unpacked: Path) -> None:
    """Whatever the sources include by a path lies in the folder."""
    included = [
        (source.parent / name).resolve()
        for source in unpacked.rglob("*.rs")
        for name in re.findall(r'(?:include_\w+!\(|#\[path = )"([^"]+)"', source.read_text(encoding="utf-8"))
    ]
    assert len(included) > 4
    assert [path for path in included if not (path.is_file() and path.is_relative_to(unpacked.resolve()))] == []
