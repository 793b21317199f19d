"""The annotations of a function, as far as they can be resolved. One that cannot be resolved is left out;
that is not an error."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints

_NAME = re.compile(r"[^\W\d]\w*")


def annotations_of(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """By parameter. Annotations that are text are looked up in the function's module and in `scope`."""
    plain = unwrapped(function)
    try:
        return get_type_hints(plain, localns=dict(scope) or None, include_extras=True)
    except Exception:
        # One unknown name makes the whole call fail: resolve them one by one.
        known = getattr(plain, "__annotations__", {})
        found = {name: _resolved(plain, written, scope) for name, written in known.items()}
        return {name: annotation for name, annotation in found.items() if annotation is not None}


def _resolved(function: Callable[..., Any], written: Any, scope: Mapping[str, Any]) -> Any:
    alone = SimpleNamespace(__annotations__={"wanted": written})
    try:
        return get_type_hints(alone, getattr(function, "__globals__", {}), dict(scope), include_extras=True)[
            "wanted"
        ]
    except Exception:
        return None


def defining_scope(function: Callable[..., Any]) -> dict[str, Any]:
    """The local names that its annotations use from the function that defines it. Call it while that function
    still runs."""
    plain = unwrapped(function)
    if "<locals>" not in getattr(plain, "__qualname__", ""):
        return {}
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals is not getattr(plain, "__globals__", None):
        frame = frame.f_back
    written = " ".join(
        text for text in getattr(plain, "__annotations__", {}).values() if isinstance(text, str)
    )
    return {name: frame.f_locals[name] for name in _NAME.findall(written) if name in frame.f_locals}


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, without decorators and partial arguments."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return function
