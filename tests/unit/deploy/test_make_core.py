"""When ``make`` builds the compiled engine: with the Rust that it needs, and otherwise not."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHOW = "show:;@echo '[$(CARGO)] $(RUSTC_MIN)'"


def shown(folder: Path) -> str:
    """What ``make`` finds out where all programs are in this folder."""
    make = shutil.which("make")
    assert make is not None
    for program in ("sh", "awk", "find", "echo"):
        found = shutil.which(program)
        assert found is not None, program
        (folder / program).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        [make, "--no-print-directory", "--eval", SHOW, "show"],
        cwd=ROOT, env=environment | {"PATH": str(folder)}, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


def program(path: Path, says: str) -> None:
    """Write a program that says this."""
    path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="ascii")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("rustc", "fits"),
    [
        ("rustc 1.70.0 (90c541806 2023-05-31)", False),
        ("rustc 1.87.0", False),
        ("rustc 1.88.0 (Debian)", True),
        ("rustc 1.100.1-nightly", True),
        ("rustc 2.0.0", True),
        (None, False),
    ],
)
def test_rust_has_to_be_new_enough(tmp_path: Path, rustc: str | None, *, fits: bool) -> None:
    """An old distribution's Rust is as if there were none."""
    program(tmp_path / "cargo", "cargo")
    if rustc is not None:
        program(tmp_path / "rustc", rustc)
    assert shown(tmp_path).startswith("[yes]" if fits else "[]")


def test_without_cargo_rustc_is_of_no_use(tmp_path: Path) -> None:
    """Both are needed, in the versions that the crate names."""
    program(tmp_path / "rustc", "rustc 1.99.0")
    least = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8"))["package"]["rust-version"]
    assert shown(tmp_path) == f"[] {least}"
    assert f"rustc {least} or newer" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"Rust {least}" in (ROOT / "README.md").read_text(encoding="utf-8")
