"""What a path tells the echo agent to do. In a module of its own, so that its other users load no server."""

from __future__ import annotations

MAX_SHOWN_BODY = 1_024


def response_for(path: str) -> tuple[int, float]:
    """The status, and the seconds to wait before it is sent."""
    match path.split("/")[1:]:
        case ["status", code, *_] if code.isascii() and code.isdigit() and 200 <= int(code) <= 599:
            return int(code), 0.0
        case ["slow", seconds, *_] if seconds.isascii() and seconds.replace(".", "", 1).isdigit():
            return 200, min(float(seconds), 3_600.0)
        case ["later", *_]:
            return 202, 0.0
        case _:
            return 200, 0.0
