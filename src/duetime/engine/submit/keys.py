"""The limit key and the unique key of a job, both derived from its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from duetime.engine.submit.validate import check_type
from duetime.errors import InvalidInput
from duetime.model.limit import Limit
from duetime.model.unique import LIVE, OnConflict, Rule, Unique

MAX_VALUE_LENGTH = 200  # longer ones are hashed
PLAIN_RULE = Rule(LIVE, None, OnConflict.SKIP)  # every store applies this one to any job with a key
UNIQUE_BY_ALL = Unique()


def limit_key(task: str, limit: Limit, arguments: Mapping[str, Any], owner: str | None, tenant: str) -> str:
    """Jobs with the same key share the limit. An argument called `tenant` takes precedence over the
    tenant."""
    match limit.per:
        case None:
            return task
        case name if name in arguments:
            return _key(task, arguments[name])
        case "owner":
            return _key(task, owner)
        case "tenant":
            return _key(task, tenant)
        case _:
            return _key(task, None)


def unique_key(task: str, by: Sequence[str] | None, arguments: Mapping[str, Any]) -> str:
    return _key(task, arguments if by is None else {name: arguments.get(name) for name in by})


def unique_of(
    own: Unique | bool | None, on_conflict: str | None, has_key: bool, registered: Unique | None
) -> Unique | None:
    """The uniqueness of a job: the call's own, or that of its task."""
    unique = registered if own is None else check_unique(own, registered)
    if has_key and isinstance(own, Unique) and own.by is not None:
        raise InvalidInput(
            "unique.by", "unique_key already identifies the job: give either unique_key or unique.by"
        )
    if on_conflict is None:
        return unique
    if unique is None and not has_key:
        raise InvalidInput(
            "on_conflict", "only applies to unique jobs: also give a unique_key or unique=True"
        )
    return replace(unique or UNIQUE_BY_ALL, on_conflict=on_conflict)


def check_unique(value: Any, registered: Unique | None = None) -> Unique | None:
    """False: not unique. True: as registered, or by all arguments."""
    if isinstance(value, bool):
        return (registered or UNIQUE_BY_ALL) if value else None
    return check_type(value, Unique, "unique", 'unique=True, or dt.Unique(by=["customer"])')


def _key(task: str, value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    short = text if len(text) <= MAX_VALUE_LENGTH else blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{task}/{short}"
