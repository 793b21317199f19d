"""`/metrics`: counters of this process and gauges of the fleet, in the format of Prometheus."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Scraper
from duetime.api.fleet_gauges import FleetState
from duetime.api.routing import problems
from duetime.api.state import ServiceState, state_of
from duetime.clock import wall_micros
from duetime.engine.node.node import Node
from duetime.model.instant import SECOND
from duetime.model.lease import NodeState, role_of
from duetime.model.limit import MAX_QUEUES, largest
from duetime.observers.counters import AttemptCounts, ProcessCounters
from duetime.observers.metrics import OPEN_METRICS, TEXT, MetricsPage, ProcessTelemetry
from duetime.version import VERSION

DESCRIPTORS = Path("/proc/self/fd")
MEMORY = Path("/proc/self/statm")
MAX_BROKER_LANES = 1_000  # queues times priorities
router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    operation_id="read_metrics",
    summary="Counters of this process and gauges of the fleet",
    response_class=Response,
    responses={
        **{status: problem for status, problem in problems().items() if status in (401, 403, 429)},
        200: {
            "description": "Prometheus text, or OpenMetrics if Accept asks for it.",
            "content": {TEXT: {"schema": {"type": "string"}}},
        },
    },
)
async def metrics(request: Request, _: Scraper) -> Response:
    open_metrics = "application/openmetrics-text" in request.headers.get("accept", "")
    page = await collect(state_of(request))
    return Response(page.text(open_metrics), media_type=OPEN_METRICS if open_metrics else TEXT)


async def collect(state: ServiceState) -> MetricsPage:
    page, app = MetricsPage(), state.app
    page.add("duetime_build_info", 1, VERSION, platform.python_version())
    fleet = await state.gauges.read()
    page.add("duetime_store_up", int(fleet is not None))
    node = app.node
    if fleet is not None:
        _add_fleet(page, fleet, node)
    watch = app.watch()
    _add_counts(page, watch.counters)
    _add_events(page, watch, app.event_feed.size)
    if node is not None:
        _add_node(page, node, watch.counters)
    page.add("duetime_clock_skew_seconds", (wall_micros() - app.clock.now()) / SECOND)
    for (route, method, status), count in sorted(state.meter.requests.items()):
        page.add("duetime_http_requests", count, route, method, status)
    for route, histogram in sorted(state.meter.durations().items()):
        page.add_histogram("duetime_http_request_seconds", histogram, route)
    _add_process(page)
    return page


def _add_fleet(page: MetricsPage, fleet: FleetState, node: Node | None) -> None:
    for queue, counts in largest(fleet.queues).items():
        page.add("duetime_jobs", counts.pending, queue, "pending")
        page.add("duetime_jobs", counts.due, queue, "due")
        page.add("duetime_jobs", counts.running, queue, "running")
    for queue, lag in sorted(fleet.lags.items()):
        page.add("duetime_queue_lag_seconds", lag / SECOND, queue)
    for one in fleet.queues[:MAX_QUEUES]:
        if one.max_running is not None:
            page.add("duetime_queue_max_running", one.max_running, one.name)
    states = [one.state(fleet.now) for one in fleet.nodes]
    for state in get_args(NodeState):
        page.add("duetime_nodes", states.count(state), state)
    alive = {one.id for one, now in zip(fleet.nodes, states, strict=True) if now == "alive"}
    for role in ("planner", "dispatcher"):
        holders = [lease.holder for lease in fleet.leases if role_of(lease.name) == role]
        held = sum(holder in alive for holder in holders)
        page.add("duetime_leases", held, role, "held")
        page.add("duetime_leases", len(holders) - held, role, "free")
    for (condition, severity), count in sorted(fleet.alerts.items()):
        page.add("duetime_alerts", count, condition, severity)
    if fleet.read_store is not None:
        page.add("duetime_read_store_used", int(fleet.read_store.remark is None))
        if fleet.read_store.lag_ms is not None:
            page.add("duetime_read_store_lag_seconds", fleet.read_store.lag_ms / 1_000)
    if node is not None:
        own = sum(lease.holder == node.id for lease in fleet.leases if node.id is not None)
        page.add("duetime_node_leases", own)


def _add_counts(page: MetricsPage, tally: ProcessCounters) -> None:
    for name, counter in (
        ("duetime_jobs_submitted", tally.submitted),
        ("duetime_jobs_claimed", tally.claimed),
    ):
        for queue, count in sorted(counter.items()):
            page.add(name, count, queue)
    _add_queues(page, sorted(tally.queues.items()))
    for target, endings in sorted(tally.targets.items()):
        for ending, count in sorted(endings.items()):
            page.add("duetime_target_attempts", count, target, ending)
    for (tenant, schedule), fires in sorted(tally.schedules.items()):
        for ending, count in sorted(fires.endings.items()):
            page.add("duetime_schedule_attempts", count, tenant, schedule, ending)
        page.add_histogram("duetime_schedule_lateness_seconds", fires.lateness, tenant, schedule)
    page.add("duetime_fires_planned", tally.planned)
    for tenant, schedule in sorted(tally.schedules.keys() | tally.skipped.keys()):  # 0 first, for rate()
        page.add("duetime_fires_skipped", tally.skipped.get((tenant, schedule), 0), tenant, schedule)
    page.add_histogram("duetime_claim_seconds", tally.claiming)
    page.add_histogram("duetime_settle_seconds", tally.settling)
    page.add("duetime_settlements_refused", tally.refused)
    page.add("duetime_jobs_recovered", tally.recovered)
    for part, count in sorted(tally.failed_turns.items()):
        page.add("duetime_loop_failures", count, part)


def _add_queues(page: MetricsPage, queues: Iterable[tuple[str, AttemptCounts]]) -> None:
    for queue, cell in queues:
        for ending, count in sorted(cell.endings.items()):
            page.add("duetime_attempts", count, queue, ending)
        for state, count in sorted(cell.finished.items()):
            page.add("duetime_jobs_finished", count, queue, state)
        page.add("duetime_jobs_retried", cell.retried, queue)
        page.add_histogram("duetime_job_lateness_seconds", cell.lateness, queue)
        page.add_histogram("duetime_job_duration_seconds", cell.duration, queue)


def _add_events(page: MetricsPage, watch: ProcessTelemetry, listeners: int) -> None:
    page.add("duetime_events_written", watch.event_log.written)
    page.add("duetime_events_merged", watch.event_log.merged)
    page.add("duetime_event_streams", listeners)


def _add_node(page: MetricsPage, node: Node, tally: ProcessCounters) -> None:
    page.add("duetime_node_running", node.running)
    if node.broker_up is not None:
        _add_broker(page, node.broker_up, tally)
    heart = node.heartbeat
    page.add("duetime_heartbeat_trusted", int(heart is not None and heart.trusted()))
    if heart is not None:
        page.add("duetime_heartbeat_age_seconds", heart.age / SECOND)
        page.add("duetime_loop_lag_seconds", heart.lag() / SECOND)


def _add_broker(page: MetricsPage, up: bool, tally: ProcessCounters) -> None:
    page.add("duetime_broker_up", int(up))
    for (queue, priority), messages in sorted(tally.broker_depth.items())[:MAX_BROKER_LANES]:
        page.add("duetime_broker_messages", messages, queue, str(priority))
    for kind in ("pushed", "repeated", "received", "stale"):
        page.add(f"duetime_tickets_{kind}", tally.tickets[kind])
    page.add("duetime_broker_messages_dropped", tally.dropped_messages)


def _add_process(page: MetricsPage) -> None:
    used = os.times()
    page.add("process_cpu_seconds", used.user + used.system)
    try:
        pages = int(MEMORY.read_text("ascii").split()[1])
        page.add("process_resident_memory_bytes", pages * os.sysconf("SC_PAGE_SIZE"))
        page.add("process_open_fds", sum(1 for _ in DESCRIPTORS.iterdir()))
    except OSError:
        return  # a system without /proc
