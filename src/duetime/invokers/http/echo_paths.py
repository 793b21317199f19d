"""What the path of a call tells the echo agent to do; apart from it, so that whoever only needs this loads no server."""

from __future__ import annotations

SHOWN_OF_BODY = 1_024


def told_by(path: str) -> tuple[int, float]:
    match path.split("/")[1:]:
        case ["status", code, *_] if code.isascii() and code.isdigit() and 200 <= int(code) <= 599:
            return int(code), 0.0
        case ["slow", seconds, *_] if seconds.isascii() and seconds.replace(".", "", 1).isdigit():
            return 200, min(float(seconds), 3_600.0)
        case ["later", *_]:
            return 202, 0.0
        case _:
            return 200, 0.0
