"""All measurements of speed, one after the other, each in a process of its own: ``python -m benchmarks.speed``."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.speed import end_to_end, fingerprint_only, growth, look_up, stages, workers
from benchmarks.speed.report import OUT, tell

PARTS = (end_to_end.PART, fingerprint_only.PART, look_up.PART, growth.PART, workers.PART)


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Two to three minutes instead of twenty-five.")] = False,
) -> None:
    """Measure everything."""
    for part in PARTS:
        options = ["--out", str(out), *(["--quick"] if quick else [])]
        subprocess.run([sys.executable, "-m", f"benchmarks.speed.{part}", *options], check=True)
    if not quick:
        for options in ([], ["--like-for-like"]):
            command = [sys.executable, "-m", f"benchmarks.speed.{stages.PART}", "--out", str(out), *options]
            subprocess.run(command, check=True)
    tell(f"JSON lines of every table: {out}")


if __name__ == "__main__":
    typer.run(main)
