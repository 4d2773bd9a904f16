"""How much is read at once, and how much a record may have."""

import msgspec


class DecodeLimits(msgspec.Struct, frozen=True):
    """How much of everything a record may have.

    ``depth_max`` counts objects and lists within each other, the record itself as 1. ``body_chars_max`` is of the body
    as it comes, markup included. The other limits are on what a record becomes, and hold before it becomes that:
    ``values_max`` counts objects, lists, members and items, ``attributes_max`` those of one HTML tag. A text may have
    ``folded_chars_max`` characters after folding, and grow by a factor of ``fold_growth_max`` at most; the latter holds
    only where it has more than ``FOLDED_FREE_CHARS`` afterwards.

    Each limit counts what is there and never takes the time, so every machine gives a record the same answer.
    """

    record_bytes_max: int = 8 * 1024 * 1024
    body_chars_max: int = 1_000_000
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
    """``record_bytes_max`` is of one record without its line end; the others are of a batch, which has one at least."""

    record_bytes_max: int = 8 * 1024 * 1024
    batch_records_max: int = 256
    batch_bytes_max: int = 8 * 1024 * 1024
