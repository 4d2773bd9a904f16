"""What becomes of a test that needs a server where there can be none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_TEST = """
import pytest

@pytest.mark.servers
def test_needs_a_broker(kafka_address):
    pass
"""


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_without_java(tmp_path: Path, ci: str, outcome: str) -> None:
    """Without Java a test of servers is skipped for a developer and fails in CI; either says what to install."""
    (tmp_path / "test_it.py").write_text(_TEST)
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "tests.hbase_server", "-rs"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "-n", "0", "test_it.py"],
        cwd=tmp_path,
        env={"CI": ci, "PATH": os.environ["PATH"], "JAVA_HOME": "/nowhere", "PYTHONPATH": str(ROOT), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in ran.stdout
    assert "apt-get install openjdk-17-jdk-headless maven" in ran.stdout
    assert (ran.returncode == 0) is (ci == "")
