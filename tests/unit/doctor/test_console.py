"""Findings on the moderators' console of a configuration."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.doctor.console import check_flags, check_rights, check_tables, configures_only_console, console_checks
from consumer.doctor.examination import checks_of
from consumer.doctor.finding import Finding, examine, sentence
from consumer.model.errors import ConfigError
from consumer.reviews.database import Database, TableVersions, open_database, table_versions
from consumer.wiring import console_store
from tests.unit.reviews.conftest import address, database, with_tables  # noqa: F401  # fixtures
from tests.unit.reviews.made import Address

VERDICT = '{"schema":"dupwatch.verdict/1"}\n'


def config(**sections: Any) -> Config:  # noqa: ANN401  # a section as a dictionary
    """Return a configuration with a console, and these sections."""
    return load_config(None, {"console": {"threads": 3}} | sections)


def said(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """The status and the sentence of each finding."""
    return [(finding.status, finding.found) for finding in findings]


def test_a_configuration_without_a_console_gets_no_checks_of_it() -> None:
    """One with it gets them, and those of a run only if it names a source."""
    alone, both = config(), config(source={"url": "articles.jsonl"})
    assert list(console_checks(load_config(None, {}))) == []
    assert [check.name for check in console_checks(alone)] == [
        "database of the console",
        "flags of the console",
        "store of the console",
    ]
    assert [configures_only_console(alone), configures_only_console(both)] == [True, False]
    assert not configures_only_console(config(service={"threads": 3}))
    assert configures_only_console(config(service={}, source={"url": "-"})), "config show writes defaults too"
    assert {check.name for check in console_checks(alone)} <= {check.name for check in checks_of(both)}


def test_the_configuration_of_a_console_alone_is_not_taken_for_that_of_a_run(tmp_path: Path) -> None:
    """Its sink may be topics without a source that is, and a file that this user only reads."""
    sinks = ("kafka://127.0.0.1:1/p", str(tmp_path / "nowhere" / "verdicts.jsonl"))
    for sink in sinks:
        (found,) = examine(checks_of(config(sink={"url": sink}))[:1])
        assert {finding.status for finding in found.findings} == {"ok"}, found


def test_versions_of_tables_are_read_without_a_change(address: Address, database: Database) -> None:  # noqa: F811
    """On a database of this version, of an earlier one, of a later one, and on one without tables."""
    used = table_versions(*address).used
    assert table_versions(*address) == TableVersions(used, used)
    with database.write_transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
    assert table_versions(*address) == TableVersions("0003", used)
    with database.write_transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigError, match="a newer dupwatch has changed it"):
        table_versions(*address)
    with database.write_transaction() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    assert table_versions(*address) == TableVersions(None, used)


def test_the_database_of_a_console(tmp_path: Path) -> None:
    """The findings say whether it is there, whether its tables are current, and what moves them."""
    path = tmp_path / "console #1%.db"
    section = config(console={"database": f"sqlite:///{path}"}).console
    assert said(check_tables(section)) == [
        ("ok", f"The database sqlite:///{path} does not exist yet; the console creates it at its first start.")
    ]
    assert list(tmp_path.iterdir()) == []
    path.touch()
    ((status, found),) = said(check_tables(section))
    assert (status, "has no tables yet" in found) == ("ok", True)
    assert path.read_bytes() == b""
    opened = open_database(section.database)
    assert [status for status, _ in said(check_tables(section))] == ["ok"]
    with opened.write_transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
    (earlier,) = check_tables(section)
    assert (earlier.status, "has tables of version 0003" in earlier.found) == ("warning", True)
    assert "start dupwatch console" in str(earlier.remedy)
    opened.close()
    path.write_text("Dear reader, " * 100)
    with pytest.raises(ConfigError, match="is not a SQLite database"):
        list(check_tables(section))


def test_a_database_that_does_not_answer() -> None:
    """It is wrong, and the finding names the setting."""
    (found,) = check_tables(config(console={"database": "postgresql://me@127.0.0.1:1/x"}).console)
    assert (found.status, found.remedy) == ("wrong", "Start it, or correct console.database.")


def test_the_file_that_flags_come_from(tmp_path: Path) -> None:
    """It is there, or still to come; other files, and sinks that cannot be followed, are wrong."""
    path = tmp_path / "verdicts.jsonl"
    read = config(sink={"url": str(path)})
    assert said(check_flags(read)) == [
        ("warning", f"The file {path} does not exist yet: flags appear once a run writes it.")
    ]
    path.write_text(VERDICT)
    assert said(check_flags(read)) == [("ok", f"The console reads flags from {path}.")]
    path.write_text("Dear reader,\n")
    assert said(check_flags(read)) == [("wrong", f"{path} does not begin with a verdict.")]
    path.unlink()
    path.mkdir()
    assert said(check_flags(read)) == [("wrong", f"This user cannot read {path}.")]
    for sink, refused in (("-", "standard output"), (f"{path}.gz", "cannot read a compressed file")):
        with pytest.raises(ConfigError, match=refused):
            list(check_flags(config(sink={"url": sink})))


def test_the_store_that_a_console_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has to outlast its run; one that this user may not write is a warning."""
    with pytest.raises(ConfigError, match="the console reads articles from the consumers' store"):
        list(check_rights(config(store={"url": "memory:"})))
    store = {"url": f"lmdb:{tmp_path / 'store'}"}
    assert [status for status, _ in said(check_rights(config(store=store)))] == ["ok"]
    own = tmp_path / "v.jsonl.console.jsonl"
    read = config(store=store, sink={"url": str(tmp_path / "v.jsonl")})
    monkeypatch.setattr(console_store, "may_write", lambda path: path != own)
    assert said(check_rights(read)) == [("warning", f"This user may not write {own}, so releases wait.")]


@pytest.mark.parametrize(
    ("phrase", "written"),
    [("no file is there", "No file is there."), ("console.database = x: it is", "console.database = x: it is.")],
)
def test_a_sentence_leaves_names_of_settings_as_they_are(phrase: str, written: str) -> None:
    """Everything else begins with a capital letter."""
    assert sentence(phrase) == written
