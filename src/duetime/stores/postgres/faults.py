"""What an error of the driver or the server means for the verb that met it."""

from __future__ import annotations

from enum import StrEnum

import asyncpg

from duetime.errors import ConfigError, DuetimeError, SchemaMissing, StoreError, StoreFull, StoreUnavailable


class Verdict(StrEnum):
    AGAIN = "again"  # undone by the server to settle a quarrel between transactions: repeat at once
    RECONNECT = "reconnect"  # this session is lost or of no use: repeat on a fresh one
    UNAVAILABLE = "unavailable"
    FULL = "full"
    NO_SCHEMA = "no_schema"
    REFUSED = "refused"  # the server does not let us in: somebody has to change something
    BUG = "bug"


BY_SQLSTATE = {
    "25006": Verdict.RECONNECT,  # read-only: a standby, or a primary that has been demoted
    "26000": Verdict.RECONNECT,  # a prepared statement is gone: a pooler swapped sessions
    "28000": Verdict.REFUSED,
    "28P01": Verdict.REFUSED,
    "3D000": Verdict.REFUSED,
    "3F000": Verdict.NO_SCHEMA,
    "40001": Verdict.AGAIN,
    "40P01": Verdict.AGAIN,
    "42P01": Verdict.NO_SCHEMA,
    "42883": Verdict.NO_SCHEMA,
    "53100": Verdict.FULL,
    "55P03": Verdict.UNAVAILABLE,  # lock_timeout
    "57014": Verdict.UNAVAILABLE,  # statement_timeout
    "57P01": Verdict.RECONNECT,  # this session was terminated; when the whole server goes, the fresh connection will tell
    "57P02": Verdict.RECONNECT,
    "57P03": Verdict.UNAVAILABLE,  # starting up or shutting down
    "57P05": Verdict.RECONNECT,
    "58030": Verdict.UNAVAILABLE,
}
BY_CLASS = {
    "08": Verdict.RECONNECT,
    "53": Verdict.UNAVAILABLE,  # too many connections, out of memory
    "57": Verdict.UNAVAILABLE,
}


def judge(problem: BaseException) -> Verdict:
    if isinstance(problem, asyncpg.PostgresError):
        return by_sqlstate(problem.sqlstate)
    if isinstance(problem, asyncpg.ClientConfigurationError):
        return Verdict.REFUSED
    if isinstance(problem, asyncpg.DataError):
        return Verdict.BUG
    if isinstance(problem, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return Verdict.RECONNECT
    return Verdict.UNAVAILABLE if isinstance(problem, OSError) else Verdict.BUG


def by_sqlstate(state: str | None) -> Verdict:
    if state is None:
        return Verdict.BUG
    return BY_SQLSTATE.get(state) or BY_CLASS.get(state[:2], Verdict.BUG)


def translate(problem: BaseException, verdict: Verdict, place: str) -> DuetimeError:
    """Says where, never with what password."""
    what = f"PostgreSQL at {place}"
    match verdict:
        case Verdict.FULL:
            return StoreFull(f"{what} has no room left ({problem}): free disk space, then repeat")
        case Verdict.NO_SCHEMA:
            return SchemaMissing(f"{what} has no Duetime tables, or old ones: run `duetime migrate`")
        case Verdict.REFUSED:
            return ConfigError(f"{what} does not let us in ({problem}): check user, password and database of the URL")
        case Verdict.BUG:
            return StoreError(f"{what} refused a statement ({problem})")
        case _:
            return StoreUnavailable(f"{what} cannot be reached now ({reason(problem)}): it is safe to repeat")


def reason(problem: BaseException) -> str:
    return str(problem) or type(problem).__name__
