"""The file of banks: what is appended, followed and written anew, and what a killed process leaves."""

import errno
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from consumer.banks.bank import Bank, BankError, BankItem, Banks, BanksMissing, Entry, decode_entry, encode_entry
from consumer.banks.bank_log import BankLogChange
from consumer.files import bank_file
from consumer.files.bank_file import BankFile
from storage.files import WriteOptions

WRITING = WriteOptions(durable=False)
SPAM = Bank(bank="spam", action="deny")


def item(number: int, text: str = "Win a ferry ticket") -> BankItem:
    """Return an item."""
    return BankItem(bank="spam", item=f"i{number}", text=text)


def append(path: Path, *entries: Entry) -> None:
    """Append entries."""
    BankFile(path, WRITING).change(lambda _: entries)


def banks_in(path: Path) -> Banks:
    """Return the banks in a file."""
    return Banks.of(BankFile(path, WRITING).read().entries)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file with one bank."""
    path = tmp_path / "banks.jsonl"
    append(path, SPAM)
    return path


def test_a_reader_reads_what_was_appended(path: Path) -> None:
    """And nothing of what it has read before."""
    file = BankFile(path, WRITING)
    assert file.read() == ([SPAM], True, 0)
    append(path, item(1), item(2))
    assert file.read() == ([item(1), item(2)], False, 0)
    assert file.read() == ([], False, 0)


def test_a_file_that_was_replaced_is_read_as_a_whole(path: Path) -> None:
    """Even by one that is longer, and begins alike."""
    file = BankFile(path, WRITING)
    file.read()
    other = Bank(bank="other", action="allow")
    path.write_bytes(encode_entry(other) + b"\n" + encode_entry(SPAM) + b"\n")
    assert file.read() == ([other, SPAM], True, 0)
    path.write_bytes(path.read_bytes().replace(b"allow", b"denys"))
    with pytest.raises(BankError, match="line 1"):
        file.read()


def test_a_second_change_reads_only_what_was_appended(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made to the banks as they are, and a reader of the same log misses nothing."""
    held: list[Banks] = []
    decoded: list[bytes] = []

    def changing(*entries: Entry) -> BankLogChange:
        def change(banks: Banks) -> Sequence[Entry]:
            held.append(banks)
            return entries

        return change

    def decode(line: bytes) -> Entry:
        decoded.append(line)
        return decode_entry(line)

    monkeypatch.setattr(bank_file, "decode_entry", decode)
    file = BankFile(path, WRITING)
    assert file.read().entries == [SPAM]
    file.change(changing(item(1)))
    append(path, item(2))
    decoded.clear()
    file.change(changing(item(3)))
    assert held[-1] == Banks.of([SPAM, item(1), item(2)])
    # Its own change, and that of the other process.
    assert len(decoded) == 2
    assert file.read() == ([SPAM, item(1), item(2), item(3)], True, 0)
    append(path, item(4))
    assert file.read() == ([item(4)], False, 0)
    path.write_bytes(encode_entry(SPAM) + b"\n")
    file.change(changing(item(5)))
    assert held[-1] == Banks.of([SPAM])
    assert file.read() == ([SPAM, item(5)], True, 0)
    path.unlink()
    file.change(changing(SPAM))
    assert held[-1] == Banks.of([])


def test_an_incomplete_line_waits_until_it_is_whole(path: Path) -> None:
    """A reader leaves it alone; a writer after a kill removes it."""
    followed = BankFile(path, WRITING)
    followed.read()
    line = encode_entry(item(1)) + b"\n"
    with path.open("ab") as file:
        file.write(line[:20])
    assert followed.read() == ([], False, 0)
    with path.open("ab") as file:
        file.write(line[20:] + b'{"bank": "sp')
    assert followed.read() == ([item(1)], False, 0)
    append(path, item(2))
    assert followed.read() == ([item(2)], False, 0)


def test_a_last_line_without_a_line_end_is_an_entry(path: Path) -> None:
    """As an editor leaves it: it is read once, and the next change comes after it."""
    followed = BankFile(path, WRITING)
    followed.read()
    with path.open("ab") as file:
        file.write(encode_entry(item(1)))
    assert followed.read() == ([item(1)], False, 0)
    assert followed.read() == ([], False, 0)
    append(path, item(2))
    assert followed.read() == ([item(2)], False, 0)
    assert list(banks_in(path).entries()) == [SPAM, item(1), item(2)]
    with path.open("ab") as file:
        file.write(b"\n{}\n")
    with pytest.raises(BankError, match=r"banks\.jsonl, line 5: "):
        followed.read()


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08 packed", b"A note without a line end", b'{"id": 1}', b"[]"])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    """Even where it has no line end: nothing of it is taken for an incomplete entry, and cut off."""
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(BankError, match="line 1"):
        banks_in(path)
    with pytest.raises(BankError, match="line 1"):
        append(path, SPAM)
    assert path.read_bytes() == content


def test_a_link_stays_a_link(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When superseded lines are dropped, the file that it names is written anew."""
    monkeypatch.setattr(bank_file, "SUPERSEDED_MIN", 3)
    link = path.parent / "links" / "banks.jsonl"
    link.parent.mkdir()
    link.symlink_to(path)
    for number in range(6):
        append(link, item(1, f"Win a ferry ticket {number}"))
    assert link.is_symlink()
    assert banks_in(path) == banks_in(link)
    assert path.read_bytes().count(b"\n") < 6


