"""Whether a file can be written: one that is there, or a new one in its folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from consumer.doctor.finding import Finding, wrong
from consumer.model.errors import SinkError


def check_written(path: Path, what: str, setting: str) -> Iterator[Finding]:
    """Check that a run could write this file; ``what`` it is, and which ``setting`` names it."""
    folder = path.parent
    if not folder.is_dir():
        yield wrong(SinkError, f"No folder {folder} for the {what} {path}.", f"Create it, or correct {setting}.")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield wrong(
            SinkError,
            f"No permission to write in {folder}, the folder of the {what}.",
            f"Give this user write permission, or name a different {what}.",
        )
    elif path.exists() and not path.is_file():
        yield wrong(SinkError, f"The {what} {path} is not a regular file.", f"Name a file in {setting}.")
    elif path.exists() and not os.access(path, os.W_OK):
        yield wrong(
            SinkError,
            f"No permission to write to the {what} {path}.",
            f"Give this user write permission, or name a different {what}.",
        )
