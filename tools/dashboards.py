"""Writes the Grafana dashboards in deploy/grafana/ from the tables below; with --check only compares.

python tools/dashboards.py [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana"
WIDTH, HEIGHT, COLUMNS = 8, 8, 3  # of a panel, in the units of Grafana; a row is 24 wide
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(NamedTuple):
    title: str
    unit: str
    queries: dict[str, str]  # legend: expression
    meaning: str = ""


class Dashboard(NamedTuple):
    name: str
    title: str
    variables: dict[str, str]  # name: the query for its values
    panels: list[Panel]


JOB = 'job=~"$job"'
FAILED = 'ending=~"failed|timed_out|lost"'
QUEUE = f'{JOB},queue=~"$queue"'
SCHEDULE = f'{JOB},schedule=~"$schedule"'


def rate(metric: str, *labels: str) -> str:
    return f"rate({metric}{{{','.join(labels)}}}[$__rate_interval])"


def quantiles(metric: str, labels: str, by: str = "") -> dict[str, str]:
    keys = f"le, {by}" if by else "le"
    prefix = f"{{{{{by}}}}} " if by else ""
    return {
        f"{prefix}p{share * 100:.0f}": (
            f"histogram_quantile({share}, sum by ({keys}) ({rate(f'{metric}_bucket', labels)}))"
        )
        for share in ((0.5, 0.99) if not by else (0.99,))
    }


FLEET = Dashboard(
    "fleet",
    "Duetime: fleet",
    {},
    [
        Panel("Processes", "short", {"that answer": f"sum(up{{{JOB}}})"}),
        Panel(
            "Store",
            "short",
            {"reached by": f"sum(duetime_store_up{{{JOB}}})"},
            "Processes that reach the store.",
        ),
        Panel("Nodes", "short", {"{{state}}": f"max by (state) (duetime_nodes{{{JOB}}})"}),
        Panel(
            "Jobs", "short", {"{{state}}": f"sum by (state) (max by (queue, state) (duetime_jobs{{{JOB}}}))"}
        ),
        Panel(
            "Attempts",
            "ops",
            {"{{ending}}": f"sum by (ending) ({rate('duetime_attempts_total', JOB)})"},
        ),
        Panel("How late attempts start", "s", quantiles("duetime_job_lateness_seconds", JOB)),
        Panel(
            "Submitted",
            "ops",
            {"jobs": f"sum({rate('duetime_jobs_submitted_total', JOB)})"},
        ),
        Panel(
            "Fires",
            "ops",
            {
                "planned": f"sum({rate('duetime_fires_planned_total', JOB)})",
                "skipped": f"sum({rate('duetime_fires_skipped_total', JOB)})",
            },
        ),
        Panel(
            "Leases",
            "short",
            {"{{role}} {{state}}": f"max by (role, state) (duetime_leases{{{JOB}}})"},
            "Free ones: no planner.",
        ),
        Panel("Claim", "s", quantiles("duetime_claim_seconds", JOB), "How long the store takes."),
        Panel("Settle", "s", quantiles("duetime_settle_seconds", JOB), "How long the store takes."),
        Panel("Running", "short", {"{{instance}}": f"duetime_node_running{{{JOB}}}"}),
        Panel("Age of the heartbeat", "s", {"{{instance}}": f"duetime_heartbeat_age_seconds{{{JOB}}}"}),
        Panel("Lag of the event loop", "s", {"{{instance}}": f"duetime_loop_lag_seconds{{{JOB}}}"}),
        Panel("Clock skew", "s", {"{{instance}}": f"duetime_clock_skew_seconds{{{JOB}}}"}),
        Panel(
            "Processor",
            "percentunit",
            {"{{instance}}": f"{rate('process_cpu_seconds_total', JOB)}"},
        ),
        Panel("Memory", "bytes", {"{{instance}}": f"process_resident_memory_bytes{{{JOB}}}"}),
        Panel(
            "API requests",
            "ops",
            {"{{status}}": f"sum by (status) ({rate('duetime_http_requests_total', JOB)})"},
        ),
    ],
)

BY_QUEUE = Dashboard(
    "queues",
    "Duetime: queues and tasks",
    {"queue": f"label_values(duetime_jobs_claimed_total{{{JOB}}}, queue)"},
    [
        Panel("Due jobs", "short", {"{{queue}}": f'max by (queue) (duetime_jobs{{{QUEUE},state="due"}})'}),
        Panel(
            "Running jobs",
            "short",
            {"{{queue}}": f'max by (queue) (duetime_jobs{{{QUEUE},state="running"}})'},
        ),
        Panel(
            "Age of the oldest due job",
            "s",
            {"{{queue}}": f"max by (queue) (duetime_queue_lag_seconds{{{QUEUE}}})"},
        ),
        Panel(
            "Started",
            "ops",
            {"{{queue}}": f"sum by (queue) ({rate('duetime_jobs_claimed_total', QUEUE)})"},
        ),
        Panel(
            "Share of attempts that fail",
            "percentunit",
            {
                "{{queue}}": f"sum by (queue) ({rate('duetime_attempts_total', QUEUE, FAILED)}) "
                f"/ sum by (queue) ({rate('duetime_attempts_total', QUEUE)})"
            },
        ),
        Panel(
            "Finished",
            "ops",
            {"{{state}}": f"sum by (state) ({rate('duetime_jobs_finished_total', QUEUE)})"},
        ),
        Panel("How late attempts start", "s", quantiles("duetime_job_lateness_seconds", QUEUE, "queue")),
        Panel("How long attempts take", "s", quantiles("duetime_job_duration_seconds", QUEUE, "queue")),
        Panel(
            "Retried",
            "ops",
            {"{{queue}}": f"sum by (queue) ({rate('duetime_jobs_retried_total', QUEUE)})"},
        ),
        Panel(
            "Attempts by task",
            "ops",
            {"{{target}}": f"topk(10, sum by (target) ({rate('duetime_target_attempts_total', JOB)}))"},
        ),
        Panel(
            "Failed attempts by task",
            "ops",
            {
                "{{target}}": "topk(10, sum by (target) "
                f"({rate('duetime_target_attempts_total', JOB, FAILED)}))"
            },
        ),
        Panel(
            "Limit of running jobs",
            "short",
            {"{{queue}}": f"max by (queue) (duetime_queue_max_running{{{QUEUE}}})"},
        ),
    ],
)

BY_SCHEDULE = Dashboard(
    "schedules",
    "Duetime: schedules",
    {"schedule": f"label_values(duetime_schedule_attempts_total{{{JOB}}}, schedule)"},
    [
        Panel(
            "Attempts",
            "ops",
            {"{{schedule}}": f"sum by (schedule) ({rate('duetime_schedule_attempts_total', SCHEDULE)})"},
        ),
        Panel(
            "Attempts that do not succeed",
            "ops",
            {
                "{{schedule}} {{ending}}": "sum by (schedule, ending) "
                f'(rate(duetime_schedule_attempts_total{{{SCHEDULE},ending!="succeeded"}}[$__rate_interval]))'
            },
        ),
        Panel(
            "Fires that were skipped",
            "ops",
            {"{{schedule}}": f"sum by (schedule) ({rate('duetime_fires_skipped_total', SCHEDULE)})"},
        ),
        Panel(
            "How late fires start", "s", quantiles("duetime_schedule_lateness_seconds", SCHEDULE, "schedule")
        ),
    ],
)
DASHBOARDS = (FLEET, BY_QUEUE, BY_SCHEDULE)


def build(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": f"duetime-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["duetime"],
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [_source(), *_variables(dashboard)]},
        "panels": [_panel(number, panel) for number, panel in enumerate(dashboard.panels)],
    }


def _source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    queries = {"job": "label_values(duetime_build_info, job)", **dashboard.variables}
    return [
        {
            "name": name,
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }
        for name, query in queries.items()
    ]


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0 if panel.title != "Clock skew" else None},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for place, (legend, expression) in enumerate(panel.queries.items())
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="compare only; exit with 1 if a file is not current"
    )
    check = parser.parse_args().check
    stale = []
    for dashboard in DASHBOARDS:
        path, text = FOLDER / f"{dashboard.name}.json", json.dumps(build(dashboard), indent=1) + "\n"
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(path.name)
            if not check:
                path.write_text(text, "utf-8")
    if check and stale:
        sys.exit(f"not current: {', '.join(stale)}; run python tools/dashboards.py")


if __name__ == "__main__":
    main()
