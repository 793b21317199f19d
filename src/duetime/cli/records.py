"""Instants of the store as JSON and Python have them."""

from __future__ import annotations

from datetime import datetime

from duetime.model.instant import Micros, to_datetime


def moment_of(micros: Micros | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)


def iso(micros: Micros | None) -> str | None:
    return None if micros is None else to_datetime(micros).isoformat().replace("+00:00", "Z")
