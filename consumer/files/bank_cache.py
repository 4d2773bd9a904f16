"""A cache of the fingerprints of bank items: one file, which is replaced as a whole.

::

    head      16 bytes of format, and the numbers of items, of shingles, of items with facts, and of bytes of facts
    seal      of the head, 32 bytes
    arrays    see ``_shapes``, one after the other
    seal      of the head and the arrays, 32 bytes

A seal is a keyed digest. Its key comes from the secret of the store and from everything that fingerprints depend on, so
that neither a file of another store nor a changed file is used. The file's name is a digest of what fingerprints depend
on.
"""

import hashlib
import hmac
import json
import logging
import struct
import sys
from collections.abc import Iterator, Sequence
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.index import SKETCH_BYTES, TextFeatures
from consumer.banks.item_fingerprints import DIGEST_WORDS, ItemFingerprints
from consumer.banks.rows import KeyIndex
from storage.files import WriteOptions, locked_folder, make_folders, opened_regular_file, replace_with_pieces

log = logging.getLogger("dupwatch")

FORMAT: Final = b"dupwatch banks 1"
_NUMBERS: Final = struct.Struct("<4Q")
_SEAL_BYTES: Final = 32
_NAME_BYTES: Final = 16
_PIECE_BYTES: Final = 1 << 20
_Array = npt.NDArray[Any]


class CacheIdentity(NamedTuple):
    """Everything that cached fingerprints depend on, by name, and the secret that the key of the seals comes from."""

    dependencies: dict[str, str | int]
    seal_key: bytes

    def encode(self) -> bytes:
        """Return ``dependencies`` as canonical JSON, with the format and the byte order of this machine."""
        dependencies = self.dependencies | {"format": FORMAT.decode(), "byte_order": sys.byteorder}
        return json.dumps(dependencies, sort_keys=True, separators=(",", ":")).encode()

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{hashlib.blake2b(self.encode(), digest_size=_NAME_BYTES).hexdigest()}.fingerprints"


class BankCache:
    """The cache file in a folder. Errors of the file are logged as warnings and never reach the caller."""

    def __init__(self, folder: Path, identity: CacheIdentity, writing: WriteOptions) -> None:
        self._path = folder / identity.name
        self._writing = writing
        self._key = hashlib.blake2b(identity.encode(), key=identity.seal_key, digest_size=_SEAL_BYTES).digest()
        self._version = _version(self._path)

    def load(self) -> ItemFingerprints | None:
        """Return the fingerprints in the file, or None if it is missing or cannot be used."""
        try:
            with opened_regular_file(self._path) as (descriptor, status), open(descriptor, "rb", closefd=False) as file:
                return _read(file, status.st_size, self._key)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn_unusable(error.strerror or str(error))
        except (ValueError, MemoryError) as error:
            self._warn_unusable(str(error) or "there is not enough memory")
        return None

    def save(self, parts: Sequence[ItemFingerprints]) -> bool:
        """Replace the file, unless another process has done so. Return False if another is replacing it now, else True.

        Logs a warning if the file cannot be written, and then returns True.
        """
        try:
            make_folders(self._path.parent, self._writing.mode)
            with locked_folder(self._path.parent, 0):
                # Another process has the same banks, so it has computed the same fingerprints.
                if _version(self._path) == self._version:
                    pieces = _pieces(parts, self._key)
                    replace_with_pieces(self._path, self._path.with_suffix(".new"), pieces, self._writing)
                self._version = _version(self._path)
        except TimeoutError:
            return False
        except OSError as error:
            why = error.strerror or str(error)
            log.warning("The cache of banks %s cannot be written, so the next start takes long: %s", self._path, why)
        return True

    def _warn_unusable(self, why: str) -> None:
        log.warning(
            "The cache of banks %s cannot be used, so the fingerprints of all items are computed: %s", self._path, why
        )


class _Head(NamedTuple):
    items: int
    shingles: int
    with_facts: int
    facts_bytes: int

    @classmethod
    def of(cls, parts: Sequence[ItemFingerprints]) -> Self:
        return cls(
            sum(len(part) for part in parts),
            sum(len(part.shingles.keys) for part in parts),
            sum(len(part.facts) for part in parts),
            sum(len(facts) for part in parts for facts in part.facts.values()),
        )

    def encode(self) -> bytes:
        return FORMAT + _NUMBERS.pack(*self)


_HEAD_BYTES: Final = len(FORMAT) + _NUMBERS.size


