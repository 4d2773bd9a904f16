"""Checks that every page in use of a data file can be read, fits into its tree, and is used only once.

LMDB checks little of a page, and only when it uses the page, so reading may succeed in a store where a write fails.
This check walks all trees of one transaction, including the free list, whose pages only writers read. ``data_file``
describes the layout.
"""

import os
import struct
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from storage.lmdb.data_file import BIG_DATA, BRANCH, DATA_FILE, NO_PAGE, NODE, PAGE, WORD
from storage.lmdb.layout import UnreadableError

_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_LEAF_OF_VALUES: Final = 0x22
"""A page without nodes: values of one width, one after the other."""
_SUB_PAGE: Final = 0x40
_KIND: Final = BRANCH | _LEAF_OF_VALUES | _OVERFLOW | _SUB_PAGE
_SUB_TREE: Final = 0x02
_DUPLICATES: Final = 0x04
_TREE: Final = struct.Struct("=IHHQQQQQ")
_TREES: Final = PAGE.size + 24
"""The offset of a meta page's two trees: the free list and the databases."""
_META_BYTES: Final = _TREES + 2 * _TREE.size + 2 * WORD.size
_META_PAGES: Final = 2
_OVERFLOW_PAGES: Final = struct.Struct("=12xI")


class _Tree(NamedTuple):
    """An ``MDB_db``; for the free list, ``pad`` is the size of a page."""

    pad: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class _Node(NamedTuple):
    """A node: its flags, key and data. For long data, ``data`` is the number of its first page."""

    flags: int
    key: bytes
    data_bytes: int
    data: bytes


class _Step(NamedTuple):
    """A page to check, its level in the tree, and the bounds of its keys: from ``first`` to just before ``end``."""

    page: int
    level: int
    first: bytes | None
    end: bytes | None


_Order = Callable[[bytes], bytes]


def check_pages(path: Path, transaction: int) -> bool:
    """Check all pages as seen by this open transaction. Raises ``UnreadableError``.

    Returns False, and checks nothing, if later transactions have replaced the meta page of this one.
    """
    with (path / DATA_FILE).open("rb", buffering=0) as file:
        head = os.pread(file.fileno(), _META_BYTES, 0)
        page_bytes = _Tree(*_TREE.unpack_from(head, _TREES)).pad
        for meta in (head, os.pread(file.fileno(), _META_BYTES, page_bytes)):
            last_page, written_by = struct.unpack_from("=QQ", meta, _META_BYTES - 2 * WORD.size)
            if written_by == transaction:
                free, main = (_Tree(*_TREE.unpack_from(meta, _TREES + place * _TREE.size)) for place in (0, 1))
                _check(_Pages(file, page_bytes, last_page), free, main)
                return True
    return False


def _check(pages: "_Pages", free: _Tree, main: _Tree) -> None:
    for database in pages.nodes(main, _as_bytes):
        if not database.flags & _SUB_TREE:
            continue
        for node in pages.nodes(_sub_tree(database), _as_bytes):
            if node.flags & _SUB_TREE:
                pages.check_values(_sub_tree(node))
            elif node.flags & _DUPLICATES:
                pages.check_sub_page(node.data)
    for node in pages.nodes(free, _as_number):
        pages.check_free(pages.node_data(node))


def _sub_tree(node: _Node) -> _Tree:
    if len(node.data) != _TREE.size:
        raise UnreadableError(f"the root of a tree has {len(node.data)} bytes")
    return _Tree(*_TREE.unpack(node.data))


