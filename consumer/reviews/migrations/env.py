"""What Alembic runs: migrations on the connection that ``consumer.reviews.database`` passes on, in its transaction."""

from alembic import context

from consumer.reviews.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    # All of them or none, on SQLite as well.
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
