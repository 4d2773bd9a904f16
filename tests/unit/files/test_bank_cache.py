"""The cache of fingerprints of items: what is written is read again, and nothing else is."""

import logging
import multiprocessing
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

from consumer.banks.item_fingerprints import NO_FINGERPRINTS, ItemFingerprints
from consumer.files import bank_cache
from consumer.files.bank_cache import BankCache, CacheIdentity
from storage.files import WriteOptions, locked_folder
from tests.unit.banks.test_item_fingerprints import by_digest, drawn

WRITING = WriteOptions(durable=False)
IDENTITY = CacheIdentity({"banks": "banks.jsonl", "scheme": "jieba-tfidf/3+0a1b2c3d"}, bytes(32))
HELD = (drawn(30, 1), drawn(4, 2))
_KILLED = 9


def opened(folder: Path, identity: CacheIdentity = IDENTITY) -> BankCache:
    """Return the cache as a process that starts opens it."""
    return BankCache(folder, identity, WRITING)


def loaded(folder: Path, identity: CacheIdentity = IDENTITY) -> dict[bytes, tuple[object, ...]] | None:
    """Return what a process that starts finds."""
    found = opened(folder, identity).load()
    return None if found is None else by_digest(found)


def written(folder: Path, parts: Sequence[ItemFingerprints] = HELD, identity: CacheIdentity = IDENTITY) -> Path:
    """Write a cache, and return its file."""
    assert opened(folder, identity).save(parts)
    return folder / identity.name


@pytest.mark.parametrize("parts", [HELD, (drawn(9, 3), NO_FINGERPRINTS), (NO_FINGERPRINTS, NO_FINGERPRINTS)])
def test_what_is_written_is_read(tmp_path: Path, parts: tuple[ItemFingerprints, ...]) -> None:
    """All parts as one, with the keys in order."""
    written(tmp_path / "new" / "folder", parts)
    found = opened(tmp_path / "new" / "folder").load()
    assert found is not None
    assert by_digest(found) == by_digest(parts[0]) | by_digest(parts[1])
    assert (found.shingles.keys[1:] >= found.shingles.keys[:-1]).all()


def test_there_may_be_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Then nothing is said."""
    assert loaded(tmp_path) is None
    assert loaded(tmp_path / "missing") is None
    assert caplog.messages == []


def test_any_damage_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever a bit changes, bytes are missing or are added. The next process writes a new one."""
    path = written(tmp_path)
    content = path.read_bytes()
    places = [*range(120), *range(120, len(content), 97), len(content) - 1]
    damaged = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in places]
    cut = [content[:size] for size in (0, 1, 15, 40, 79, 80, 500, len(content) - 1)]
    for number, other in enumerate([*damaged, *cut, content + b"\0", bytes(len(content))]):
        path.write_bytes(other)
        assert loaded(tmp_path) is None, number
    assert {message.partition(",")[0] for message in caplog.messages} == {f"The cache of banks {path} cannot be used"}
    written(tmp_path)
    assert path.read_bytes() == content


def test_sizes_are_checked_before_memory_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a file that someone who knows the secret wrote."""
    monkeypatch.setattr(bank_cache._Head, "of", lambda _parts: bank_cache._Head(1 << 60, 1 << 60, 1 << 60, 1 << 60))
    written(tmp_path)
    assert loaded(tmp_path) is None


def test_a_cache_that_contradicts_itself_is_not_used(tmp_path: Path) -> None:
    """Whoever wrote it: a shingle of an item that is not there."""
    fingerprints = drawn(5, 7)
    fingerprints.shingles.items[3] = 5
    written(tmp_path, [fingerprints])
    assert loaded(tmp_path) is None


def test_caches_of_other_stores_stay_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each is found by its own processes, and one under the name of another is not used."""
    others = [
        CacheIdentity(IDENTITY.dependencies | {"scheme": "jieba-tfidf/3+ffffffff"}, bytes(32)),
        CacheIdentity(IDENTITY.dependencies | {"revision": 7}, bytes(32)),
    ]
    first = written(tmp_path)
    for other in others:
        assert loaded(tmp_path, other) is None
        path = written(tmp_path, [drawn(3, 8)], other)
        assert path != first
    assert loaded(tmp_path) == by_digest(HELD[0]) | by_digest(HELD[1])
    assert caplog.messages == []
    first.write_bytes(path.read_bytes())
    assert loaded(tmp_path) is None


def test_without_the_secret_nobody_writes_a_cache(tmp_path: Path) -> None:
    """The name of the file says nothing about it."""
    forger = CacheIdentity(IDENTITY.dependencies, b"guessed".ljust(32))
    assert forger.name == IDENTITY.name
    written(tmp_path, identity=forger)
    assert loaded(tmp_path) is None


@pytest.mark.parametrize("kind", ["folder", "pipe", "unreadable"])
def test_what_is_no_file_is_not_used(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """No process waits for it; where it can be replaced, it is."""
    path = tmp_path / IDENTITY.name
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        written(tmp_path).chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user reads every file")
    cache = opened(tmp_path)
    assert cache.load() is None
    assert "cannot be used" in caplog.text
    assert cache.save(HELD)
    if kind == "folder":
        assert "cannot be written" in caplog.text
    else:
        assert stat.S_IMODE(path.stat().st_mode) == WRITING.mode
        assert loaded(tmp_path) is not None


def test_a_folder_that_cannot_be_made_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The caller does not try again at once."""
    (tmp_path / "file").touch()
    cache = opened(tmp_path / "file" / "cache")
    assert cache.load() is None
    assert cache.save(HELD)
    assert "cannot be written" in caplog.text


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    """As of stores, unless a setting says otherwise."""
    path = written(tmp_path / "cache")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]


def test_a_killed_writer_leaves_the_earlier_file(tmp_path: Path) -> None:
    """What it had written is replaced by the next one."""
    path = written(tmp_path)
    content = path.read_bytes()
    process = multiprocessing.get_context("fork").Process(target=_write_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == _KILLED
    assert path.read_bytes() == content
    assert sorted(each.suffix for each in tmp_path.iterdir()) == [".fingerprints", ".new"]
    written(tmp_path, [drawn(5, 9)])
    assert loaded(tmp_path) == by_digest(drawn(5, 9))
    assert list(tmp_path.iterdir()) == [path]


def _write_and_die(folder: Path) -> None:
    pieces = bank_cache._pieces

    def first_ones(parts: Sequence[ItemFingerprints], key: bytes) -> Iterator[bytes | memoryview]:
        yield from islice(pieces(parts, key), 4)
        os._exit(_KILLED)

    bank_cache._pieces = first_ones
    opened(folder).save(HELD)


def test_one_process_writes_at_a_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The other tries again later, and then leaves what the first has written: its banks are the same."""
    caplog.set_level(logging.WARNING)
    cache = opened(tmp_path)
    with locked_folder(tmp_path, 0):
        assert not cache.save(HELD)
    path = written(tmp_path, [drawn(5, 10)])
    content = path.read_bytes()
    assert cache.save(HELD)
    assert path.read_bytes() == content
    assert cache.save(HELD)
    assert path.read_bytes() != content
    assert caplog.messages == []
