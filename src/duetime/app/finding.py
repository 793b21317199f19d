"""Schedules by what people call them: the name, or the id."""

from __future__ import annotations

from uuid import UUID

from duetime.errors import ScheduleNotFound
from duetime.model.schedule import Schedule
from duetime.store import Store


async def find_schedule(store: Store, tenant: str, reference: str) -> Schedule:
    found = await _by_id(store, tenant, reference) or await store.get_schedule(tenant, reference)
    if found is None:
        raise ScheduleNotFound(f"there is no schedule {reference!r}: list the schedules to see those there are")
    return found


async def _by_id(store: Store, tenant: str, reference: str) -> Schedule | None:
    try:
        wanted = UUID(reference)
    except ValueError:
        return None
    return await store.get_schedule_by_id(tenant, wanted)
