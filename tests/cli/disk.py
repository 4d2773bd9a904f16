"""Computes what remains after a power loss, in the worst case: nothing is on the disk without an ``fsync``."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest

from storage.lmdb.data_file import DATA_FILE


class Disk:
    """Watches a folder while this process writes to it.

    Contents of files and names in folders are on the disk as of their last ``fsync``. LMDB calls the system by itself:
    what it has committed is on the disk where it was opened with ``sync``, and nothing of it elsewhere. ``moment`` is
    called before and after everything that changes what is on the disk or in its cache.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.moment: Callable[[], None] = lambda: None
        self._contents: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, int]] = {folder: {}}
        # An inode that is held has no successor with its number.
        self._held: list[int] = []
        self._are_synced: list[bool] = []
        self._is_busy = False
        for name, after in (("fsync", self._synced), ("write", None), ("replace", None), ("rename", None)):
            patch.setattr(os, name, self._watched(getattr(os, name), after))
        patch.setattr(lmdb, "open", self._opened(lmdb.open))

    def image(self, target: Path) -> None:
        """Write the contents of the disk to another folder."""
        for folder, names in sorted(self._names.items()):
            copy = target / folder.relative_to(self.folder)
            if folder != self.folder and not copy.is_dir():
                continue
            copy.mkdir(exist_ok=True)
            for name, inode in names.items():
                there = folder / name
                if there.is_dir():
                    (copy / name).mkdir()
                elif name == DATA_FILE and all(self._are_synced):
                    shutil.copyfile(there, copy / name)
                elif name != DATA_FILE:
                    (copy / name).write_bytes(self._contents.get(inode, b""))

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._held:
            os.close(descriptor)

    def _watched(self, really: Callable[..., Any], after: Callable[..., None] | None) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401  # whatever the system is asked
            if self._is_busy:
                return really(*arguments, **more)
            self._tell()
            result = really(*arguments, **more)
            if after is not None:
                after(*arguments)
            self._tell()
            return result

        return call

    def _tell(self) -> None:
        self._is_busy = True
        try:
            self.moment()
        finally:
            self._is_busy = False

    def _synced(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if not path.is_relative_to(self.folder):
            return
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            self._names[path] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self._held.append(os.dup(descriptor))
            self._contents[found.st_ino] = path.read_bytes()

    def _opened(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: str, **options: Any) -> Any:  # noqa: ANN401  # as lmdb.open takes them
            env = really(path, **options)
            if not self._is_busy:
                flags = env.flags()
                self._are_synced.append(flags["sync"] and flags["metasync"] and not flags["map_async"])
            return env

        return call
