"""The folder that ``make dist`` fills, and what is installed from it without an index."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

from tests.installed import needed_by_all, write_wheel

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PIP_"))} | {
    # Most of what is installed here is never imported.
    "PIP_NO_COMPILE": "1"
}
"""That of a shell: without the options of a make that runs the tests, and of a pip that may know other folders."""
JUDGES = """
import dupwatch
with dupwatch.open("memory:") as window:
    (verdict,) = window.judge({"id": "a", "body": "The first ferry left at noon, half an hour late."})
print(dupwatch.__version__, verdict.outcome, dupwatch.__file__)
"""


def test_wheels_of_make_dist_install_without_an_index(tmp_path: Path) -> None:
    """In a new environment; a command that lacks an extra says how to add it from there.

    The wheels of other packages are made from the tests' own environment, which the locks have filled too.
    """

    def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=400
        )

    dist, python = tmp_path / "dist", tmp_path / "environment" / "bin" / "python"
    # Without the engine, which takes minutes to build; what is installed already stays as it is.
    beside = Path(sys.executable).parent
    made = ran("make", "-C", ROOT, "dist", "CARGO=", f"BIN={beside}", f"DIST={dist}", "--assume-old=.venv/run.stamp")
    assert made.returncode == 0, made.stderr
    (wheel,) = dist.glob("*.whl")
    with ZipFile(wheel) as archive:
        found = {name.split("/")[0] for name in archive.namelist()}
    # ``consumer`` and ``storage`` are given names, though common ones, so nothing may be beside them by accident.
    assert {name for name in found if not name.endswith(".dist-info")} == {"consumer", "dupwatch", "storage"}
    assert len(found) == 4
    assert re.fullmatch(rf"[0-9a-f]{{64}}  {re.escape(wheel.name)}\n", (dist / "SHA256SUMS").read_text())

    for name in {requirement.name for requirement in needed_by_all(["dupwatch"])} - {"dupwatch"}:
        write_wheel(name, dist)
    venv.create(tmp_path / "environment", symlinks=True)
    # That of the new environment would compile itself first.
    pip = (sys.executable, "-m", "pip", "--python", python)
    installed = ran(*pip, "install", "--no-index", "--find-links", "dist", "--quiet", "dupwatch")
    assert installed.returncode == 0, installed.stderr
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    judged = ran(python, "-c", JUDGES)
    assert judged.stdout.startswith(f"{version} unique {tmp_path}"), judged.stderr

    lacking = ran(python.with_name("dupwatch"), "serve", "--store", "memory:")
    assert lacking.returncode == 2
    advice = shlex.split(lacking.stderr.splitlines()[-1], comments=True)
    assert advice == [str(python), "-m", "pip", "install", "--no-index", "--find-links", "dist", "dupwatch[serve]"]
