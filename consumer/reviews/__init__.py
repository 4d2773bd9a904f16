"""The console's own database, in SQLite or PostgreSQL: flags to review, and decisions about them.

The only package that imports SQLAlchemy and Alembic. It stores ids, figures and decisions. Texts and titles of articles
stay in the store.
"""
