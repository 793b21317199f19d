"""Microseconds per `next_us` for common and for rare expressions. Run: python bench/cron_speed.py"""

from __future__ import annotations

from statistics import median
from time import perf_counter_ns

from duetime.model.when import Cron, Every, RRule, When

START = 1_790_000_000_000_000
REACH = 40 * 366 * 86_400 * 1_000_000
CALLS, ROUNDS = 2_000, 7
ZONES = ("UTC", "Europe/Berlin")
COMMON = (
    "* * * * *",
    "*/5 * * * * *",
    "30 2 * * *",
    "0 9 * * MON-FRI",
    "*/15 9-17 * * MON-FRI",
    "0 */2 * * *",
)
RARE = (
    "0 0 29 2 1",
    "59 59 23 31 12 ?",
    "0 0 29 2 *",
    "0 0 29 2 */7",
    "* * 29 2 */7",
    "0 0 L-3W * *",
    "0 0 * * FRI#5",
)
RULES = (
    "FREQ=DAILY;BYHOUR=9",
    "FREQ=MINUTELY;INTERVAL=5",
    "FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
)


def chain(when: When) -> float:
    """One call after another, each from the previous fire, as the planner does."""
    moment, began = START, perf_counter_ns()
    for _ in range(CALLS):
        found = when.next_us(moment)
        moment = found if found is not None and found < START + REACH else START
    return (perf_counter_ns() - began) / 1000 / CALLS


def construct(text: str) -> float:
    began = perf_counter_ns()
    for _ in range(CALLS):
        Cron(text, "Europe/Berlin")
    return (perf_counter_ns() - began) / 1000 / CALLS


def report(label: str, samples: list[float]) -> None:
    print(f"{label:<52} median {median(samples):8.2f} us   worst round {max(samples):8.2f} us")


def main() -> None:
    for text in COMMON + RARE:
        for name in ZONES:
            cron = Cron(text, name)
            chain(cron)
            report(f"next  {text}  {name}", [chain(cron) for _ in range(ROUNDS)])
    for text in RULES:
        rule = RRule(text, "Europe/Berlin")
        report(f"next  {text}", [chain(rule) for _ in range(ROUNDS)])
    report("next  every 5m", [chain(Every("5m")) for _ in range(ROUNDS)])
    report(
        "make  Cron(30 2 * * MON-FRI), seen before", [construct("30 2 * * MON-FRI") for _ in range(ROUNDS)]
    )


if __name__ == "__main__":
    main()
