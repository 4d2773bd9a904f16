"""The licences of the crates that are linked into the compiled engine, and that they are handed on."""

import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from deploy.core.licences import Crate, alternatives, linked_crates, metadata, third_party

CORE = Path(__file__).parents[3] / "core"
ALLOWED = frozenset(
    {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0", "BSD-3-Clause", "Zlib", "Unlicense", "MIT-0"}
)


def allowed(expression: str) -> bool:
    """Whether an SPDX expression can be fulfilled with what we allow; older crates write a slash for OR."""
    inner = re.fullmatch(r"\(([^()]*)\)", expression)
    if inner:
        return allowed(inner[1])
    for word, combined in ((r" AND ", all), (r" OR |/", any)):
        parts = [part.strip() for part in re.split(rf"(?:{word})(?![^(]*\))", expression)]
        if len(parts) > 1:
            return combined(map(allowed, parts))
    return expression in ALLOWED


@pytest.mark.parametrize(
    "expression",
    ["MIT", "MIT OR Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "Unlicense/MIT"],
)
def test_one_of_what_or_joins_is_enough(expression: str) -> None:
    """We may choose it."""
    assert allowed(expression)


@pytest.mark.parametrize(
    "expression", ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR Apache-2.0) AND GPL-3.0-only"]
)
def test_all_of_what_and_joins_is_needed(expression: str) -> None:
    """And what we do not know is refused."""
    assert not allowed(expression)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What cargo says of the crates of the lock file, with everything that they need."""
    return metadata()


def test_crates_have_licences_that_we_may_link(found: dict[str, Any]) -> None:
    """Those that only build too."""
    packages = found["packages"]
    assert len(packages) > 20
    assert not [(package["name"], package["license"]) for package in packages if not allowed(package["license"] or "")]


def test_what_is_linked_in_is_what_the_engine_needs_when_it_runs(found: dict[str, Any]) -> None:
    """Neither the engine itself, nor macros, nor what only they or the build need; the lock file has all of them."""
    names = {crate.name for crate in linked_crates(found)}
    assert {"pyo3", "pyo3-ffi", "icu_normalizer_data", "foldhash", "typenum"} <= names
    assert not names & {"dupwatch-core", "pyo3-macros", "syn", "zerofrom-derive", "target-lexicon"}
    assert {"dupwatch-core", "pyo3-macros", "syn", "target-lexicon"} <= {
        package["name"] for package in found["packages"]
    }


def test_the_licences_that_are_handed_on_are_those_of_the_crates(found: dict[str, Any]) -> None:
    """After a change of the lock: python -m deploy.core.licences > core/THIRD_PARTY."""
    assert third_party(linked_crates(found)) == (CORE / "THIRD_PARTY").read_text(encoding="utf-8")


def test_the_installed_engine_carries_all_texts() -> None:
    """Ours, the notices of jieba and OpenCC, and those of the crates."""
    files = distribution("dupwatch-core").files or []
    carried = {path.name: path.read_text(encoding="utf-8") for path in files if path.parent.name == "licenses"}
    assert carried == {name: (CORE / name).read_text(encoding="utf-8") for name in ("LICENSE", "NOTICE", "THIRD_PARTY")}
    assert all(named in carried["NOTICE"] for named in ("Sun Junyi", "OpenCC"))
    assert all(
        named in carried["THIRD_PARTY"] for named in ("UNICODE LICENSE V3", "Orson Peters", "Rust standard library")
    )


def crate(folder: Path, name: str, licence: str, **files: str) -> Crate:
    """A crate with these files."""
    (folder / name).mkdir()
    for file, text in files.items():
        (folder / name / file).write_text(text)
    return Crate(name, "1.0.0", licence, "", folder / name)


def test_each_text_stands_once_under_the_crates_that_have_it(tmp_path: Path) -> None:
    """Where Apache-2.0 is offered that is ours, and only notices are handed on; otherwise all licences are."""
    ours = crate(tmp_path, "ours", "MIT/Apache-2.0", LICENSE_MIT="mine", NOTICE="a notice")
    one = crate(tmp_path, "one", "Zlib", LICENSE="the same\n")
    other = crate(tmp_path, "other", "Zlib", LICENSE="the same")
    both = crate(tmp_path, "both", "(MIT OR Apache-2.0) AND Unicode-3.0", LICENSE_MIT="mine", LICENSE_U="unicode")
    written = third_party([ours, one, other, both])
    assert written.count("the same") == 1
    assert "one 1.0.0 (Zlib)\nother 1.0.0 (Zlib)\n" in written
    assert "  ours 1.0.0 (MIT/Apache-2.0)\n" in written
    assert written.count("a notice") == 1
    head, _, tail = written.partition("both 1.0.0")
    assert "mine" not in head
    assert "mine" in tail
    assert "unicode" in tail


def test_a_crate_without_its_licence_is_named(tmp_path: Path) -> None:
    """It cannot be handed on then."""
    with pytest.raises(ValueError, match=r"bare 1\.0\.0 \(Zlib\) has no file with its licence"):
        third_party([crate(tmp_path, "bare", "Zlib")])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", ["MIT"]),
        ("MIT OR Apache-2.0", ["MIT", "Apache-2.0"]),
        ("Unlicense/MIT", ["Unlicense", "MIT"]),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", ["(MIT OR Apache-2.0) AND Unicode-3.0"]),
        ("Apache-2.0 AND MIT", ["Apache-2.0 AND MIT"]),
    ],
)
def test_what_and_joins_is_no_alternative(expression: str, expected: list[str]) -> None:
    """All of it counts."""
    assert alternatives(expression) == expected
