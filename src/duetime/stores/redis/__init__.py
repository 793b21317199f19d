"""The Redis store: shared by many machines, as durable as the server's append-only file."""

from __future__ import annotations

from duetime.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
