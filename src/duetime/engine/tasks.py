"""What a node knows of its tasks, each by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from duetime.engine.drafts import Defaults
from duetime.invoker import Handler
from duetime.model.instant import Micros


class Tasks(NamedTuple):
    handlers: Mapping[str, Handler]
    retentions: Mapping[str, Micros] = MappingProxyType({})  # of those whose jobs are kept for a shorter time
    terms: Mapping[str, Defaults] = MappingProxyType({})  # what they ask of jobs that are submitted by name
