"""A publish target: the name of a destination, as a caller writes it, as it is shown and as it is stored. And
the message that is published: a CloudEvents 1.0 event in structured JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from duetime.errors import InvalidInput
from duetime.model.codec import decode, encode
from duetime.model.destination import NAME_FORM, is_destination_name
from duetime.model.instant import to_iso
from duetime.model.job import Claimed

PUBLISH = "@publish"
MAX_KEY = 128  # characters; no broker takes fewer
REQUIRED = "required"
FIELDS = ("type", "destination", "key", "report")
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class PublishTarget:
    destination: str
    key: str | None = None  # a routing key, partition key or message group, by the kind of broker
    reports: bool = False  # the job ends with a report of the consumer, not with the broker's confirmation

    @property
    def name(self) -> str:
        """The target of its jobs. Only nodes that know the destination claim them."""
        return f"{PUBLISH}:{self.destination}"

    @staticmethod
    def from_json(value: Mapping[str, Any], field: str = "target") -> PublishTarget:
        """Reads the input of a caller. Every error names its field."""
        for name in value:
            if name not in FIELDS:
                raise InvalidInput(f"{field}.{name}", f"is unknown: use {', '.join(FIELDS)}")
        destination, key = value.get("destination"), value.get("key")
        if not is_destination_name(destination):
            raise InvalidInput(f"{field}.destination", f"must be the name of a destination: {NAME_FORM}")
        if "key" in value and not (
            isinstance(key, str) and 1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()
        ):
            raise InvalidInput(f"{field}.key", f"must be 1 to {MAX_KEY} printable ASCII characters")
        if value.get("report", REQUIRED) != REQUIRED:
            raise InvalidInput(
                f"{field}.report",
                f'must be "{REQUIRED}", or left out if the confirmation is enough',
            )
        return PublishTarget(destination, key, "report" in value)

    @staticmethod
    @lru_cache(maxsize=1_000)  # most jobs of a destination have the same
    def from_spec(spec: bytes) -> PublishTarget:
        return PublishTarget.from_json(decode(spec))

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "publish",
            "destination": self.destination,
            **({} if self.key is None else {"key": self.key}),
            **({"report": REQUIRED} if self.reports else {}),
        }

    def to_spec(self) -> bytes:
        return encode(self.to_json())


def cloud_event(
    job: Claimed, target: PublishTarget, event_type: str, extensions: Mapping[str, str] | None = None
) -> bytes:
    """The message of one attempt. Its id is that of the job, so a consumer can detect a repeated message.
    `extensions`: attributes with which the consumer reports, and the trace."""
    job_id = str(job.id)
    attributes = {
        "specversion": "1.0",
        "id": job_id,
        "source": f"/duetime/{quote(job.tenant, safe='')}",
        "type": event_type,
        **({} if job.schedule is None else {"subject": job.schedule}),
        "time": to_iso(job.fire_time),
        "datacontenttype": "application/json",
        "attempt": job.attempt,
        "idempotencykey": job_id,
        **({} if target.key is None else {"partitionkey": target.key}),
        **(extensions or {}),
    }
    # The payload is JSON already.
    return b'%s,"data":%s}' % (encode(attributes)[:-1], job.payload)
