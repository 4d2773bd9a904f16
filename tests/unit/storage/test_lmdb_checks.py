"""Where an embedded store can be kept: its file system, free space, and the limit of its map."""

from pathlib import Path
from typing import Any

import pytest

from storage.lmdb.kind import Directory, directory_at, directory_findings, file_system_of

GIB = 1 << 30
MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
24 23 0:41 / /srv/local\\040disk rw - xfs /dev/sdb1 rw
23 22 0:40 / /srv rw,relatime shared:1 - nfs4 server:/srv rw
25 22 0:42 / /run rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/store", "ext4"),
        ("/srv/store", "nfs4"),
        ("/srv/local disk/s", "xfs"),
        ("/run", "tmpfs"),
        ("/srvx", "ext4"),
    ],
)
def test_the_kind_of_file_system(path: str, kind: str) -> None:
    """The closest mount point above a path counts, compared by whole names, also names with spaces."""
    assert file_system_of(Path(path), MOUNTS) == kind


@pytest.mark.parametrize(
    ("changed", "worst"),
    [
        ({}, "ok"),
        ({"size_bytes": None}, "ok"),
        ({"writable": False}, "refused"),
        ({"file_system": "nfs4"}, "misconfigured"),
        ({"file_system": "fuse.sshfs"}, "misconfigured"),
        ({"file_system": "tmpfs"}, "warning"),
        ({"file_system": "overlay"}, "warning"),
        ({"free_bytes": 10 << 20}, "broken"),
        ({"free_bytes": 500 << 20}, "warning"),
        ({"size_bytes": 9 * GIB}, "warning"),
    ],
)
def test_where_an_embedded_store_lies(changed: dict[str, Any], worst: str) -> None:
    """Free space, permissions, the file system, and the size of the map are checked."""
    found = Directory(Path("/store"), "ext4", 100 * GIB, writable=True, size_bytes=GIB)._replace(**changed)
    statuses = {finding.status for finding in directory_findings(found, 10 * GIB)}
    assert (statuses - {"ok"} or {"ok"}) == {worst}


def test_a_store_that_is_not_there_yet_is_looked_for_above(tmp_path: Path) -> None:
    """The check creates nothing."""
    found = directory_at(tmp_path / "a" / "b", tmp_path / "a" / "b" / "data.mdb")
    assert (found.writable, found.size_bytes) == (True, None)
    assert list(tmp_path.iterdir()) == []
    assert found.free_bytes > 0
