"""The advice to install an optional package can be followed as it is printed, and no index is asked for dupwatch.

``tests/unit/deploy/test_wheel.py`` follows it in an environment without the checkout.
"""

import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final, get_args

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from consumer.text import install_advice
from consumer.text.install_advice import Extra, install_command
from tests.installed import needed, needed_by_all

ROOT: Final = Path(__file__).parents[3]
_INSTALLERS: Final = ("pip ", "pip3 ", "pipx ", "uv ")
_BY_NAME: Final = re.compile(
    rf"\b(?:{'|'.join(_INSTALLERS)})[^`\n]*\b(?:install|add|download|wheel)\b[^`\n]*\bdupwatch\b(?!-core|/)"
)
"""A command that names dupwatch to an installer, to the end of the line or of the code."""
_FILE: Final = re.compile(r"[\w*./-]*dupwatch[\w*.-]*\.whl")


def requirements(extra: Extra) -> list[Requirement]:
    """The packages that an extra names."""
    alone = needed(Requirement("dupwatch"))
    return [requirement for requirement in needed(Requirement(f"dupwatch[{extra}]")) if requirement not in alone]


@pytest.mark.parametrize("extra", get_args(Extra))
def test_in_a_checkout_make_installs_all_extras(extra: Extra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From anywhere, also where the working directory is gone; the checkout may have any name."""
    checkout, gone = tmp_path / "it's here", tmp_path / "gone"
    for folder in (checkout / ".venv", gone):
        folder.mkdir(parents=True)
    (checkout / "Makefile").touch()
    monkeypatch.setattr(install_advice, "_ROOT", checkout)
    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))
    monkeypatch.chdir(checkout)
    assert install_command(extra) == "make extras"
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert shlex.split(install_command(extra)) == ["make", "-C", str(checkout), "extras"]


def test_make_extras_installs_what_is_locked(tmp_path: Path) -> None:
    """From anywhere; nothing is done where that has been done."""
    command = ["make", "-C", str(ROOT), "extras", "--dry-run", "--what-if=requirements-extras.lock"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "--require-hashes -r requirements-extras.lock" in ran.stdout


@pytest.mark.parametrize("extra", get_args(Extra))
@pytest.mark.parametrize("place", ["prefix", "root"])
def test_elsewhere_pip_looks_into_the_folder_of_make_dist(
    extra: Extra, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a checkout, and in another environment than that of the checkout."""
    if place == "root":
        monkeypatch.setattr(install_advice, "_ROOT", tmp_path)
    else:
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert shlex.split(install_command(extra), comments=True) == [
        sys.executable, "-m", "pip", "install", "--no-index", "--find-links", "dist", f"dupwatch[{extra}]"
    ]  # fmt: skip


@pytest.mark.parametrize("extra", get_args(Extra))
def test_no_package_comes_by_an_extra_that_pip_may_not_know(extra: Extra) -> None:
    """Pip 23.2 compares names of extras letter by letter, and goes on without: such packages are named here."""
    named = {canonicalize_name(requirement.name) for requirement in requirements(extra)}
    assert named
    for requirement in needed_by_all(map(str, requirements(extra))):
        provided = metadata.metadata(requirement.name).get_all("Provides-Extra") or []
        if not requirement.extras <= set(provided):
            alone = needed(Requirement(requirement.name))
            by_extra = [each for each in needed(requirement) if each not in alone]
            assert {canonicalize_name(each.name) for each in by_extra} <= named, requirement


@pytest.mark.parametrize(
    ("page", "command", "extra"),
    [
        ("use/console", "make run", "console"),
        ("use/evaluation", "make extras", "plot"),
        ("use/formats", "make extras", "pages"),
        ("use/http_api", "make run", "serve"),
        ("use/streaming", "make extras", "schemas"),
        ("operate/tracing", "make extras", "tracing"),
    ],
)
def test_the_documentation_has_both_ways(page: str, command: str, extra: Extra) -> None:
    """For a checkout, and from the folder of wheels."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert re.search(rf"(    |`){command}\b", text)
    assert f"python -m pip install --no-index --find-links dist 'dupwatch[{extra}]'" in text


def test_nothing_tells_people_to_ask_an_index_for_dupwatch() -> None:
    """Whoever registers the name would decide what they get. Decisions say what was there before."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "sample").rglob("*.md")]
    code = [path for folder in ("consumer", "dupwatch", "storage", "deploy") for path in (ROOT / folder).rglob("*.*")]
    asking = [
        (path.relative_to(ROOT).as_posix(), command)
        for path in [*pages, *code, ROOT / "Makefile", ROOT / "docker-compose.yml"]
        if path.suffix not in {".pyc", ".so"} and path.parent.name != "decisions" and path.is_file()
        for command in asked(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert asking == []


def asked(text: str) -> list[str]:
    """Return the commands that would ask an index for dupwatch."""
    if not any(installer in text for installer in _INSTALLERS):
        return []
    return [found for found in _BY_NAME.findall(_FILE.sub("", text)) if "--no-index" not in found]


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("    pip install dupwatch          # or", True),
        ("run `python3 -m pip install --upgrade 'dupwatch[plot]'`", True),
        ("`pipx install dupwatch`", True),
        ("pip install --no-index --find-links dist dupwatch", False),
        ("`pip install dist/dupwatch-0.1.0-py3-none-any.whl`", False),
        ("`pip install standardwebhooks`, and dupwatch signs", False),
        ("`pip install -e /src/dupwatch/`", False),
    ],
)
def test_commands_that_ask_an_index_are_recognised(text: str, *, is_asked: bool) -> None:
    """And those of files, of folders and of other packages are not."""
    assert bool(asked(text)) is is_asked
