"""What the client library and HBase say becomes a sentence, whatever they say it with."""

import pytest
from thriftpy2.thrift import TApplicationException

from storage.errors import StoreError, StoreRefused
from storage.hbase.failures import RequestDenied, RowTooBig, permanent_error, text_of
from storage.hbase.thrift_client import DECLARED_ERRORS


def test_messages_are_read_whatever_they_are_made_of() -> None:
    """Bytes, text, an exception whose ``str()`` fails, and one without a message."""
    declared = DECLARED_ERRORS[0](b"java.io.IOException: caf\xc3\xa9\n\tat org")
    assert text_of(declared) == "java.io.IOException: café\n\tat org"
    assert text_of(TApplicationException(6, b"Internal error")) == "Internal error"
    assert text_of(ConnectionRefusedError(111, "Connection refused")) == "Connection refused"
    assert text_of(TimeoutError("timed out")) == "TimeoutError: timed out"
    assert text_of(EOFError()) == "EOFError"


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("RetriesExhausted: Failed 1 action\n\tCaused by: NoSuchColumnFamilyException: zz", StoreRefused),
        ("AccessDeniedException: no", StoreRefused),
        ("RowTooBigException: Max row size allowed: 1048576", RowTooBig),
        ("java.lang.IllegalArgumentException: KeyValue size too large\n\tat org", StoreError),
        ("NotServingRegionException: is not online", type(None)),
        ("org.apache.hadoop.hbase.TableNotFoundException: feed:articles", type(None)),
        ("org.apache.hadoop.hbase.TableNotEnabledException: feed:articles is disabled.", type(None)),
        ("CallQueueTooBigException", type(None)),
    ],
)
def test_what_no_waiting_would_change_is_told_apart(text: str, becomes: type) -> None:
    """The rest is tried again. A sentence holds the first line of what HBase said, and no trace of its code."""
    error = permanent_error(RequestDenied(text), "hbase://gateway:9090/feed")
    assert type(error) is becomes
    assert error is None or "\n" not in str(error)


def test_long_words_are_cut() -> None:
    """A sentence stays one."""
    assert len(str(RequestDenied("x" * 5_000))) < 350
