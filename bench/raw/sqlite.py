"""Bare sqlite3 loops: one connection, WAL, synchronous=FULL, as the store has it."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.raw.layout import PAYLOAD, SQLITE
from bench.raw.postgres import identifiers, now

BATCH = 1_000
INSERT = """INSERT INTO jobs (id, tenant, fire_time, due_at, queue, priority, target, payload, created_at)
  VALUES (?, 'default', ?, ?, 'default', 5, 'noop', ?, ?)"""
CLAIM = """UPDATE jobs SET state = 1, attempt = attempt + 1, node = 1, claimed_at = ?1 WHERE id IN (
  SELECT id FROM jobs WHERE state = 0 AND queue = 'default' AND priority = 5 AND due_at <= ?1
  ORDER BY due_at LIMIT ?2)
RETURNING id, attempt, target, payload, due_at"""
KEEP = "INSERT INTO history SELECT *, ?2, ?2, NULL FROM jobs WHERE id = ?1 AND attempt = ?3 AND state = 1"
DELETE = "DELETE FROM jobs WHERE id = ?1 AND attempt = ?3 AND state = 1 AND ?2 > 0"


def bulk(count: int) -> float:
    """Rows per second, one transaction for every 5,000."""
    with _database() as connection:
        return count / _fill(connection, count)


def drain(count: int) -> float:
    """Jobs per second: the settlement of one batch and the claim of the next share a transaction; history
    kept."""
    with _database() as connection:
        _fill(connection, count)
        began, finished = time.perf_counter(), 0
        settlements: list[tuple[bytes, int, int]] = []
        while settlements or finished == 0:
            rows = _turn(connection, settlements)
            finished += len(rows)
            settlements = [(row[0], now(), row[1]) for row in rows]
        assert finished == count
        return count / (time.perf_counter() - began)


def inserts(count: int, rows: int) -> float:
    """Rows per second, `rows` in each transaction."""
    with _database() as connection:
        ids = [id.bytes for id in identifiers(count * rows)]
        began = time.perf_counter()
        for first in range(0, count * rows, rows):
            _insert(connection, ids[first : first + rows])
        return count * rows / (time.perf_counter() - began)


def _turn(
    connection: sqlite3.Connection, settlements: list[tuple[bytes, int, int]]
) -> list[tuple[bytes, int]]:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(KEEP, settlements)
    connection.executemany(DELETE, settlements)
    rows = connection.execute(CLAIM, (now(), BATCH)).fetchall()
    connection.execute("COMMIT")
    return rows


def _fill(connection: sqlite3.Connection, count: int) -> float:
    began = time.perf_counter()
    for first in range(0, count, 5_000):
        _insert(connection, [id.bytes for id in identifiers(min(5_000, count - first), first)])
    return time.perf_counter() - began


def _insert(connection: sqlite3.Connection, ids: list[bytes]) -> None:
    moment = now()
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT, [(id, moment, moment, PAYLOAD, moment) for id in ids])
    connection.execute("COMMIT")


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
        connection = sqlite3.connect(Path(folder) / "raw.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        connection.executescript(SQLITE)
        try:
            yield connection
        finally:
            connection.close()