def test_a_line_at_fault_is_named(path: Path) -> None:
    """Blank lines count and do no harm."""
    with path.open("ab") as file:
        file.write(b"\n\n{}\n")
    with pytest.raises(BankError, match=r"banks\.jsonl, line 4: "):
        banks_in(path)
    with pytest.raises(BankError, match="line 4"):
        append(path, item(1))


def test_entries_that_contradict_the_banks_change_nothing(path: Path) -> None:
    """All of them are checked before the first is written."""
    before = path.read_bytes()
    with pytest.raises(BankError, match="no bank 'other'"):
        append(path, item(1), BankItem(bank="other", item="x", text="letters"))
    assert path.read_bytes() == before


def test_superseded_lines_are_dropped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there are more of them than of others; a reader then reads the file as a whole."""
    monkeypatch.setattr(bank_file, "SUPERSEDED_MIN", 3)
    followed = BankFile(path, WRITING)
    followed.read()
    for number in range(6):
        append(path, item(1, f"Win a ferry ticket {number}"))
    assert path.read_bytes().count(b"\n") < 6
    found = followed.read()
    assert found.is_whole
    assert Banks.of(found.entries).items["spam", "i1"].text == "Win a ferry ticket 5"


def test_a_file_that_becomes_empty_is_damaged(path: Path) -> None:
    """Nobody removes all banks like this; one that was empty from the beginning has none yet."""
    file = BankFile(path, WRITING)
    file.read()
    before = path.read_bytes()
    for content in (b"", b"\n", before[:5]):
        path.write_bytes(content)
        for _ in range(2):
            with pytest.raises(BankError, match="has become empty"):
                file.read()
            file.close()
        with pytest.raises(BankError, match="has become empty"):
            file.change(lambda _: [SPAM])
        assert BankFile(path, WRITING).read() == ([], True, 0)
    append(path, SPAM)
    assert file.read() == ([SPAM], True, 0)


def test_a_file_whose_banks_were_all_removed_is_not_empty(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its followers would take it for a damaged one."""
    monkeypatch.setattr(bank_file, "SUPERSEDED_MIN", 2)
    append(path, item(1), item(2), item(3))
    file = BankFile(path, WRITING)
    file.read()
    append(path, Bank(bank="spam", removed=True))
    assert file.read() == ([Bank(bank="spam", removed=True)], False, 0)
    file.close()
    assert Banks.of(file.read().entries) == Banks.of(())


@pytest.mark.parametrize(("name", "fault"), [("missing", "does not exist"), ("folder", "cannot be read")])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, fault: str) -> None:
    """The sentence names it; only one that is not there may be created."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(BankError, match=f"{name} {fault}") as raised:
        banks_in(tmp_path / name)
    assert isinstance(raised.value, BanksMissing) == (name == "missing")


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """And nobody waits for its writer."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BankError, match="not a regular file"):
        banks_in(tmp_path / "pipe")


def test_without_a_file_there_are_no_banks(tmp_path: Path) -> None:
    """A file is made by the first change, for its owner alone."""
    path = tmp_path / "banks.jsonl"
    assert BankFile(path, WRITING).change(lambda banks: list(banks.entries())) == []
    assert not path.exists()
    append(path, SPAM)
    assert path.stat().st_mode & 0o777 == 0o600


def _append_many(path: Path, process: int) -> None:
    for number in range(20):
        append(path, item(100 * process + number))


def test_processes_that_change_it_at_once_lose_nothing(path: Path) -> None:
    """Each waits for its turn."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_append_many, args=(path, process)) for process in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(180)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(banks_in(path).items) == 60


def test_a_change_that_does_not_fit_on_the_disk_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where some of its lines did."""
    before, really = path.read_bytes(), os.pwrite

    def full(descriptor: int, data: bytes, place: int) -> int:
        if place > len(before):
            raise OSError(errno.ENOSPC, "No space left on device")
        return really(descriptor, bytes(data)[:100], place)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(BankError, match="No space left"):
        append(path, item(1), item(2), item(3))
    assert path.read_bytes() == before


def test_a_file_that_was_closed_is_read_as_a_whole(path: Path) -> None:
    """A reader that could not use what it had read begins again."""
    file = BankFile(path, WRITING)
    file.read()
    file.close()
    assert file.read() == ([SPAM], True, 0)
