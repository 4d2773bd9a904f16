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
    current = MigrationContext.configure(connection).get_current_revision()
    scripts = ScriptDirectory.from_config(settings)
    if current == scripts.get_current_head():
        return
    if current is not None:
        try:
            scripts.get_revision(current)
        except CommandError:
            raise ConfigError(
                f"console.database = {name}: a newer dupwatch has changed it (to {current}). Use that version, or "
                "another database."
            ) from None
    command.upgrade(settings, "head")
