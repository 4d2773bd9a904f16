"""What can build the compiled engine, and what is said of what cannot; Rust here is scripts that tell a version."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.core.rust import build_obstacle, oldest_rust

ROOT = Path(__file__).parents[3]
INSTALL = "https://www.rust-lang.org/tools/install"


def path_with(folder: Path, **versions: str) -> dict[str, str]:
    """An environment whose PATH has programs of these versions, and what make needs."""
    folder.mkdir()
    for tool in ("sh", "make", "find"):
        (folder / tool).symlink_to(shutil.which(tool) or pytest.fail(f"{tool} is missing"))
    for program, version in versions.items():
        (folder / program).write_text(f"#!/bin/sh\necho '{program} {version}'\n")
        (folder / program).chmod(0o755)
    return {"PATH": str(folder)}


def test_the_oldest_rust_is_that_of_the_manifest() -> None:
    """And documentation says the same."""
    oldest = oldest_rust()
    for page in ("Makefile", "README.md", "CHANGELOG.md", "docs/operate/operations.md"):
        assert set(re.findall(r"[Rr]ustc? (\d+\.\d+)", (ROOT / page).read_text())) == {oldest}, page


@pytest.mark.parametrize("version", ["{oldest}.0 (6b00bc388 2025-06-23)", "1.100.0", "2.0.0-nightly", "{oldest}"])
def test_rust_that_is_new_enough_lacks_nothing(tmp_path: Path, version: str) -> None:
    """As numbers, not as text: 1.100 is newer than 1.88."""
    version = version.format(oldest=oldest_rust())
    assert build_obstacle(path_with(tmp_path / "bin", cargo=version, rustc=version)) is None


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        ({}, "cargo is not on the PATH"),
        ({"cargo": "1.95.0"}, "rustc is not on the PATH"),
        ({"cargo": "1.95.0", "rustc": "1.70.0 (90c541806 2023-05-31)"}, "rustc ({path}/rustc) is 1.70.0"),
        ({"cargo": "1.65.0", "rustc": "1.95.0"}, "cargo ({path}/cargo) is 1.65.0"),
        ({"cargo": "none", "rustc": "1.95.0"}, "cargo ({path}/cargo) does not say its version (cargo none)"),
    ],
)
def test_what_is_missing_or_too_old_is_named_with_what_to_do(
    tmp_path: Path, versions: dict[str, str], named: str
) -> None:
    """In one sentence."""
    said = build_obstacle(path_with(tmp_path / "bin", **versions))
    assert said is not None
    assert f"needs cargo and rustc {oldest_rust()} or newer, but {named.format(path=tmp_path / 'bin')}" in said
    assert INSTALL in said
    assert "dupwatch runs without the engine" in said
    assert "\n" not in said


def test_a_program_without_a_toolchain_is_named_with_what_it_says(tmp_path: Path) -> None:
    """As rustup's are, where none was chosen."""
    environment = path_with(tmp_path / "bin", cargo="1.95.0", rustc="1.95.0")
    (tmp_path / "bin" / "rustc").write_text(
        "#!/bin/sh\necho 'error: no default is configured' >&2\necho more >&2\nexit 1\n"
    )
    said = build_obstacle(environment)
    assert said is not None
    assert "does not say its version (error: no default is configured)" in said


