"""The rules of CloudEvents 1.0 for an event in the JSON format, section 3 of the specification."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

REQUIRED = ("id", "source", "specversion", "type")
TEXTS = (*REQUIRED, "datacontenttype", "dataschema", "subject", "time")
ATTRIBUTE_NAME = re.compile(r"[a-z0-9]{1,20}")
INTEGERS = range(-(2**31), 2**31)


def validated(body: bytes) -> dict[str, Any]:
    """The event, if it is one."""
    event = json.loads(body)
    assert isinstance(event, dict)
    assert event["specversion"] == "1.0"
    assert all(event.get(name) for name in REQUIRED), event
    assert all(isinstance(event[name], str) and event[name] for name in TEXTS if name in event), event
    for name, value in event.items():
        if name not in ("data", "data_base64"):
            assert ATTRIBUTE_NAME.fullmatch(name), name
            assert isinstance(value, str | bool) or value in INTEGERS, (name, value)
    assert not ("data" in event and "data_base64" in event)
    assert urlsplit(event["source"]).geturl() == event["source"]
    assert " " not in event["source"]
    assert datetime.fromisoformat(event["time"]).tzinfo is not None
    return event
