"""Millions of jobs in the far future: copies of a submitted one, made inside the server because that is
faster."""

from __future__ import annotations

import psycopg
from psycopg import sql

CHUNK = 1_000_000
# Duetime's ids begin with the time, so the index grows at its right edge.
NEW_ID = "(lpad(to_hex(%(first)s + g), 12, '0') || '70008' || substr(md5(g::text), 1, 15))::uuid"
LATER = {"bigint": "{} + g * 1000", "timestamp with time zone": "{} + g * interval '1 ms'"}
COLUMNS = """SELECT column_name, data_type FROM information_schema.columns
  WHERE table_schema = 'duetime' AND table_name = 'jobs' AND is_generated = 'NEVER'
  ORDER BY ordinal_position"""
FIRST_MILLISECOND = "SELECT (extract(epoch FROM now() + interval '31 days') * 1000)::bigint"


def add_pending(url: str, pattern: str, count: int) -> None:
    """Add `count` copies of the job `pattern`, a millisecond apart, and analyse the table."""
    with psycopg.connect(url, autocommit=True) as connection:
        columns = connection.execute(COLUMNS).fetchall()
        first = connection.execute(FIRST_MILLISECOND).fetchone()
        assert first is not None
        names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
        values = sql.SQL(", ").join(_value(name, kind) for name, kind in columns)
        statement = sql.SQL(
            "INSERT INTO duetime.jobs ({names}) SELECT {values} FROM duetime.jobs, "
            "generate_series(%(from)s::bigint, %(to)s) g "
            "WHERE id = %(pattern)s"
        ).format(names=names, values=values)
        for begin in range(0, count, CHUNK):
            end = min(count, begin + CHUNK)
            connection.execute(
                statement, {"first": first[0], "from": begin + 1, "to": end, "pattern": pattern}
            )
        connection.execute("VACUUM ANALYZE duetime.jobs")
        connection.execute("CHECKPOINT")


def _value(name: str, kind: str) -> sql.Composed:
    if name == "id":
        return sql.Composed([sql.SQL(NEW_ID)])
    if name in ("due_at", "fire_time"):
        return sql.SQL(LATER[kind]).format(sql.Identifier(name))
    return sql.Composed([sql.Identifier(name)])
