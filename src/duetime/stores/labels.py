"""Labels, as rows hold them: a JSON object of text."""

from __future__ import annotations

from duetime.model.codec import decode


def has_label(labels: bytes | None, key: str, value: str) -> bool:
    if labels is None:
        return False
    try:
        found = decode(labels)
    except ValueError:
        return False  # not written by a program that knows labels
    return isinstance(found, dict) and found.get(key) == value
