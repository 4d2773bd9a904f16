"""Brings a database to the tables of this version, by Alembic."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from consumer.model.errors import ConfigError

_MIGRATIONS: Final = Path(__file__).with_name("migrations")


def migrate(connection: Connection, name: str) -> None:
    """Apply all migrations that a database lacks, in the transaction of this connection; ``name`` is for errors.

    Raises ``ConfigError`` where a newer version has made it.
    """
    settings = Config()
    # In this file format a percent sign has a meaning.
    settings.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    settings.attributes["connection"] = connection
    # Several, where another program has its tables there too.
    current = MigrationContext.configure(connection).get_current_heads()
    scripts = ScriptDirectory.from_config(settings)
    if current == (scripts.get_current_head(),):
        return
    if not _is_known(scripts, current):
        raise ConfigError(
            f"console.database = {name}: a newer dupwatch has changed it (to {', '.join(current)}). Use that version, "
            "or another database."
        )
    command.upgrade(settings, "head")


def _is_known(scripts: ScriptDirectory, current: tuple[str, ...]) -> bool:
    """Return whether a database has no tables yet, or those of this version or an earlier one."""
    try:
        return not current or (len(current) == 1 and scripts.get_revision(current[0]) is not None)
    except CommandError:
        return False
