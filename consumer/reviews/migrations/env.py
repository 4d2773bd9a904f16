"""The script that Alembic runs: migrations in the transaction of a connection from ``consumer.reviews.database``."""

from alembic import context

from consumer.reviews.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    # All migrations or none, on SQLite too.
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
