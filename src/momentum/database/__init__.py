"""The database and its repositories. A repository is a module of plain functions that take a connection
first: the caller decides what belongs to one transaction."""

from momentum.database.engine import Database

__all__ = ["Database"]
