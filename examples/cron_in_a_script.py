"""Cron in a script: one process and one SQLite file.

    python examples/cron_in_a_script.py [sqlite:///cron.db]        (or set DUETIME_STORE)

Stop it with Ctrl-C and start it again: schedules and unfinished jobs are still there. Fires that were missed
meanwhile are handled by the `missed` policy.
"""

from __future__ import annotations

import sys

import duetime as dt

app = dt.App(sys.argv[1] if len(sys.argv) > 1 else None)


@app.task("tick")
def tick(ctx: dt.Context) -> None:
    print(f"tick of {ctx.fire_time:%H:%M:%S}", flush=True)


@app.task("report.build", timeout="10m", retry=dt.Retry(max_attempts=3, first_delay="30s"))
def build_report(kind: str) -> str:
    print(f"building the {kind} report", flush=True)
    return f"{kind}.pdf"


if __name__ == "__main__":
    # Declaring an unchanged schedule again has no effect, so a program can do this at every start.
    app.sync.schedule("tick", tick, dt.Every("1s"), overlap="skip")
    app.sync.schedule(
        "morning-report",
        build_report,
        dt.Cron("30 8 * * MON-FRI", tz="Europe/Berlin"),
        payload={"kind": "daily"},
        missed=dt.Missed("latest", within="6h"),
    )
    print("next report:", app.sync.get_schedule("morning-report").next_fire_time, flush=True)
    app.sync.close()
    app.run()
