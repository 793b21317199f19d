"""Messages between a worker and its child processes: JSON objects, each after its length. Nothing in them can run."""

from __future__ import annotations

from typing import Any

from duetime.model.codec import decode, encode

HEAD = 4  # bytes of the length
Message = dict[str, Any]


def pack(message: Message) -> bytes:
    body = encode(message)
    return len(body).to_bytes(HEAD, "big") + body


def length_in(head: bytes) -> int:
    return int.from_bytes(head, "big")


def unpack(body: bytes) -> Message:
    message: Message = decode(body)
    return message
