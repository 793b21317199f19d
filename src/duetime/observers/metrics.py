"""Every metric, declared once: its name, type, meaning and labels; and the two text formats in which they are
scraped.

There is no client library: the counters exist already, and only the page of text is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from duetime.clock import Clock
from duetime.model.events import Event, LoopBlocked, TurnFailed
from duetime.model.histogram import FEW_BOUNDS, Histogram
from duetime.model.instant import SECOND
from duetime.observers.counters import ProcessCounters
from duetime.observers.event_log import EventLogWriter
from duetime.observers.rollups import MinuteRollups
from duetime.store import Store

# The telemetry of one process: counters, per-minute roll-ups and the event log.


class ProcessTelemetry:
    """An observer. It runs only when there are events."""

    def __init__(self, store: Store, clock: Clock, instance: str) -> None:
        self._clock = clock
        self.instance = instance
        self.counters = ProcessCounters()
        self.event_log = EventLogWriter(store, clock)
        self.rollups = MinuteRollups(store, clock, self.counters, instance)
        self._closed = True

    def __call__(self, event: Event) -> None:
        now = self._clock.now()
        self.counters(event, now)
        if self._closed or isinstance(event, TurnFailed | LoopBlocked):
            # nothing is written after close(), and these two events may come from the heartbeat's thread
            return
        self.rollups.nudge()
        self.event_log(event, now)

    def open(self) -> None:
        """Call it on the event loop of the process."""
        self._closed = False
        self.event_log.open()

    async def close(self) -> None:
        """Write what is not written yet. A second call does not retry what the store refused. May be opened
        again."""
        if self._closed:
            return
        self._closed = True
        await self.event_log.close()
        await self.rollups.close()


TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Metric(NamedTuple):
    name: str  # without the "_total" of a counter
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The name to query."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


METRICS = {
    metric.name: metric
    for metric in (
        Metric("duetime_build_info", "gauge", "Version of this process; always 1.", ("version", "python")),
        # of the whole fleet, read from the store
        Metric("duetime_store_up", "gauge", "Whether the store answered when it was last asked."),
        Metric(
            "duetime_jobs",
            "gauge",
            "Live jobs of the fleet; due jobs also count as pending.",
            ("queue", "state"),
        ),
        Metric(
            "duetime_queue_lag_seconds",
            "gauge",
            "How long the oldest due job has been waiting; not of paused queues.",
            ("queue",),
        ),
        Metric(
            "duetime_queue_max_running",
            "gauge",
            "How many jobs may run at the same time; only of queues with such a limit.",
            ("queue",),
        ),
        Metric("duetime_nodes", "gauge", "Nodes of the fleet.", ("state",)),
        Metric(
            "duetime_leases",
            "gauge",
            "Leases of the fleet, held by a node that is alive, or free.",
            ("role", "state"),
        ),
        # of this process
        Metric(
            "duetime_jobs_submitted",
            "counter",
            "Jobs stored by this process, without fires of schedules.",
            ("queue",),
        ),
        Metric("duetime_jobs_claimed", "counter", "Attempts started by this process.", ("queue",)),
        Metric(
            "duetime_attempts",
            "counter",
            "Attempts settled by this process, by how they ended.",
            ("queue", "ending"),
        ),
        Metric(
            "duetime_jobs_finished",
            "counter",
            "Jobs brought to a final state by this process.",
            ("queue", "state"),
        ),
        Metric(
            "duetime_jobs_retried", "counter", "Failed attempts that are followed by another.", ("queue",)
        ),
        Metric(
            "duetime_job_lateness_seconds",
            "histogram",
            "Time from the due time of an attempt to its start.",
            ("queue",),
        ),
        Metric(
            "duetime_job_duration_seconds",
            "histogram",
            "Time from the start of an attempt to its end.",
            ("queue",),
        ),
        Metric(
            "duetime_target_attempts",
            "counter",
            "Attempts settled by this process, by target; targets beyond the first hundred are one.",
            ("target", "ending"),
        ),
        Metric(
            "duetime_schedule_attempts",
            "counter",
            "Attempts of fires settled by this process; schedules beyond the first hundred are one.",
            ("tenant", "schedule", "ending"),
        ),
        Metric(
            "duetime_schedule_lateness_seconds",
            "histogram",
            "Time from the due time of a fire's attempt to its start.",
            ("tenant", "schedule"),
        ),
        Metric("duetime_fires_planned", "counter", "Fires of schedules that became jobs."),
        Metric(
            "duetime_fires_skipped",
            "counter",
            "Fires that were missed, or started too late, and were recorded as skipped; schedules beyond the "
            "first hundred are one.",
            ("tenant", "schedule"),
        ),
        Metric("duetime_claim_seconds", "histogram", "How long the store took to claim jobs."),
        Metric("duetime_settle_seconds", "histogram", "How long the store took to write outcomes."),
        Metric("duetime_settlements_refused", "counter", "Results that came too late to count."),
        Metric("duetime_jobs_recovered", "counter", "Jobs of dead nodes that this process gave back."),
        Metric(
            "duetime_loop_failures", "counter", "Rounds of a loop that failed and were repeated.", ("part",)
        ),
        Metric(
            "duetime_read_store_used",
            "gauge",
            "Whether lists and statistics come from the read replica; only with a read replica.",
        ),
        Metric("duetime_read_store_lag_seconds", "gauge", "How far the read replica is behind the store."),
        Metric("duetime_broker_up", "gauge", "Whether the broker answers this process; only with a broker."),
        Metric(
            "duetime_broker_messages",
            "gauge",
            "Messages in the broker, as a dispatcher sees them; priorities that the broker groups are under "
            "the highest of the group.",
            ("queue", "priority"),
        ),
        Metric("duetime_tickets_pushed", "counter", "Tickets of due jobs given to the broker."),
        Metric("duetime_tickets_repeated", "counter", "Tickets given again: the first may be lost."),
        Metric("duetime_tickets_received", "counter", "Tickets that workers got from the broker."),
        Metric(
            "duetime_tickets_stale",
            "counter",
            "Tickets whose job could not start: it runs or ran already, or waits for a permit.",
        ),
        Metric(
            "duetime_broker_messages_dropped",
            "counter",
            "Messages that this process removed from the broker because they were not tickets.",
        ),
        Metric("duetime_node_running", "gauge", "Jobs that run in this process."),
        Metric("duetime_node_leases", "gauge", "Leases this process holds."),
        Metric("duetime_heartbeat_trusted", "gauge", "Whether this node's own lease is certainly valid."),
        Metric("duetime_heartbeat_age_seconds", "gauge", "Time since this node's own lease was renewed."),
        Metric("duetime_loop_lag_seconds", "gauge", "How late the event loop runs a callback."),
        Metric(
            "duetime_clock_skew_seconds",
            "gauge",
            "How far this machine's wall clock is ahead of the store's.",
        ),
        Metric("duetime_alerts", "gauge", "Alerts of all tenants that are open.", ("condition", "severity")),
        Metric("duetime_events_written", "counter", "Events written to the log one by one."),
        Metric(
            "duetime_events_merged", "counter", "Events that were only counted because there were too many."
        ),
        Metric("duetime_event_streams", "gauge", "Event subscribers of this process."),
        Metric("duetime_http_requests", "counter", "Requests answered.", ("route", "method", "status")),
        Metric(
            "duetime_http_request_seconds",
            "histogram",
            "Time from a request to the beginning of its response.",
            ("route",),
        ),
        Metric("process_cpu_seconds", "counter", "Processor time used."),
        Metric("process_resident_memory_bytes", "gauge", "Memory in use."),
        Metric("process_open_fds", "gauge", "Open files and sockets."),
    )
}


class MetricsPage:
    """One scrape: samples of declared metrics, in the order of the table."""

    def __init__(self) -> None:
        self._samples: dict[str, list[str]] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """The labels come in the order of their declaration."""
        metric = METRICS[name]
        self._lines(name).append(f"{metric.shown}{_labels(metric, labels)} {_number(value)}")

    def add_histogram(self, name: str, histogram: Histogram, *labels: str) -> None:
        metric, lines = METRICS[name], self._lines(name)
        for bound, count in histogram.up_to(FEW_BOUNDS):
            lines.append(f"{name}_bucket{_labels(metric, labels, _number(bound / SECOND))} {count}")
        lines.append(f"{name}_bucket{_labels(metric, labels, '+Inf')} {histogram.count}")
        lines.append(f"{name}_count{_labels(metric, labels)} {histogram.count}")
        lines.append(f"{name}_sum{_labels(metric, labels)} {_number(histogram.total / SECOND)}")

    def text(self, open_metrics: bool) -> str:
        return "\n".join(self._all_lines(open_metrics)) + "\n"

    def _lines(self, name: str) -> list[str]:
        return self._samples.setdefault(name, [])

    def _all_lines(self, open_metrics: bool) -> Iterator[str]:
        for name, metric in METRICS.items():
            if name in self._samples:
                title = name if open_metrics else metric.shown
                yield f"# HELP {title} {metric.help}"
                yield f"# TYPE {title} {metric.kind}"
                yield from self._samples[name]
        if open_metrics:
            yield "# EOF"


def _labels(metric: Metric, values: tuple[str, ...], bound: str | None = None) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(metric.labels, values, strict=True)]
    if bound is not None:
        pairs.append(f'le="{bound}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """Bounds are written as other exporters write them: 0.001, 1.0."""
    return str(value) if isinstance(value, int) else repr(float(value))
