"""What a job is known by beside its id: the gate it shares a limit at, and the key it is unique by. Both are made of its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from duetime.errors import InvalidInput
from duetime.model.limit import Limit
from duetime.model.unique import LIVE, OnConflict, Rule, Unique

LONGEST_VALUE = 200
PLAIN_RULE = Rule(LIVE, None, OnConflict.SKIP)  # what every store keeps by itself for a job with a key
UNIQUE_BY_ALL = Unique()


def gate_name(task: str, limit: Limit, arguments: Mapping[str, Any], owner: str | None, tenant: str) -> str:
    """Jobs with the same name share the limit; an argument called `tenant` goes before the tenant."""
    match limit.per:
        case None:
            return task
        case name if name in arguments:
            return _name(task, arguments[name])
        case "owner":
            return _name(task, owner)
        case "tenant":
            return _name(task, tenant)
        case _:
            return _name(task, None)


def key_name(task: str, by: Sequence[str] | None, arguments: Mapping[str, Any]) -> str:
    return _name(task, arguments if by is None else {name: arguments.get(name) for name in by})


def unique_of(own: Unique | bool | None, on_conflict: str | None, has_key: bool, registered: Unique | None) -> Unique | None:
    """How the job is unique: as the call says, else as its task does."""
    unique = _chosen(own, registered)
    if has_key and isinstance(own, Unique) and own.by is not None:
        raise InvalidInput("unique.by", "the unique_key says already which jobs are the same: leave out one of the two")
    if on_conflict is None:
        return unique
    if unique is None and not has_key:
        raise InvalidInput("on_conflict", "nothing can be in the way of a job that is not unique: give a unique_key or unique=True, too")
    return replace(unique or UNIQUE_BY_ALL, on_conflict=on_conflict)


def _chosen(own: Unique | bool | None, registered: Unique | None) -> Unique | None:
    match own:
        case None:
            return registered
        case True:
            return registered or UNIQUE_BY_ALL
        case False:
            return None
        case Unique():
            return own
        case _:
            raise InvalidInput("unique", f'{own!r} is not a Unique: write unique=True, or dt.Unique(by=["customer"])')


def _name(task: str, value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{task}/{text if len(text) <= LONGEST_VALUE else blake2b(text.encode(), digest_size=16).hexdigest()}"
