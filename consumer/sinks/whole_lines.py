"""How much of a file of lines is whole, where no checkpoint says it."""

from pathlib import Path
from typing import NamedTuple

from consumer.model.errors import SinkError

_BLOCK_BYTES = 64 * 1024


class WholeLines(NamedTuple):
    """Keeps the whole lines of a file, in which ``what`` is written.

    Its first line must start with ``start``: the end of a file of something else must not be cut off.
    """

    start: bytes
    what: str

    def kept_bytes(self, path: Path) -> int:
        """Return how many bytes of the file are whole lines. Raises ``SinkError`` for another file, and ``OSError``."""
        with path.open("rb") as file:
            begins = file.read(len(self.start))
            if not self.start.startswith(begins):
                raise SinkError(f"{path} is not a file of {self.what}, so nothing is appended to it; name another file")
            end = file.seek(0, 2)
            while end:
                block = max(0, end - _BLOCK_BYTES)
                file.seek(block)
                newline = file.read(end - block).rfind(b"\n")
                if newline >= 0:
                    return block + newline + 1
                end = block
        return 0
