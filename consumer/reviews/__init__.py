"""What people have to look at, and what they decided: the console's own database, SQLite or PostgreSQL.

Alone imports SQLAlchemy and Alembic. Texts and titles stay in the store; here are ids, figures and decisions.
"""