def _shapes(head: _Head) -> list[tuple[type[np.unsignedinteger], tuple[int, ...]]]:
    """Return the type and the shape of each array, in the order of ``_columns``."""
    return [
        (np.uint64, (head.items, DIGEST_WORDS)),
        (np.uint8, (head.items,)),
        (np.uint8, (head.items, SKETCH_BYTES)),
        (np.uint64, (head.items, DIGEST_WORDS)),
        (np.uint64, (head.shingles,)),
        (np.uint32, (head.shingles,)),
        (np.uint32, (head.with_facts,)),
        (np.uint32, (head.with_facts,)),
        (np.uint8, (head.facts_bytes,)),
    ]


def _columns(part: ItemFingerprints, offset: int) -> list[_Array]:
    """Return the arrays of these items, whose numbers start with ``offset``."""
    return [
        part.digests,
        part.texts.kinds,
        part.texts.sketches,
        part.texts.text_digests,
        part.shingles.keys,
        part.shingles.items + np.uint32(offset) if offset else part.shingles.items,
        np.array([place + offset for place in part.facts], np.uint32),
        np.array([len(facts) for facts in part.facts.values()], np.uint32),
        np.frombuffer(b"".join(part.facts.values()), np.uint8),
    ]


def _pieces(parts: Sequence[ItemFingerprints], key: bytes) -> Iterator[bytes | memoryview]:
    """Yield the content of the file, piece by piece."""
    head = _Head.of(parts).encode()
    seal = _seal_of(head, key)
    yield head
    yield seal.digest()
    offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    for column in zip(*(_columns(part, offset) for part, offset in zip(parts, offsets, strict=False)), strict=True):
        for array in column:
            for piece in _pieces_of(array):
                seal.update(piece)
                yield piece
    yield seal.digest()


def _pieces_of(array: _Array) -> Iterator[memoryview]:
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return (content[at : at + _PIECE_BYTES] for at in range(0, len(content), _PIECE_BYTES))


def _read(file: BufferedReader, size_bytes: int, key: bytes) -> ItemFingerprints:
    """Return the fingerprints in a file. Raises ``ValueError`` unless ``_pieces`` wrote it with this key."""
    written = file.read(_HEAD_BYTES)
    seal = _seal_of(written, key)
    if not hmac.compare_digest(file.read(_SEAL_BYTES), seal.digest()):
        raise ValueError("it is damaged, or was not written by this version with the secret of this store")
    head = _Head(*_NUMBERS.unpack(written[len(FORMAT) :]))
    shapes = _shapes(head)
    sizes = [np.dtype(kind).itemsize * prod(shape) for kind, shape in shapes]
    # Checked before memory is allocated for the arrays.
    if size_bytes != _HEAD_BYTES + 2 * _SEAL_BYTES + sum(sizes):
        raise ValueError("it is incomplete")
    arrays = [np.empty(shape, kind) for kind, shape in shapes]
    for array in arrays:
        for piece in _pieces_of(array):
            if file.readinto(piece) != len(piece):
                raise ValueError("it is incomplete")
            seal.update(piece)
    if not hmac.compare_digest(file.read(_SEAL_BYTES), seal.digest()):
        raise ValueError("it is damaged")
    return _fingerprints(arrays)


def _fingerprints(arrays: list[_Array]) -> ItemFingerprints:
    digests, kinds, sketches, text_digests, keys, items, with_facts, sizes, facts = arrays
    ends = np.cumsum(sizes, dtype=np.int64)
    if (items >= len(kinds)).any() or (with_facts >= len(kinds)).any() or ends[-1:].sum() != len(facts):
        raise ValueError("it contradicts itself")
    # Keys are in order within each part that was written, but not always across parts.
    is_ordered = bool((keys[1:] >= keys[:-1]).all())
    packed = facts.tobytes()
    by_place = zip(with_facts.tolist(), sizes.tolist(), ends.tolist(), strict=True)
    return ItemFingerprints(
        digests,
        TextFeatures(kinds, sketches, text_digests),
        KeyIndex(keys, items) if is_ordered else KeyIndex.of(keys, items),
        {place: packed[end - size : end] for place, size, end in by_place},
    )


def _seal_of(content: bytes, key: bytes) -> "hashlib.blake2b":
    """Return the digest that seals content; it can be updated with more content."""
    return hashlib.blake2b(content, key=key, digest_size=_SEAL_BYTES)


def _version(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes when the file is replaced, or None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
