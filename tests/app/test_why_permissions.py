"""Why: a job that a node may not run, because of its own settings."""

from __future__ import annotations

import pytest

import duetime as dt
from duetime.model.job import Ending, State
from duetime.model.profile import NodeProfile
from duetime.testing.conformance.drafts import ended
from tests.app.test_why import HOUR, check, joined, started


@pytest.fixture
async def opened(memory_app: dt.App) -> dt.App:
    await memory_app.open()
    return memory_app


async def test_why_if_a_node_gave_the_job_back(opened: dt.App) -> None:
    """Because of its own settings: the answer names the live workers that may run it."""
    node = await joined(opened, said=NodeProfile(("work",), permissions={}))
    job = await started(opened, node)
    now = await opened.now()
    error = "cannot run on this node: target not allowed"
    back = ended(job, State.PENDING, Ending.RELEASED, now, due_at=now + HOUR)
    await opened.store.settle([back._replace(started_at=now, error=error)])
    sentence = rf"waits: node web \({node}\) did not run it \({error}\); "
    then = "; it will be tried again at TIME"
    nowhere = f"{sentence}no other live worker is known to{then}"
    found = await check(opened, job.id, "permission_missing", nowhere)
    assert found.remedy == "give a worker what it lacks, then run it now"
    other = await joined(opened, said=NodeProfile(("work",), permissions={}))
    await check(opened, job.id, "permission_missing", rf"{sentence}node web \({other}\) may be able to{then}")
    await opened.store.reschedule_job("default", job.id, now, None)
    await check(opened, job.id, "permission_missing", rf"{sentence}node web \({other}\) may be able to")
