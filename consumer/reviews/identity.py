"""What tells one database of a console from others: a random name that was made up with its tables."""

from sqlalchemy import Connection, select

from consumer.reviews.tables import IDENTITY


def identity(connection: Connection) -> str:
    """Return the name of this database, 16 hexadecimal digits."""
    name: str = connection.execute(select(IDENTITY.c.name)).scalar_one()
    return name
