"""What the doctor says of banks."""

from pathlib import Path

import pytest

from consumer.config.loading import load_config
from consumer.doctor import examination
from consumer.doctor.examination import checks_of
from consumer.doctor.finding import Finding
from consumer.model.errors import ConfigError


def findings(path: Path, cache: Path | None = None) -> list[Finding]:
    """Return what is found of this file, and of a cache."""
    section = {"url": str(path)} | ({} if cache is None else {"cache": str(cache)})
    config = load_config(None, {"store": {"url": "memory:"}, "banks": section})
    (check,) = [check for check in checks_of(config) if check.name == "banks"]
    return list(check.run())


def test_banks_are_counted(tmp_path: Path) -> None:
    """By banks and items."""
    path = tmp_path / "banks.jsonl"
    path.write_text('{"bank": "spam", "action": "deny"}\n{"bank": "spam", "item": "a", "text": "letters"}\n')
    assert findings(path) == [Finding("ok", "1 bank, 1 item.")]


def test_banks_that_cannot_be_read_would_end_a_run(tmp_path: Path) -> None:
    """The finding says where and why."""
    path = tmp_path / "banks.jsonl"
    path.write_text("{}\n")
    for broken, why in ((path, "line 1"), (tmp_path / "missing", "does not exist")):
        (finding,) = findings(broken)
        assert (finding.status, finding.run_error) == ("wrong", ConfigError)
        assert why in finding.found


def test_a_cache_that_cannot_be_written_slows_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a folder that may still be made; a warning, since a run works without."""
    path = tmp_path / "banks.jsonl"
    path.write_text('{"bank": "spam", "action": "deny"}\n')
    cache = tmp_path / "cache"
    assert findings(path, cache)[1:] == [Finding("ok", f"The cache of banks {cache} can be written.")]
    assert not cache.exists()
    (named_file,) = findings(path, path)[1:]
    assert (named_file.status, "is not a directory" in named_file.found) == ("warning", True)
    monkeypatch.setattr(examination, "may_write", lambda folder: folder != cache)
    (refused,) = findings(path, cache)[1:]
    assert (refused.status, "may not write the cache" in refused.found) == ("warning", True)


def test_without_banks_nothing_is_said() -> None:
    """They are not configured."""
    assert "banks" not in {check.name for check in checks_of(load_config(None, {"store": {"url": "memory:"}}))}
