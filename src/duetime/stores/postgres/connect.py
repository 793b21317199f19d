"""A new session with a server of the address that can be used now: after a failover it is another one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from duetime.stores.postgres.address import PostgresAddress
from duetime.stores.postgres.errors import DRIVER_ERRORS, classify
from duetime.stores.server_errors import ErrorClass, reason

CONNECT_TIMEOUT = 3.0  # seconds, shared by the servers: one that does not answer leaves time for the others
UNACKNOWLEDGED_TIMEOUT = 4_000  # milliseconds without an acknowledgement: the peer is gone
# Seconds. An idle session with a machine that is gone is noticed within ten: before its next use.
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_COUNT = 5, 2, 3
SESSION_TIMEOUTS = {  # for the server's side of the connection
    "idle_in_transaction_session_timeout": "10000",
    "tcp_user_timeout": str(UNACKNOWLEDGED_TIMEOUT),
    "tcp_keepalives_idle": str(KEEPALIVE_IDLE),
    "tcp_keepalives_interval": str(KEEPALIVE_INTERVAL),
    "tcp_keepalives_count": str(KEEPALIVE_COUNT),
}
CHECKS = {
    "primary": "SELECT NOT pg_is_in_recovery()",
    "standby": "SELECT pg_is_in_recovery()",
    "read-write": "SELECT NOT current_setting('transaction_read_only')::bool",
    "read-only": "SELECT current_setting('transaction_read_only')::bool",
}
NEXT_SERVER = frozenset({ErrorClass.RECONNECT, ErrorClass.UNAVAILABLE})


async def connect(
    address: PostgresAddress,
    settings: Mapping[str, str],
    *,
    cached_statements: int,
    sessions: Sequence[str | None] = (),
    **options: Any,
) -> Any:
    """A server that is away, starts, ends or has the wrong role is passed over; one that refuses the user is
    not. `sessions`: what the server must be, if it is not what the address says."""
    tries = [(dsn, session) for session in sessions or address.sessions for dsn in address.dsns]
    problems: list[BaseException] = []
    for dsn, session in tries:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT / len(tries)):
                connection = await asyncpg.connect(
                    dsn,
                    target_session_attrs="any" if address.pooled else session,
                    statement_cache_size=0 if address.pooled else cached_statements,
                    # A pooler refuses settings it does not know: there each transaction sets them.
                    server_settings={} if address.pooled else {**SESSION_TIMEOUTS, **settings},
                    **options,
                )
                if address.pooled and session in CHECKS:
                    await _check_role(connection, session)
        except asyncpg.TargetServerAttributeNotMatched:
            problems.append(ConnectionError(f"a server is not {session}"))
        except DRIVER_ERRORS as error:
            if classify(error) not in NEXT_SERVER:
                raise
            problems.append(error)
        else:
            address.prefer(dsn)
            detect_dead_peer(connection)
            return connection
    raise problems[0] if len(problems) == 1 else ConnectionError("; ".join(map(reason, problems)))


async def _check_role(connection: Any, session: str) -> None:
    """The driver trusts what the server says when a session begins. A pooler repeats what it was told
    earlier, perhaps before a failover, and accepts sessions while its server is away."""
    try:
        if not await connection.fetchval(CHECKS[session]):
            raise asyncpg.TargetServerAttributeNotMatched(session)
    except BaseException:
        connection.terminate()
        raise


def detect_dead_peer(connection: Any) -> None:
    """The kernel gives up on a peer that no longer acknowledges. Not every platform or socket can do this."""
    transport = getattr(connection, "_transport", None)
    tcp = transport.get_extra_info("socket") if transport is not None else None
    if (
        tcp is None
        or tcp.family not in {socket.AF_INET, socket.AF_INET6}
        or not hasattr(socket, "TCP_USER_TIMEOUT")
    ):
        return
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_TIMEOUT)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_COUNT)
