"""Limits on records, and on what is read at once."""

from typing import Final

import msgspec

KEY_CHARS_MAX: Final = 128
"""Characters of the key of a request, or of a call from Python."""


class DecodeLimits(msgspec.Struct, frozen=True):
    """Limits on a record that is decoded.

    ``depth_max`` is how deep objects and lists are nested, the record itself being 1. ``body_chars_max`` is the length
    of the body as it arrives, markup included; of a web page it is the length of what is taken from it, and
    ``page_chars_max`` that of the page. The other limits are on what a record is decoded into, and are checked before
    it is: ``values_max`` counts objects, lists, members and items, and apart from them the elements and attributes of a
    web page, ``attributes_max`` the attributes of one HTML tag. A text may have ``folded_chars_max`` characters after
    folding, and be at most ``fold_growth_max`` times as long as before; the factor is only checked for texts of more
    than ``FOLDED_FREE_CHARS`` after folding.

    All limits are counts and none is a time, so that every machine treats a record alike.
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

    ``record_bytes_max`` is the size of one record without its line end. The others are of a batch, which always has at
    least one record.
    """

    record_bytes_max: int = 8 * 1024 * 1024
    batch_records_max: int = 256
    batch_bytes_max: int = 8 * 1024 * 1024
