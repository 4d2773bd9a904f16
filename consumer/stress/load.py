"""What a run sends, and the thing that it is sent to."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, Protocol

import msgspec

from consumer.decode.article import FieldPaths
from consumer.stress.made_texts import FeedText
from consumer.stress.trial import Trial

SLICE_S: Final = 0.1
"""The longest wait without a look at the signal to stop."""
_MEMORY_BYTES: Final = 16 << 20
_ENCODER: Final = msgspec.json.Encoder()
Stop = Callable[[], bool]


class Load(Protocol):
    """The thing that articles are sent to. All times are seconds of ``time.monotonic``."""

    def try_out(self, article_id: str, article: bytes) -> None:
        """Send one article, and wait for its verdict. Raises ``Fatal`` errors that say what is wrong."""

    def run(self, articles: Iterator[bytes], trial: Trial, stop: Stop) -> None:
        """Send the articles of a trial when they are due, and wait for their verdicts. Raises ``Fatal`` errors.

        The waiting ends when no further verdict has come for some time.
        """

    def close(self) -> None:
        """Close connections."""


@contextmanager
def prepared_feed(
    texts: Iterator[FeedText], trial: Trial, fields: FieldPaths, note_progress: Callable[[int], None], stop: Stop
) -> Iterator[IO[bytes]]:
    """Encode the articles of a trial into a temporary file, one a line, and note which of them are copies.

    The file is deleted at the end of the block. ``note_progress`` is called with the number of finished articles. A
    stop ends the encoding early.
    """
    with tempfile.SpooledTemporaryFile(_MEMORY_BYTES, prefix="dupwatch-stress-") as lines:
        for number in range(len(trial.due_s)):
            if stop():
                break
            text = next(texts)
            trial.is_copy[number] = text.original is not None
            lines.write(encoded(text, fields) + b"\n")
            note_progress(number + 1)
        lines.seek(0)
        yield lines


def encoded(text: FeedText, fields: FieldPaths) -> bytes:
    """Return an article as JSON, with its members where ``fields`` says."""
    article: dict[str, Any] = {}
    for path, value in ((fields.id, text.id), (fields.body, text.body), (fields.lang, text.language)):
        *objects, name = path.split(".")
        place = article
        for member in objects:
            place = place.setdefault(member, {})
        place[name] = value
    return _ENCODER.encode(article)


def wait_until(due_s: float, stop: Stop) -> bool:
    """Wait until a time of ``time.monotonic``, and return whether it came before the signal to stop."""
    while not (stopped := stop()) and (left_s := due_s - time.monotonic()) > 0:
        time.sleep(min(left_s, SLICE_S))
    return not stopped
