"""What SQLAlchemy compiles and Alembic loads, shared by all databases that tests open in one process.

An engine compiles each statement once, and keeps it together with its dialect. Alembic compiles all migrations to tell
whether one is missing. Tests open thousands of databases, and would do both for each: a third of their processor time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event

from consumer.reviews import database

_STATEMENTS_MAX: Final = 10_000


@contextmanager
def shared_statements() -> Iterator[None]:
    """Let engines use what the first one of their kind has compiled, and load the migrations of each folder once."""
    first: dict[str, Engine] = {}
    loaded = cache(ScriptDirectory)

    def created(*args: Any, **options: Any) -> Engine:  # noqa: ANN401  # as create_engine takes them
        engine = create_engine(*args, query_cache_size=_STATEMENTS_MAX, **options)
        kind = engine.url.drivername
        if kind in first:
            engine.dialect = first[kind].dialect
            engine._compiled_cache = first[kind]._compiled_cache
        else:
            # From its first connection on a dialect knows the server.
            event.listen(engine, "connect", lambda *_: first.setdefault(kind, engine), once=True)
        return engine

    def scripts(settings: Config) -> ScriptDirectory:
        return loaded(settings.get_main_option("script_location", ""))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "create_engine", created)
        patch.setattr(ScriptDirectory, "from_config", scripts)
        yield
