"""The memory that only this process uses, as the system reports it and in a scrape."""

import mmap
from pathlib import Path

from consumer.telemetry.metrics import Metrics
from consumer.telemetry.metrics.run import own_memory_bytes

SIZE = 64 << 20


def test_pages_of_a_file_are_not_its_own(tmp_path: Path) -> None:
    """64 MB that the process writes to count; 64 MB of a file that it reads do not."""
    metrics = Metrics()

    def scraped() -> float:
        found = metrics.registry.get_sample_value("dupwatch_own_memory_bytes")
        assert found is not None
        return found

    file = tmp_path / "pages"
    file.write_bytes(bytes(SIZE))
    before = scraped()
    assert before > 0
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        assert sum(pages[at] for at in range(0, SIZE, mmap.PAGESIZE)) == 0
        assert scraped() < before + SIZE / 2
    taken = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    taken.write(b"x" * SIZE)
    assert scraped() > before + SIZE / 2
    taken.close()


def test_where_the_system_does_not_tell_it_is_0(tmp_path: Path) -> None:
    """The file is missing, or has no such line."""
    assert own_memory_bytes(tmp_path / "nowhere") == 0
    (tmp_path / "status").write_text("VmRSS:\t100 kB\n")
    assert own_memory_bytes(tmp_path / "status") == 0
