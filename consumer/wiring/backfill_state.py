"""Where a backfill keeps how far it came: beside its archive, under a name that belongs to archive and store together.

Wherever the command is given, it finds the state again; and an archive may fill any number of stores. Earlier versions
kept it in the working directory, under the archive's name alone.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from consumer.model.errors import ConfigError
from consumer.pipeline.checkpoint import Checkpoint, check_source, checkpoint_path, load

_SUFFIX: Final = ".backfill"
_DIGEST_CHARS: Final = 12


class State(NamedTuple):
    """The path that a backfill's files begin with, and what is to be said of an earlier version's, if anything."""

    path: Path
    notice: str | None = None


def named_state(path: Path, store: str) -> State:
    """The state that was named; ConfigError where it is of a backfill into another store than ``store``."""
    before = load(checkpoint_path(path))
    if before is not None and before.store not in {None, store}:
        raise ConfigError(
            f"{path} is the state of a backfill into {before.store}, and this one fills {store}; "
            "name another --state, or leave it out"
        )
    return State(path)


def default_state(archive: Path, store: str, is_empty: Callable[[], bool]) -> State:
    """The state beside the archive, or one that an earlier version left in the working directory and that fits.

    ``is_empty`` says whether the store holds nothing. Raises ConfigError where the archive's folder takes no files.
    """
    real = Path(os.path.realpath(archive))
    digest = hashlib.sha256(os.fsencode(store)).hexdigest()[:_DIGEST_CHARS]
    own = real.with_name(f"{real.name}{_SUFFIX}-{digest}")
    if checkpoint_path(own).exists():
        return State(own)
    earlier = Path(archive.name + _SUFFIX)
    notice = None
    if checkpoint_path(earlier).exists():
        why_not = _misfit(earlier, real, store, is_empty)
        if why_not is None:
            return State(earlier, "Going on with the state that an earlier version left here.")
        notice = f"The state of an earlier version, {checkpoint_path(earlier)}, is left alone: {why_not}."
    if real.exists() and not os.access(real.parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"how far the backfill came cannot be kept in {real.parent}, which is not writable; "
            "name another place with --state FILE"
        )
    return State(own, notice)


def _misfit(earlier: Path, archive: Path, store: str, is_empty: Callable[[], bool]) -> str | None:
    """Why an earlier version's state is not of this archive and store; None where it is, as far as it tells."""
    try:
        before = load(checkpoint_path(earlier))
    except ConfigError:
        return "it cannot be read"
    if before is None or not _is_of(before, archive):
        return "it is of another archive"
    if before.store is not None:
        return None if before.store == store else f"it is of the store {before.store}"
    return "it is of another store: this one is empty" if before.counts.unique and is_empty() else None


def _is_of(checkpoint: Checkpoint, archive: Path) -> bool:
    def beginning(bytes_max: int) -> bytes:
        with archive.open("rb") as file:
            return file.read(bytes_max)

    try:
        check_source(checkpoint, str(archive), beginning)
    except (ConfigError, OSError):
        # An archive that cannot be read is refused when it is to be read.
        return False
    return True
