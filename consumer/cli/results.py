"""Results go to standard output; where nobody takes them any more, that is an error like any other."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from consumer.errors import SinkError


@contextmanager
def results() -> Iterator[None]:
    """Write to standard output while inside. Raises ``SinkError`` where that cannot be written."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would fail once more when the program ends.
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise SinkError(f"the results cannot be written: {error.strerror}") from error
