"""What an error of the driver or the server means for the call that met it."""

from __future__ import annotations

from asyncmy import errors

from duetime.errors import DuetimeError
from duetime.stores import server_errors
from duetime.stores.server_errors import ErrorClass

DRIVER_ERRORS = (errors.MySQLError, OSError, EOFError)


BY_NUMBER = {
    1020: ErrorClass.RETRY,  # the row has changed since it was read
    1021: ErrorClass.FULL,
    1040: ErrorClass.UNAVAILABLE,  # too many connections
    1044: ErrorClass.ACCESS_DENIED,
    1045: ErrorClass.ACCESS_DENIED,
    1047: ErrorClass.RECONNECT,  # Galera: this server has lost the others
    1049: ErrorClass.ACCESS_DENIED,
    1053: ErrorClass.RECONNECT,  # shutting down
    1062: ErrorClass.RETRY,  # a key that another transaction stored after this one had looked
    1114: ErrorClass.FULL,
    1130: ErrorClass.ACCESS_DENIED,
    1142: ErrorClass.ACCESS_DENIED,
    1146: ErrorClass.NO_SCHEMA,
    1158: ErrorClass.RECONNECT,
    1159: ErrorClass.RECONNECT,
    1160: ErrorClass.RECONNECT,
    1161: ErrorClass.RECONNECT,
    1205: ErrorClass.RETRY,  # waited too long for a lock
    1213: ErrorClass.RETRY,  # a deadlock; in a Galera cluster also a conflict between servers
    1290: ErrorClass.RECONNECT,  # read-only: a replica, or a primary that was demoted
    1317: ErrorClass.RECONNECT,  # interrupted
    1927: ErrorClass.RECONNECT,  # killed
    2002: ErrorClass.UNAVAILABLE,
    2003: ErrorClass.UNAVAILABLE,
    2006: ErrorClass.RECONNECT,
    2013: ErrorClass.RECONNECT,
    2014: ErrorClass.RECONNECT,
    3024: ErrorClass.UNAVAILABLE,
}


def classify(problem: BaseException) -> ErrorClass:
    if isinstance(problem, errors.MySQLError):
        number = problem.args[0] if problem.args and isinstance(problem.args[0], int) else 0
        if number in BY_NUMBER:
            return BY_NUMBER[number]
        is_lost = isinstance(problem, errors.InterfaceError) or number == 0
        return ErrorClass.RECONNECT if is_lost else ErrorClass.BUG
    return ErrorClass.RECONNECT


def translate(problem: BaseException, error_class: ErrorClass, place: str) -> DuetimeError:
    return server_errors.translate(problem, error_class, f"MariaDB at {place}")
