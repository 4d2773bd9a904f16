"""What the doctor says of banks."""

from pathlib import Path

from consumer.config.loading import load_config
from consumer.doctor.examination import checks_of
from consumer.doctor.finding import Finding
from consumer.model.errors import ConfigError


def findings(path: Path) -> list[Finding]:
    """Return what is found of this file."""
    config = load_config(None, {"store": {"url": "memory:"}, "banks": {"url": str(path)}})
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
    for broken, why in ((path, "line 1"), (tmp_path / "missing", "there is none")):
        (finding,) = findings(broken)
        assert (finding.status, finding.means) == ("wrong", ConfigError)
        assert why in finding.found


def test_without_banks_nothing_is_said() -> None:
    """They are not configured."""
    assert "banks" not in {check.name for check in checks_of(load_config(None, {"store": {"url": "memory:"}}))}
