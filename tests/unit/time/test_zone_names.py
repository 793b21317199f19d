"""A time zone that is not known is answered with the one that was meant, where that is safe to say."""

from __future__ import annotations

import pytest

import duetime as dt
from duetime.model import zone


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_a_time_zone_that_is_nearly_right(name: str, meant: str) -> None:
    with pytest.raises(
        dt.InvalidInput, match=f"tz: there is no time zone '{name}': did you mean '{meant}'\\?"
    ):
        dt.Cron("0 9 * * *", tz=name)


@pytest.mark.parametrize("name", ["localtime", "Localtime", "posixrules"])
def test_a_name_that_means_another_zone_on_each_machine_is_not_suggested(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"UTC", "localtime", "posixrules"}  # on Debian the tz database has them
    monkeypatch.setattr(zone, "available_timezones", lambda: names)
    zone.forget()
    try:
        with pytest.raises(dt.InvalidInput, match="give an IANA name such as"):
            dt.Cron("0 9 * * *", tz=name)
    finally:
        zone.forget()


@pytest.mark.parametrize("name", ["CEST", "GMT+2", "Mars/Base", "x" * 1000, ""])
def test_no_offset_is_taken_for_another(name: str) -> None:
    with pytest.raises(dt.InvalidInput, match="give an IANA name such as"):
        dt.Cron("0 9 * * *", tz=name)
