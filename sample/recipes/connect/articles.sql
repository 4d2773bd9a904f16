-- The table that articles-from-postgresql.json reads. PostgreSQL needs wal_level = logical.
CREATE TABLE articles (
    id text PRIMARY KEY,
    title text,
    body text NOT NULL,
    source text,
    published_at timestamptz
);

-- Without this an update that leaves a long body as it was would send a placeholder in its place.
ALTER TABLE articles REPLICA IDENTITY FULL;
