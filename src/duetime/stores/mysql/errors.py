"""What an error of the driver or the server means for the call that met it."""

from __future__ import annotations

from enum import StrEnum

from asyncmy import errors

from duetime.errors import ConfigError, DuetimeError, SchemaMissing, StoreError, StoreFull, StoreUnavailable

DRIVER_ERRORS = (errors.MySQLError, OSError, EOFError)


class MySqlErrorClass(StrEnum):
    RETRY = "retry"  # the transaction was rolled back to resolve a conflict: repeat it
    RECONNECT = "reconnect"  # this session is lost or useless: repeat on a new one
    UNAVAILABLE = "unavailable"
    FULL = "full"
    NO_SCHEMA = "no_schema"
    ACCESS_DENIED = "access_denied"  # the operator has to change something
    BUG = "bug"


BY_NUMBER = {
    1020: MySqlErrorClass.RETRY,  # the row has changed since it was read
    1021: MySqlErrorClass.FULL,
    1040: MySqlErrorClass.UNAVAILABLE,  # too many connections
    1044: MySqlErrorClass.ACCESS_DENIED,
    1045: MySqlErrorClass.ACCESS_DENIED,
    1047: MySqlErrorClass.RECONNECT,  # Galera: this server has lost the others
    1049: MySqlErrorClass.ACCESS_DENIED,
    1053: MySqlErrorClass.RECONNECT,  # shutting down
    1062: MySqlErrorClass.RETRY,  # a key that another transaction stored after this one had looked
    1114: MySqlErrorClass.FULL,
    1130: MySqlErrorClass.ACCESS_DENIED,
    1142: MySqlErrorClass.ACCESS_DENIED,
    1146: MySqlErrorClass.NO_SCHEMA,
    1158: MySqlErrorClass.RECONNECT,
    1159: MySqlErrorClass.RECONNECT,
    1160: MySqlErrorClass.RECONNECT,
    1161: MySqlErrorClass.RECONNECT,
    1205: MySqlErrorClass.RETRY,  # waited too long for a lock
    1213: MySqlErrorClass.RETRY,  # a deadlock; in a Galera cluster also a conflict between servers
    1290: MySqlErrorClass.RECONNECT,  # read-only: a replica, or a primary that was demoted
    1317: MySqlErrorClass.RECONNECT,  # interrupted
    1927: MySqlErrorClass.RECONNECT,  # killed
    2002: MySqlErrorClass.UNAVAILABLE,
    2003: MySqlErrorClass.UNAVAILABLE,
    2006: MySqlErrorClass.RECONNECT,
    2013: MySqlErrorClass.RECONNECT,
    2014: MySqlErrorClass.RECONNECT,
    3024: MySqlErrorClass.UNAVAILABLE,
}


def classify(problem: BaseException) -> MySqlErrorClass:
    if isinstance(problem, errors.MySQLError):
        number = problem.args[0] if problem.args and isinstance(problem.args[0], int) else 0
        if number in BY_NUMBER:
            return BY_NUMBER[number]
        is_lost = isinstance(problem, errors.InterfaceError) or number == 0
        return MySqlErrorClass.RECONNECT if is_lost else MySqlErrorClass.BUG
    return MySqlErrorClass.RECONNECT


def translate(problem: BaseException, error_class: MySqlErrorClass, place: str) -> DuetimeError:
    """The error for the caller: it names the server, never the password."""
    server = f"MariaDB at {place}"
    match error_class:
        case MySqlErrorClass.FULL:
            return StoreFull(f"{server} has no room left ({problem}): free disk space, then repeat")
        case MySqlErrorClass.NO_SCHEMA:
            return SchemaMissing(
                f"{server} has no Duetime tables, or old ones: run `duetime migrate`, or start with --migrate"
            )
        case MySqlErrorClass.ACCESS_DENIED:
            return ConfigError(
                f"{server} denies access ({problem}): check user, password and database of the URL"
            )
        case MySqlErrorClass.BUG:
            return StoreError(f"{server} refused a statement ({problem})")
        case MySqlErrorClass.RETRY:
            return StoreUnavailable(
                f"{server} rolled back a transaction because of another one ({problem}): it is safe to repeat"
            )
        case _:
            reason = str(problem) or type(problem).__name__
            return StoreUnavailable(f"{server} cannot be reached now ({reason}): it is safe to repeat")
