"""What an error of the driver or the server means for the call that met it."""

from __future__ import annotations

import asyncpg

from duetime.errors import DuetimeError
from duetime.stores import server_errors
from duetime.stores.server_errors import ErrorClass

DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


BY_SQLSTATE = {
    "25006": ErrorClass.RECONNECT,  # read-only: a standby, or a primary that was demoted
    "26000": ErrorClass.RECONNECT,  # a prepared statement is gone: a pooler swapped sessions
    "28000": ErrorClass.ACCESS_DENIED,
    "28P01": ErrorClass.ACCESS_DENIED,
    "3D000": ErrorClass.ACCESS_DENIED,
    "3F000": ErrorClass.NO_SCHEMA,
    "40001": ErrorClass.RETRY,
    "40P01": ErrorClass.RETRY,
    "42P01": ErrorClass.NO_SCHEMA,
    "42883": ErrorClass.NO_SCHEMA,
    "53100": ErrorClass.FULL,
    "55P03": ErrorClass.UNAVAILABLE,  # lock_timeout
    "57014": ErrorClass.UNAVAILABLE,  # statement_timeout
    # This session was terminated; if the whole server stops, the new connection fails
    "57P01": ErrorClass.RECONNECT,
    "57P02": ErrorClass.RECONNECT,
    "57P03": ErrorClass.UNAVAILABLE,  # starting up or shutting down
    "57P05": ErrorClass.RECONNECT,
    "58030": ErrorClass.UNAVAILABLE,
}
BY_SQLSTATE_CLASS = {
    "08": ErrorClass.RECONNECT,
    "53": ErrorClass.UNAVAILABLE,  # too many connections, out of memory
    "57": ErrorClass.UNAVAILABLE,
}


def classify(problem: BaseException) -> ErrorClass:
    if isinstance(problem, asyncpg.PostgresError):
        return classify_sqlstate(problem.sqlstate)
    if isinstance(problem, asyncpg.ClientConfigurationError):
        return ErrorClass.ACCESS_DENIED
    if isinstance(problem, asyncpg.DataError):
        return ErrorClass.BUG
    if isinstance(problem, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return ErrorClass.RECONNECT
    return ErrorClass.UNAVAILABLE if isinstance(problem, OSError) else ErrorClass.BUG


def classify_sqlstate(state: str | None) -> ErrorClass:
    if state is None:
        return ErrorClass.BUG
    return BY_SQLSTATE.get(state) or BY_SQLSTATE_CLASS.get(state[:2], ErrorClass.BUG)


def translate(problem: BaseException, error_class: ErrorClass, place: str) -> DuetimeError:
    return server_errors.translate(problem, error_class, f"PostgreSQL at {place}")
