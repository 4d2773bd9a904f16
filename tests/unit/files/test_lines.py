"""Lines of lengths around the limits on a record and on what a dead letter keeps."""

import hashlib

import pytest

from consumer.files.lines import LineSplitter, Position
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX


@pytest.mark.parametrize("limit", [50, DEAD_LETTER_RAW_BYTES_MAX, DEAD_LETTER_RAW_BYTES_MAX + 100])
@pytest.mark.parametrize("kept", [50, DEAD_LETTER_RAW_BYTES_MAX, DEAD_LETTER_RAW_BYTES_MAX + 100])
@pytest.mark.parametrize("extra", [-1, 0, 1, 2])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("chunk_bytes", [7, 1 << 20])
def test_a_line_is_whole_up_to_the_limit(limit: int, kept: int, extra: int, line_end: bytes, chunk_bytes: int) -> None:
    """Whole and without a digest as long as it is a record or fits a dead letter; else its beginning and a digest."""
    content = (b"0123456789" * (kept // 10 + 1))[: kept + extra]
    stream = content + line_end + b"{}\n"
    lines = LineSplitter(limit, Position(0, 0))
    first, second = [
        record
        for start in range(0, len(stream), chunk_bytes)
        for record in lines.feed(stream[start : start + chunk_bytes])
    ]
    is_whole = len(content) <= max(limit, DEAD_LETTER_RAW_BYTES_MAX)
    assert first.data == (content if is_whole else content[:DEAD_LETTER_RAW_BYTES_MAX])
    assert first.sha256 == (None if is_whole else hashlib.sha256(content).digest())
    assert first.size_bytes == len(content)
    assert (first.fault is not None) == (len(content) > limit)
    assert (second.data, second.start) == (b"{}", len(content + line_end))
