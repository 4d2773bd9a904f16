"""Parses JSON records, and gives precise reasons for records that cannot be parsed."""

import json
import re
from codecs import BOM_UTF8
from typing import Any, Final, NoReturn

import msgspec

from consumer.model.article import Reason, too_many_values
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.text.json_faults import json_fault

_STRING_OR_SIGN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[,\[{]', re.DOTALL)
_QUOTE: Final = ord('"')


def parse_json(data: bytes, values_max: int = DecodeLimits().values_max) -> object:
    """Parse JSON in UTF-8, with or without a byte order mark. Raises only ``BadRecord``."""
    check_values(data, values_max)
    return _parse(data.removeprefix(BOM_UTF8))


def check_values(data: bytes, values_max: int) -> None:
    """Raise ``BadRecord`` if JSON has more than ``values_max`` values, without parsing it."""
    # An empty object takes 3 bytes here and more than 64 in memory. The first count includes commas in strings; the
    # exact count follows only if the first one reaches the limit.
    signs = data.count(b",") + data.count(b"[") + data.count(b"{")
    if signs >= values_max and _has_more_values(data, values_max):
        raise too_many_values(values_max)


def _has_more_values(data: bytes, values_max: int) -> bool:
    values = 1
    for found in _STRING_OR_SIGN.finditer(data):
        values += data[found.start()] != _QUOTE
        if values > values_max:
            return True
    return False


def _parse(data: bytes) -> Any:  # noqa: ANN401  # whatever JSON can hold
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError as error:
        raise _invalid_utf8(data, error) from error
    except msgspec.ValidationError as error:
        raise BadRecord(Reason.NUMBER_OUT_OF_RANGE, "the record has a number that is out of range") from error
    except msgspec.DecodeError as error:
        raise _malformed(data, error) from error
    except RecursionError as error:
        raise _nested_too_deep() from error


def _malformed(data: bytes, error: msgspec.DecodeError) -> BadRecord:
    """Return why a record could not be decoded; the decoder raises the same error for different causes.

    The standard library's decoder is slower but accepts lone surrogates, so it distinguishes them from malformed JSON.
    """
    try:
        text = data.decode()
        if not text.strip():
            return BadRecord(Reason.INVALID_JSON, "the record is empty")
        loose = json.loads(text, parse_constant=_refuse, parse_int=len, parse_float=len)
        json.dumps(loose, ensure_ascii=False).encode()
    except UnicodeDecodeError as fault:
        return _invalid_utf8(data, fault)
    except UnicodeEncodeError:
        return BadRecord(Reason.LONE_SURROGATE, "an escape is one half of a surrogate pair, which is not a character")
    except RecursionError:
        return _nested_too_deep()
    except ValueError:
        pass
    return BadRecord(Reason.INVALID_JSON, f"the record is not JSON: {json_fault(error)}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _invalid_utf8(data: bytes, error: UnicodeDecodeError) -> BadRecord:
    """Return the error with its position in the record, since the decoder counts from the start of a string."""
    try:
        data.decode()
    except UnicodeDecodeError as whole:
        error = whole
    return BadRecord(Reason.INVALID_UTF8, f"the record is not UTF-8: {error.reason} at byte {error.start}")


def _nested_too_deep() -> BadRecord:
    return BadRecord(Reason.NESTED_TOO_DEEP, "objects or lists are nested too deep to be parsed")
