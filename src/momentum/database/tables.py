"""The tables, in the database of Duetime's store: a post and its job are written in one transaction. All
names begin with `momentum_`. Instants are microseconds since 1970 in UTC, as in Duetime's own tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.types import JSON

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """An aware datetime, stored as microseconds."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> int | None:
        return None if value is None else (value - EPOCH) // MICROSECOND

    def process_result_value(self, value: int | None, dialect: Any) -> datetime | None:
        return None if value is None else EPOCH + timedelta(microseconds=value)


metadata = MetaData()

meta = Table(
    "momentum_meta",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)

keys = Table(
    "momentum_keys",  # of the API; only their digests
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("name", String(100), nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    Column("revoked_at", Instant),
)

accounts = Table(
    "momentum_accounts",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("platform", String(40), nullable=False),
    Column("urn", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("picture", Text),
    Column("handle", String(255)),
    Column("server", String(255), nullable=False, default=""),
    Column("scopes", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("token", LargeBinary),  # encrypted; NULL once disconnected
    Column("refresh_token", LargeBinary),  # encrypted
    Column("expires_at", Instant),
    Column("refresh_expires_at", Instant),
    Column("warned_at", Instant),  # when the owner was last warned of the expiry
    Column("probe", Boolean, nullable=False, default=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("tenant", "platform", "server", "urn"),
)

authorizations = Table(
    "momentum_authorizations",  # begun and not yet finished
    metadata,
    Column("state", String(64), primary_key=True),  # digest of the state parameter
    Column("tenant", String(64), nullable=False),
    Column("platform", String(40), nullable=False),
    Column("server", String(255), nullable=False, default=""),
    Column("verifier", LargeBinary, nullable=False),  # encrypted
    Column("expires_at", Instant, nullable=False),
)

renewals = Table(
    "momentum_renewals",  # tokens that a process renews at this moment
    metadata,
    Column("grant_digest", String(64), primary_key=True),  # digest of the refresh token
    Column("holder", String(40), nullable=False),
    Column("until", Instant, nullable=False),  # then another process may try
)

media = Table(
    "momentum_media",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("type", String(100), nullable=False),
    Column("name", String(255), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("width", Integer),
    Column("height", Integer),
    Column("seconds", Float),
    Column("pages", Integer),
    Column("created_at", Instant, nullable=False),
    Index("momentum_media_tenant", "tenant", "created_at"),
)

posts = Table(
    "momentum_posts",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("account_id", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("content", JSON, nullable=False),  # media, article and visibility
    Column("labels", JSON, nullable=False),
    Column("scheduled_at", Instant),
    Column("zone", String(64), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("published_at", Instant),
    Column("platform_id", String(255)),
    Column("url", Text),
    Column("error_code", String(64)),
    Column("error", Text),
    Column("job_id", String(40)),
    Column("request_key", String(255)),  # the Idempotency-Key of its creation
    Column("request_digest", String(64)),
    UniqueConstraint("tenant", "request_key"),
    Index("momentum_posts_calendar", "tenant", "scheduled_at"),
    Index("momentum_posts_state", "tenant", "state", "scheduled_at"),
    Index("momentum_posts_account", "account_id", "state", "scheduled_at"),
)

uploads = Table(
    "momentum_uploads",  # a file at a platform; one for each account, shared by its posts
    metadata,
    Column("account_id", String(40), primary_key=True),
    Column("media_id", String(40), primary_key=True),
    Column("asset", String(255)),
    Column("state", JSON, nullable=False),
    Column("sent", Boolean, nullable=False, default=False),
    Column("ready", Boolean, nullable=False, default=False),
    Column("updated_at", Instant, nullable=False),
)

attempts = Table(
    "momentum_attempts",  # the intent to publish, and the execution log
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("post_id", String(40), nullable=False),
    Column("number", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("scheduled_at", Instant, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("outcome", String(20)),
    Column("error_code", String(64)),
    Column("error", Text),
    Column("status", Integer),
    Column("request_id", String(100)),
    Column("worker", String(100), nullable=False),
    UniqueConstraint("post_id", "number"),
    Index("momentum_attempts_log", "tenant", "started_at"),
)

events = Table(
    "momentum_events",  # the timeline of a post
    metadata,
    Column("id", String(40), primary_key=True),
    Column("post_id", String(40), nullable=False),
    Column("tenant", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("detail", Text, nullable=False),
    Column("actor", String(100), nullable=False),
    Index("momentum_events_post", "post_id", "at"),
)

usage = Table(
    "momentum_usage",  # requests to a platform on one UTC day; `account_id` is "" for the whole app
    metadata,
    Column("platform", String(40), primary_key=True),
    Column("account_id", String(40), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("requests", Integer, nullable=False),
)

holds = Table(
    "momentum_holds",  # a platform, or one account of it, that must not be called for now
    metadata,
    Column("platform", String(40), primary_key=True),
    Column("account_id", String(40), primary_key=True),  # "": the whole platform
    Column("until", Instant),  # NULL: until a person resumes it
    Column("code", String(64), nullable=False),
    Column("reason", Text, nullable=False),
    Column("since", Instant, nullable=False),
)
