"""Notices as jobs: decided in a document, delivered by a worker.

The pattern is for everything that must be told to another system because the ledger says so. A document (a
record of the store) holds what is known and an outbox. A node that looks at the ledger reads the document,
decides, and replaces it together with the outbox if it is still the same version: of two nodes one fails and
decides again. Then the outbox becomes jobs whose ids follow from the notices, so that submitting them twice
stores them once. The next replacement empties the outbox. A crash between any two of these steps leaves a
document from which the next node goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duetime.model.alert.state import Notice
from duetime.model.codec import encode
from duetime.model.ids import fire_id
from duetime.model.instant import Micros
from duetime.model.job import HIGHEST_PRIORITY, JobDraft
from duetime.store import Store

ALERT = "@alert"  # the target of jobs that tell a channel
ALERT_QUEUE = "duetime-alerts"


def delivery(tenant: str, notice: Notice, now: Micros) -> JobDraft:
    """The job that delivers a notice, always under the same id."""
    told: dict[str, Any] = {
        "channel": notice.channel,
        "id": notice.id,
        "kind": notice.kind,
        "condition": notice.condition,
        "at": notice.at,
        "alerts": notice.alerts,
    }
    return JobDraft(
        id=fire_id(notice.seed, notice.at),
        tenant=tenant,
        schedule_id=None,
        schedule=None,
        fire_time=notice.at,
        due_at=max(now, notice.at),
        queue=ALERT_QUEUE,
        priority=HIGHEST_PRIORITY,
        overlap=None,
        target=ALERT,
        target_spec=None,
        payload=encode(told),
        policies=None,
        owner=None,
        labels=encode({"channel": notice.channel}),
        unique_key=None,
        retry_of=None,
    )


async def submit(store: Store, tenant: str, notices: Sequence[Notice], now: Micros) -> None:
    """Store their jobs; those that are stored already, finished ones too, are left alone."""
    if notices:
        await store.add_jobs([delivery(tenant, notice, now) for notice in notices], is_retry=True)
