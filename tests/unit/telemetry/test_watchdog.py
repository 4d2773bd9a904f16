"""A run that hangs when it is asked to stop is ended, with the documented exit code."""

import re
import subprocess
import sys
from pathlib import Path

from consumer.telemetry.health import EXIT_CODE

HANGS = """
import threading, time
from consumer.telemetry.health import enforce_stop
from consumer.lifecycle.stopping import StopSignal
stopping = StopSignal()
def hang():
    stopping.requested_at_s = time.monotonic()
    threading.Event().wait()
enforce_stop(stopping, lambda: None, 0.0)
hang()
"""


def test_what_hangs_is_ended_with_the_documented_code() -> None:
    """docs/use/commands.md names the case in the row of its exit code, and the log says where it hung."""
    ended = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode == EXIT_CODE
    assert "did not stop within 0 s" in ended.stderr
    assert "in hang" in ended.stderr
    page = (Path(__file__).parents[3] / "docs" / "use" / "commands.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {EXIT_CODE} \| (a bug.*) \|$", page, re.MULTILINE)
    assert "hung" in row
