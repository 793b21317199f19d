"""What an error of a database server means for the call that met it, and the error for the caller."""

from __future__ import annotations

from enum import StrEnum

from duetime.errors import ConfigError, DuetimeError, SchemaMissing, StoreError, StoreFull, StoreUnavailable


class ErrorClass(StrEnum):
    RETRY = "retry"  # the transaction was rolled back to resolve a conflict: repeat it
    RECONNECT = "reconnect"  # this session is lost or useless: repeat on a new one
    UNAVAILABLE = "unavailable"
    FULL = "full"
    NO_SCHEMA = "no_schema"
    ACCESS_DENIED = "access_denied"  # the operator has to change something
    BUG = "bug"


def translate(problem: BaseException, error_class: ErrorClass, server: str) -> DuetimeError:
    """`server` is its kind and place, never with a password."""
    match error_class:
        case ErrorClass.FULL:
            return StoreFull(f"{server} has no room left ({problem}): free disk space, then repeat")
        case ErrorClass.NO_SCHEMA:
            return SchemaMissing(
                f"{server} has no Duetime tables, or old ones: run `duetime migrate`, or start with --migrate"
            )
        case ErrorClass.ACCESS_DENIED:
            return ConfigError(
                f"{server} denies access ({problem}): check user, password and database of the URL"
            )
        case ErrorClass.BUG:
            return StoreError(f"{server} refused a statement ({problem})")
        case ErrorClass.RETRY:
            return StoreUnavailable(
                f"{server} rolled back a transaction because of another one ({problem}): it is safe to repeat"
            )
        case _:
            return StoreUnavailable(
                f"{server} cannot be reached now ({reason(problem)}): it is safe to repeat"
            )


def reason(problem: BaseException) -> str:
    return str(problem) or type(problem).__name__
