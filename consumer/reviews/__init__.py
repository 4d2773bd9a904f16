"""The console's own database, SQLite or PostgreSQL: flags to review, and decisions about them.

Alone imports SQLAlchemy and Alembic. Texts and titles stay in the store; here are ids, figures and decisions.
"""