@pytest.mark.parametrize("goal", ["core", "wheels"])
def test_make_asks_before_it_builds(tmp_path: Path, goal: str) -> None:
    """The sentence is the last that it says but for its own."""
    environment = path_with(tmp_path / "bin", cargo="1.70.0", rustc="1.70.0")
    ran = subprocess.run(["make", goal], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert f"cargo ({tmp_path}/bin/cargo) is 1.70.0" in ran.stderr.splitlines()[0]
    assert ran.stdout == ""


def commands_of(environment: dict[str, str], goal: str, *options: str) -> list[str]:
    """What make would do, the first of it first."""
    command = ["make", "--dry-run", "--no-print-directory", goal, *options]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def asks_for_rust(commands: list[str]) -> list[bool]:
    """Of each command whether it fails without a Rust that builds the engine."""
    return [command.endswith("-m deploy.core.rust") for command in commands]


@pytest.mark.parametrize("goal", ["test", "test-light"])
def test_ci_does_not_do_without(tmp_path: Path, goal: str) -> None:
    """Before anything else it asks for Rust, and says that CI needs it."""
    environment = path_with(tmp_path / "bin") | {"CI": "true"}
    assert asks_for_rust(commands_of(environment, goal))[0]
    assert "but CI has to test it" in (build_obstacle(environment) or "")


@pytest.mark.parametrize("goal", ["test", "test-light"])
@pytest.mark.parametrize(
    ("versions", "fits"),
    [
        ({}, False),
        ({"rustc": "1.99.0"}, False),
        ({"cargo": "1.99.0"}, False),
        ({"cargo": "1.70.0", "rustc": "1.70.0 (90c541806 2023-05-31)"}, False),
        ({"cargo": "1.100.1", "rustc": "1.100.1-nightly"}, True),
    ],
)
def test_elsewhere_tests_go_on_without(tmp_path: Path, goal: str, versions: dict[str, str], *, fits: bool) -> None:
    """An old distribution's Rust is as if there were none; what is left out is said."""
    environment = path_with(tmp_path / "bin", **versions)
    commands = commands_of(environment, goal)
    assert any(asks_for_rust(commands)) is fits
    assert any("neither built nor tested" in command for command in commands) is not fits
    assert any("cargo clippy" in command for command in commands) is fits


def test_the_engine_is_left_out_where_cargo_is_not_to_be_used(tmp_path: Path) -> None:
    """Whatever Rust is there: make test CARGO=."""
    environment = path_with(tmp_path / "bin", cargo="1.100.1", rustc="1.100.1")
    assert any(asks_for_rust(commands_of(environment, "test")))
    assert not any(asks_for_rust(commands_of(environment, "test", "CARGO=")))


def test_make_core_replaces_the_engine_of_the_tests(tmp_path: Path) -> None:
    """Each build removes the other's stamp, so that benchmarks never measure the engine of the tests."""
    environment = path_with(tmp_path / "bin", cargo="1.100.1", rustc="1.100.1")
    for goal, stamp in {
        "unit": "core-of-tests", "test-light": "core-of-tests", "rust": "core-of-tests", "core": "core", "bench": "core"
    }.items():  # fmt: skip
        commands = commands_of(environment, goal, "--what-if=core/Cargo.toml")
        made = commands.index(f"touch .venv/{stamp}.stamp")
        assert commands[made - 1] == "rm -f .venv/core.stamp .venv/core-of-tests.stamp"


@pytest.mark.parametrize(("version", "has_engine"), [("1.100.1", True), ("1.70.0", False)])
@pytest.mark.parametrize("options", [[], ["DEPS=1"]])
def test_make_dist_has_the_engine_where_rust_is(
    tmp_path: Path, version: str, options: list[str], *, has_engine: bool
) -> None:
    """In the same folder as dupwatch; elsewhere it says in one sentence what is missing, and goes on."""
    environment = path_with(tmp_path / "bin", cargo=version, rustc=version)
    commands = commands_of(environment, "dist", "DIST=to", *options)
    built = [command for command in commands if "maturin build" in command or command.endswith("--out to")]
    assert bool(built) is has_engine
    assert any(command.endswith("deploy.core.rust || true") for command in commands) is not has_engine
    locked = [command for command in commands if "--wheel-dir to --use-pep517 --require-hashes" in command]
    assert [command.split()[-1] for command in locked] == ["requirements-extras.lock"] * len(options)


def test_make_run_says_how_long_it_took(tmp_path: Path) -> None:
    """As its last line, which knows when make began and when all packages were there."""
    clock = tmp_path / "bin" / "date"
    environment = path_with(tmp_path / "bin")
    clock.write_text("#!/bin/sh\necho 1000\n")
    clock.chmod(0o755)
    said = commands_of(environment, "run", "--assume-old=.venv/run.stamp")[-1]
    assert said.startswith('echo "Setting up took $((1000 - 1000)) s, judging the samples ')