class _Pages:
    """The pages of a file; each may be used only once."""

    def __init__(self, file: BinaryIO, page_bytes: int, last_page: int) -> None:
        self._file = file
        self._page_bytes = page_bytes
        self._used = bytearray(last_page + 1)

    def nodes(self, tree: _Tree, order: _Order) -> Iterator[_Node]:
        """Check the pages of a tree, and yield the nodes of its leaves."""
        for number, page, step in self._leaves(tree, order):
            keys: list[bytes] = []
            for node in self._nodes_of(number, page):
                if node.flags & BIG_DATA:
                    self._use_overflow(node)
                keys.append(order(node.key))
                yield node
            _check_order(number, keys, step)

    def check_values(self, tree: _Tree) -> None:
        """Check a tree whose leaves contain only values of one width."""
        for number, page, step in self._leaves(tree, _as_bytes, _LEAF_OF_VALUES):
            _check_order(number, _values_of(number, page, tree.pad), step)

    def check_sub_page(self, page: bytes) -> None:
        """Check values of one width within a node."""
        if len(page) < PAGE.size:
            raise UnreadableError(f"a row has {len(page)} bytes")
        _, width, flags, _, _ = PAGE.unpack_from(page)
        if flags & _KIND != _LEAF_OF_VALUES | _SUB_PAGE:
            raise UnreadableError("a row is not a page of values")
        _check_order(None, _values_of(None, page, width), _Step(0, 0, None, None))

    def check_free(self, listed: bytes) -> None:
        """Check a list of free pages, which begins with their count."""
        count = WORD.unpack_from(listed)[0] if len(listed) >= WORD.size else None
        if count is None or (count + 1) * WORD.size > len(listed):
            raise UnreadableError("a list of free pages is cut short")
        for (number,) in WORD.iter_unpack(listed[WORD.size : (count + 1) * WORD.size]):
            self._use(number)

    def node_data(self, node: _Node) -> bytes:
        """Return the data of a node, from its overflow pages if it has any."""
        if not node.flags & BIG_DATA:
            return node.data
        (first,) = WORD.unpack(node.data)
        return self._read(first * self._page_bytes + PAGE.size, node.data_bytes)

    def _leaves(self, tree: _Tree, order: _Order, kind: int = _LEAF) -> Iterator[tuple[int, bytes, _Step]]:
        waiting = [] if tree.root == NO_PAGE else [_Step(tree.root, 1, None, None)]
        while waiting:
            step = waiting.pop()
            self._use(step.page)
            page = self._read(step.page * self._page_bytes, self._page_bytes)
            number, _, flags, _, _ = PAGE.unpack_from(page)
            expected = kind if step.level == tree.depth else BRANCH
            if number != step.page or flags & _KIND != expected:
                raise UnreadableError(
                    f"page {step.page:,} of {DATA_FILE} does not belong to the tree that refers to it"
                )
            if expected == kind:
                yield number, page, step
            else:
                waiting += self._child_steps(step, page, order)

    def _child_steps(self, step: _Step, page: bytes, order: _Order) -> list[_Step]:
        nodes = list(self._nodes_of(step.page, page))
        # The first key of a branch is not checked: it counts as lower than all others.
        keys = [order(node.key) for node in nodes[1:]]
        _check_order(step.page, keys, step)
        firsts, ends = [step.first, *keys], [*keys, step.end]
        return [
            _Step(_child(node), step.level + 1, first, end)
            for node, first, end in zip(nodes, firsts, ends, strict=True)
        ]

    def _nodes_of(self, number: int, page: bytes) -> Iterator[_Node]:
        """Yield the nodes of a page; a node of a branch has the number of its child page as ``data_bytes``."""
        _, _, kind, lower, upper = PAGE.unpack_from(page)
        if not PAGE.size < lower <= upper <= len(page) or lower % 2:
            raise UnreadableError(f"page {number:,} of {DATA_FILE} has impossible bounds")
        for (place,) in struct.iter_unpack("=H", page[PAGE.size : lower]):
            if not upper <= place <= len(page) - NODE.size:
                raise _out_of_page(number)
            low, high, flags, key_bytes = NODE.unpack_from(page, place)
            start = place + NODE.size + key_bytes
            if kind & BRANCH:
                size, data_bytes, flags = 0, low | high << 16 | flags << 32, 0
            else:
                data_bytes = low | high << 16
                size = WORD.size if flags & BIG_DATA else data_bytes
            if start + size > len(page):
                raise _out_of_page(number)
            yield _Node(flags, page[start - key_bytes : start], data_bytes, page[start : start + size])

    def _use_overflow(self, node: _Node) -> None:
        (first,) = WORD.unpack(node.data)
        count = (PAGE.size - 1 + node.data_bytes) // self._page_bytes + 1
        for number in range(first, first + count):
            self._use(number)
        page = self._read(first * self._page_bytes, PAGE.size)
        number, _, flags, _, _ = PAGE.unpack(page)
        if number != first or flags & _KIND != _OVERFLOW or _OVERFLOW_PAGES.unpack(page)[0] != count:
            raise UnreadableError(f"page {first:,} of {DATA_FILE} does not begin a value of {node.data_bytes:,} bytes")

    def _use(self, number: int) -> None:
        if not _META_PAGES <= number < len(self._used):
            raise UnreadableError(f"page {number:,} of {DATA_FILE} is referred to, but does not exist")
        if self._used[number]:
            raise UnreadableError(f"page {number:,} of {DATA_FILE} is used twice")
        self._used[number] = 1

    def _read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._file.fileno(), size, offset)
        if len(data) < size:
            raise UnreadableError(f"{DATA_FILE} ends before byte {offset + size:,}")
        return data


def _child(node: _Node) -> int:
    return node.data_bytes


def _values_of(number: int | None, page: bytes, width: int) -> list[bytes]:
    """Return the values of one width after the head of a page."""
    _, own_width, _, lower, _ = PAGE.unpack_from(page)
    end = PAGE.size + (lower - PAGE.size) // 2 * width
    if lower <= PAGE.size or lower % 2 or not width or own_width != width or end > len(page):
        raise UnreadableError(f"{_page_name(number)} has impossible bounds")
    return [page[start : start + width] for start in range(PAGE.size, end, width)]


def _check_order(number: int | None, keys: list[bytes], step: _Step) -> None:
    """Raise ``UnreadableError`` unless the keys ascend within the bounds of the step."""
    is_within = not keys or (
        (step.first is None or step.first <= keys[0]) and (step.end is None or keys[-1] < step.end)
    )
    if not is_within or any(before >= key for before, key in pairwise(keys)):
        raise UnreadableError(f"the keys of {_page_name(number)} are not in order")


def _page_name(number: int | None) -> str:
    return "a row" if number is None else f"page {number:,} of {DATA_FILE}"


def _out_of_page(number: int) -> UnreadableError:
    return UnreadableError(f"page {number:,} of {DATA_FILE} has a node beyond its end")


def _as_bytes(key: bytes) -> bytes:
    return key


def _as_number(key: bytes) -> bytes:
    """Return a number in the machine's byte order as bytes that sort like the number."""
    return key[::-1] if sys.byteorder == "little" else key
