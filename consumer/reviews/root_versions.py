"""Which version of its original a story goes back to, so that its title can be read."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from consumer.reviews.tables import FLAGS


def root_versions(connection: Connection, root_ids: Iterable[str]) -> dict[str, str]:
    """Return a version of each original that flags name; originals that none names are left out."""
    found: dict[str, str] = {}
    for root_id in set(root_ids):
        # By the index and for each by itself: one with a hundred thousand copies takes no longer than others.
        query = select(FLAGS.c.original_version).where(FLAGS.c.original_id == root_id)
        version = connection.execute(query.order_by(FLAGS.c.original_version.desc()).limit(1)).scalar()
        if version is not None:
            found[root_id] = version
    return found
