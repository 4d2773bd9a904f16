"""Provides the formatted data of a new server. Formatting takes seconds, so a copy is kept next to the jars."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from deploy.local.java import environment
from deploy.local.server import ServerFailed


def provide(server: str, data: Path, kept: Path, command: Sequence[str]) -> None:
    """Fill the folder ``data`` from the copy ``kept``. Without a copy, format it with ``command``, and keep a copy.

    Raises ``ServerFailed``; ``server`` is the server's name for its message.
    """
    if kept.exists():
        shutil.copytree(kept, data, dirs_exist_ok=True)
        return
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())  # noqa: S603  # ours
    if done.returncode:
        raise ServerFailed(f"{server}'s data in {data} could not be formatted: {done.stdout}{done.stderr}")
    try:
        unfinished = Path(mkdtemp(dir=kept.parent, prefix=f"{kept.name}.unfinished-"))
    except OSError:
        # The folder of the jars may be read-only; then the next server formats its own data.
        return
    try:
        shutil.copytree(data, unfinished, dirs_exist_ok=True)
        unfinished.rename(kept)
    except OSError:
        # Another process was faster, or the disk is full.
        shutil.rmtree(unfinished)
