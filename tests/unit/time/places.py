"""The time zones the tests travel through, and the expressions they carry."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo

from tests.unit.time.reference import transitions

# fmt: off
ZONES = [
    "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Juba", "Africa/Monrovia", "Africa/Tripoli", "Africa/Windhoek",
    "America/Asuncion", "America/Caracas", "America/Godthab", "America/Havana", "America/Lima", "America/Mexico_City",
    "America/New_York", "America/Noronha", "America/Santiago", "America/Sao_Paulo", "America/Scoresbysund", "America/St_Johns",
    "Antarctica/Casey", "Antarctica/Troll", "Asia/Amman", "Asia/Dhaka", "Asia/Gaza", "Asia/Kabul", "Asia/Kathmandu", "Asia/Kolkata",
    "Asia/Pyongyang", "Asia/Singapore", "Asia/Tehran", "Asia/Tokyo", "Atlantic/Azores", "Australia/Lord_Howe", "Australia/Sydney",
    "Europe/Berlin", "Europe/Dublin", "Europe/Istanbul", "Europe/Lisbon", "Europe/London", "Europe/Moscow", "Europe/Volgograd",
    "Pacific/Apia", "Pacific/Chatham", "Pacific/Easter", "Pacific/Enderbury", "Pacific/Fakaofo", "Pacific/Kwajalein", "Pacific/Norfolk",
    "Pacific/Tongatapu",
]
# fmt: on

FIXED = (
    "30 2 * * *",
    "0 0 * * *",
    "15 1 * * *",
    "0 3 * * *",
    "5,35 0-4 * * *",
    "30 23 * * *",
    "0 1,2,3 * * ?",
    "59 2 * * 0",
    "0 0 1 * *",
    "20 0 * * MON-FRI",
    "45 1 1-15 * SUN",
    "10 2 */2 * SUN",
    "7 22-2 * * FRI-MON",
    "0 2 L * *",
    "30 0 LW * *",
    "0 1 1W,15W * *",
    "30 2 * * SUN#5",
    "30 1 * * SUNL,5L",
    "0-59 2 * * *",
    "0 0 30,31 12 ?",
    "50-10/5 3,23 L-2,L-1W * *",
    "0 0-23 * MAR-APR,OCT-NOV *",
)
REAL = (
    "*/15 2 * * *",
    "0 */2 * * *",
    "0 * * * *",
    "30 * * * *",
    "*/20 1-3 * * 0",
    "13 */3 1,L * *",
    "* 0,23 * * *",
    "* * * * *",
    "*/5 * * * 6-7",
)
WITH_SECONDS = (
    "*/7 * * * * *",
    "0,30 30 2 * * *",
    "59 59 0-3 * * *",
    "30 */2 * * * *",
    "15-45/10 0-5 1,2 * * *",
    "* 0,59 * * * *",
    "1 0 0 * * *",
)


@cache
def changes_of(name: str, first_year: int = 1970, last_year: int = 2037) -> list[int]:
    return transitions(ZoneInfo(name), first_year, last_year)
