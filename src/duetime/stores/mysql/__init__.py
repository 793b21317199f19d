"""The store for MariaDB and MySQL."""

from __future__ import annotations

from duetime.stores.mysql.store import MySqlStore

__all__ = ["MySqlStore"]
