"""Queues, tasks, nodes, leases and keys as the service shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    name: str
    paused: bool = False
    pause_note: str | None = None
    paused_at: datetime | None = None
    most: int | None = None
    rate: str | None = None
    pending: int = 0
    due: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTask:
    name: str
    queue: str | None = None
    doc: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    id: int
    name: str
    state: str  # alive, expired or dead
    roles: list[str]
    version: str
    running: int
    started_at: datetime
    lease_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    name: str
    holder: int | None = None
    token: int
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who the service takes the caller for."""

    tenant: str
    scopes: list[str]
    key: str | None = None  # what may be shown of it
    local: bool = False
    version: str
    now: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    prefix: str
    name: str
    scopes: list[str] = field(default_factory=list)
    tenant: str = "default"
    created_at: datetime | None = None
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    rate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey(Key):
    key: str = field(repr=False)  # shown this once
