"""When a version of LinkedIn's API ends. A dead version refuses every call, so that the operator is warned
60 days ahead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

WARNING = timedelta(days=60)

# As LinkedIn announced them. Other versions live for at least a year.
SUNSETS = {
    "202511": date(2026, 11, 16),
    "202609": date(2027, 9, 15),
}


def sunset_of(version: str) -> date:
    """The announced last day, or the middle of the same month one year later."""
    return SUNSETS.get(version) or date(int(version[:4]) + 1, int(version[4:]), 15)


def notices(version: str, now: datetime) -> Sequence[str]:
    sunset = sunset_of(version)
    about = "on" if version in SUNSETS else "about"
    advice = "Set a newer version (YYYYMM) in the settings of LinkedIn."
    if now.date() >= sunset:
        return [f"LinkedIn's API version {version} ended {about} {sunset}. {advice}"]
    if now.date() >= sunset - WARNING:
        return [f"LinkedIn's API version {version} ends {about} {sunset}. {advice}"]
    return []
