"""Limits on records, and on what is read at once."""

from typing import Final

import msgspec

KEY_CHARS_MAX: Final = 128
"""The maximum length in characters of the key that a request or a call from Python may have."""


class DecodeLimits(msgspec.Struct, frozen=True):
    """Limits on decoding a record. All are counts and none is a time, so every machine treats a record alike.

    ``depth_max`` limits the nesting of objects and lists; the record itself is at depth 1. ``body_chars_max`` limits
    the body as it arrives, markup included. For web pages ``body_chars_max`` limits the extracted text, and
    ``page_chars_max`` the page. ``values_max`` limits objects, lists, members and items, and separately the elements
    and attributes of a web page; ``attributes_max`` limits the different attributes of one HTML tag. Both are checked
    before JSON or HTML is parsed. A body may have ``folded_chars_max`` characters after folding, and be at most
    ``fold_growth_max`` times as long as before. The factor is checked only for bodies of more than
    ``decode.article.FOLDED_FREE_CHARS_MAX`` characters after folding.
    """

    record_bytes_max: int = 8 * 1024 * 1024
    body_chars_max: int = 1_000_000
    page_chars_max: int = 4_000_000
    folded_chars_max: int = 1_250_000
    fold_growth_max: int = 4
    values_max: int = 500_000
    attributes_max: int = 1_000
    id_bytes_max: int = 512
    depth_max: int = 32
    title_chars_max: int = 4096
    source_chars_max: int = 512
    url_chars_max: int = 8192
    lang_chars_max: int = 64


class ReadLimits(msgspec.Struct, frozen=True):
    """Limits on what a source reads at once.

    ``record_bytes_max`` limits one record without its line end. The other two limit a batch, but a single record
    may exceed ``batch_bytes_max``.
    """

    record_bytes_max: int = 8 * 1024 * 1024
    batch_records_max: int = 256
    batch_bytes_max: int = 8 * 1024 * 1024
