"""The console's own database, in SQLite or PostgreSQL: flags to review, and decisions about them.

The only package that imports SQLAlchemy and Alembic. It stores ids, figures and decisions; texts and titles stay in
the store.
"""
