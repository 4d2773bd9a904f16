"""Compressed bytes on their way into a decompressor, and the error for those that end early."""

from collections.abc import Iterator

from consumer.model.article import Reason
from consumer.model.errors import BadRecord


class CompressedFeed:
    """Compressed bytes that wait to be decompressed; ``offset`` is where they begin in the file."""

    def __init__(self, compressed: Iterator[bytes]) -> None:
        self._compressed = compressed
        self.waiting = b""
        self.offset = 0

    def more(self, bytes_min: int) -> bool:
        """Wait for that many bytes; return whether any are left."""
        while len(self.waiting) < bytes_min:
            chunk = next(self._compressed, b"")
            if not chunk:
                break
            self.waiting += chunk
        return bool(self.waiting)

    def keep(self, waiting: bytes) -> None:
        """Keep only these bytes at the end of what was waiting."""
        self.offset += len(self.waiting) - len(waiting)
        self.waiting = waiting

    def take(self, bytes_max: int) -> bytes:
        """Remove and return the first bytes of what is waiting."""
        taken = self.waiting[:bytes_max]
        self.keep(self.waiting[bytes_max:])
        return taken

    def put_back(self, unused: bytes) -> None:
        """Return bytes that were taken and not used."""
        self.offset -= len(unused)
        self.waiting = unused + self.waiting


def ends_early(codec: str, feed: CompressedFeed) -> BadRecord:
    """Return the error for input that ends within what it began."""
    size_bytes = feed.offset + len(feed.waiting)
    return BadRecord(
        Reason.TRUNCATED_INPUT,
        f"the {codec} data ends early, after {size_bytes} bytes of the file; rerun when the file is complete",
    )
