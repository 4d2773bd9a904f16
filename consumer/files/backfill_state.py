"""The files with a backfill's progress: next to its archive, named after archive and store.

So the command finds its state from any working directory, and one archive can fill several stores. Earlier versions
kept the state in the working directory, under the archive's name alone.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from consumer.files.checkpoint import Checkpoint, check_source, checkpoint_path, load
from consumer.model.errors import ConfigError

_SUFFIX: Final = ".backfill"
_DIGEST_CHARS: Final = 12


class BackfillState(NamedTuple):
    """The path that a backfill's file names begin with, and a notice to the user about an older state, if any."""

    path: Path
    notice: str | None = None


def named_state(path: Path, store: str) -> BackfillState:
    """Return the state that the user named. Raises ``ConfigError`` if it is unreadable or of another store."""
    checkpoint = load(checkpoint_path(path))
    if checkpoint is not None and checkpoint.store not in {None, store}:
        raise ConfigError(
            f"{path} is the state of a backfill into {checkpoint.store}, but this one fills {store}; "
            "name another --state, or omit it"
        )
    return BackfillState(path)


def default_state(archive: Path, store: str, is_empty: Callable[[], bool]) -> BackfillState:
    """Return the state next to the archive, or a matching one that an earlier version left in the working directory.

    ``is_empty`` tells whether the store is empty. Raises ``ConfigError`` if there is no such state, and none can be
    written to the archive's folder.
    """
    real = Path(os.path.realpath(archive))
    digest = hashlib.sha256(os.fsencode(store)).hexdigest()[:_DIGEST_CHARS]
    state = real.with_name(f"{real.name}{_SUFFIX}-{digest}")
    if checkpoint_path(state).exists():
        return BackfillState(state)
    earlier = Path(archive.name + _SUFFIX)
    notice = None
    if checkpoint_path(earlier).exists():
        why_not = _misfit(earlier, real, store, is_empty)
        if why_not is None:
            return BackfillState(earlier, "Resuming with the state that an earlier version left here.")
        notice = f"Ignoring the state of an earlier version, {checkpoint_path(earlier)}: {why_not}."
    if real.exists() and not os.access(real.parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"the progress of the backfill cannot be saved in {real.parent}, which is not writable; "
            "name another place with --state FILE"
        )
    return BackfillState(state, notice)


def _misfit(earlier: Path, archive: Path, store: str, is_empty: Callable[[], bool]) -> str | None:
    """Return why an older state does not belong to this archive and store, or None if it may."""
    try:
        checkpoint = load(checkpoint_path(earlier))
    except ConfigError:
        return "it cannot be read"
    if checkpoint is None or not _belongs_to(checkpoint, archive):
        return "it belongs to another archive"
    if checkpoint.store is not None:
        return None if checkpoint.store == store else f"it belongs to the store {checkpoint.store}"
    return "it belongs to another store: this one is empty" if checkpoint.counts.unique and is_empty() else None


def _belongs_to(checkpoint: Checkpoint, archive: Path) -> bool:
    def beginning(bytes_max: int) -> bytes:
        with archive.open("rb") as file:
            return file.read(bytes_max)

    try:
        check_source(checkpoint, str(archive), beginning)
    except (ConfigError, OSError):
        # An archive that cannot be read is refused later, when it is opened.
        return False
    return True
