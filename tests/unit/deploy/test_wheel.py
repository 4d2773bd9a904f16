"""The wheel: what ``pip install dupwatch`` puts beside the packages of others."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[3]


def test_the_wheel_installs_three_packages(tmp_path: Path) -> None:
    """``consumer`` and ``storage`` are given names, though common ones, so nothing may be beside them by accident."""
    wanted = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", tmp_path)
    subprocess.run([sys.executable, "-m", "pip", "wheel", *wanted, ROOT], check=True, timeout=400)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        found = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in found if not name.endswith(".dist-info")} == {"consumer", "dupwatch", "storage"}
    assert len(found) == 4
