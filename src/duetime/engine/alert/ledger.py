"""What the ledger says about the conditions of one tenant. A fixed number of queries for each sweep, however
many schedules and jobs there are: windows of fire times, open dead letters, overdue jobs, and a bounded
number of schedules that are looked at one by one."""

from __future__ import annotations

from dataclasses import replace

from duetime.engine.alert.notices import ALERT_QUEUE
from duetime.model import duration
from duetime.model.alert.rule import AlertRule, Condition, RuleSet
from duetime.model.alert.state import Alert, AlertState, Finding, key_of
from duetime.model.alert.text import ago
from duetime.model.ids import EVERY_SEGMENT
from duetime.model.instant import MINUTE, SECOND, Micros, to_iso
from duetime.model.job import Job, JobFilter, State, error_line
from duetime.model.limit import QueueFilter
from duetime.model.schedule import Schedule
from duetime.model.target import shown_name
from duetime.store import DueSchedules, Store

MAX_ROWS = 1_000  # of one query
MAX_DEAD = 500
MAX_CHECKS = 100  # schedules looked at one by one, in one sweep
MAX_WATCHED = 5_000
MAX_COUNTED = 10_000
MIN_RATIO_JOBS = 10  # fewer say nothing about a ratio
OVERLAP = 2 * MINUTE  # a window begins so much before the end of the last one: rows may be committed late
MAX_RUNTIME = 86_400 * SECOND
WAITING = frozenset({State.PENDING, State.QUEUED})
OPEN_ENDED = WAITING | {State.RUNNING}
NOT_SUCCEEDED = OPEN_ENDED | {State.DEAD, State.SKIPPED}  # a user decided to cancel
ENDED = frozenset({State.SUCCEEDED, State.DEAD})


class Ledger:
    """One sweep over one tenant. `findings` is what is wrong, `over` what no longer is (by key: why)."""

    def __init__(
        self, store: Store, tenant: str, rules: RuleSet, state: AlertState, gap_start: Micros, now: Micros
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._rules = rules
        self._state = state
        self._gap_start = gap_start  # before it everything was checked
        self._now = now
        self._checks = MAX_CHECKS
        self.findings: list[Finding] = []
        self.over: dict[str, str] = {}

    async def read(self) -> None:
        dead = await self._dead_letters()
        await self._failing(dead)
        await self._failing_ratio()
        await self._recovered()
        await self._silent()
        await self._skipped()
        await self._lag()
        await self._late()

    # -- dead letters --------------------------------------------------------------------------------
    async def _dead_letters(self) -> list[Job]:
        wanted = JobFilter(self._tenant, frozenset({State.DEAD}), undisposed=True)
        dead = await self._store.list_jobs(wanted, MAX_DEAD)
        groups: dict[str, list[Job]] = {}
        for job in dead:
            groups.setdefault(job.schedule or f"{shown_name(job.target)} in {job.queue}", []).append(job)
        for subject, jobs in groups.items():
            rule = self._rules.best(Condition.DEAD_LETTERS, jobs[0].schedule, jobs[0].queue)
            if rule is not None and len(jobs) >= rule.count:
                number = f"{len(jobs)} dead letter{'s' if len(jobs) > 1 else ''}"
                reason = error_line(jobs[0].error or "no error is known")
                self._found(
                    rule, subject, min(_ended(job) for job in jobs), f"{number}; the last: {reason}",
                    count=len(jobs),
                )  # fmt: skip
        if len(dead) < MAX_DEAD:
            self._close_others(Condition.DEAD_LETTERS, "no open dead letters")
        return dead

    # -- failing -------------------------------------------------------------------------------------
    async def _failing(self, dead: list[Job]) -> None:
        since = self._state.swept_at - OVERLAP
        fresh = {job.schedule: job for job in reversed(dead) if job.schedule and _ended(job) > since}
        for name, job in fresh.items():
            rule = self._rules.best(Condition.FAILING, name, job.queue)
            if rule is None or self._is_open(Condition.FAILING, name) or not self._may_check():
                continue
            wanted = JobFilter(self._tenant, ENDED, schedule=name)
            ended = await self._store.list_jobs(wanted, rule.count)
            if len(ended) >= rule.count and all(one.state is State.DEAD for one in ended):
                text = f"the last {rule.count} jobs failed; the last: {error_line(ended[0].error or '')}"
                self._found(rule, name, _ended(ended[-1]), text)

    async def _failing_ratio(self) -> None:
        for rule in self._rules.of(Condition.FAILING):
            if rule.ratio is None:
                continue
            wanted = JobFilter(
                self._tenant, schedule=rule.schedule, queue=rule.queue, fire_after=self._now - rule.window
            )
            failed = await self._count(replace(wanted, states=frozenset({State.DEAD})))
            total = failed + await self._count(replace(wanted, states=frozenset({State.SUCCEEDED})))
            subject = rule.schedule or rule.queue or "all jobs"
            if total >= MIN_RATIO_JOBS and failed >= rule.ratio * total:
                text = f"{failed} of {total} jobs failed within {duration.show(rule.window)}"
                self._found(rule, subject, self._now - rule.window, text)
            elif (alert := self._alert(Condition.FAILING, subject)) and alert.rule == rule.name:
                self.over[alert.key] = "fewer jobs fail"

    # -- silent --------------------------------------------------------------------------------------
    async def _silent(self) -> None:
        rules = self._rules.of(Condition.SILENT)
        due = {name: (fire, at) for name, fire, at in self._watched() if at <= self._now}
        self._state.watch = [one for one in self._watched() if one[2] > self._now]
        seen: dict[str, tuple[Micros, Schedule | None, Job | None]] = {
            name: (fire, None, None) for name, (fire, _) in due.items()
        }
        for grace in sorted({rule.after for rule in rules}):
            if self._now < self._state.resumed_at + grace:
                continue  # what was overdue when the fleet came back gets its grace again
            for schedule in await self._unplanned(grace):
                seen[schedule.draft.name] = (schedule.next_fire_time or 0, schedule, None)
            for job in await self._without_success(grace):
                known = seen.get(job.schedule or "")
                if known is None or job.fire_time >= known[0]:
                    seen[job.schedule or ""] = (job.fire_time, None, job)
        for name, candidate in seen.items():
            if not self._is_open(Condition.SILENT, name):
                await self._check_silence(name, *candidate)
        self._state.watch = self._state.watch[:MAX_WATCHED]

    def _watched(self) -> list[tuple[str, Micros, Micros]]:
        return self._state.watch

    async def _unplanned(self, grace: Micros) -> list[Schedule]:
        """Fires that are overdue and have no job."""
        overdue = await self._store.list_schedules(DueSchedules(EVERY_SEGMENT, self._now - grace), MAX_ROWS)
        return [one for one in overdue if one.draft.tenant == self._tenant]

    async def _without_success(self, grace: Micros) -> list[Job]:
        """Fires whose grace ended since the last sweep, and that have not succeeded."""
        skipped = self._state.swept_at < self._state.resumed_at + grace
        checked = self._gap_start if skipped else self._state.swept_at
        wanted = JobFilter(
            self._tenant,
            NOT_SUCCEEDED,
            scheduled=True,
            fire_after=checked - grace - OVERLAP,
            fire_before=self._now - grace,
        )
        jobs = await self._store.list_jobs(wanted, MAX_ROWS)
        return [job for job in jobs if job.disposition is None]  # an operator knows of the others

    async def _check_silence(
        self, name: str, fire: Micros, schedule: Schedule | None, job: Job | None
    ) -> None:
        if not self._may_check():
            self._state.watch.append((name, fire, self._now))
            return
        schedule = schedule or await self._store.get_schedule(self._tenant, name)
        if schedule is None or schedule.paused or (job is not None and job.schedule_id != schedule.id):
            return
        rule = self._rules.best(Condition.SILENT, name, schedule.draft.queue)
        if rule is None or self._is_open(Condition.DEAD_LETTERS, name):
            return  # its dead letter says more
        success = await self._last_success(name)
        if success is not None and _ended(success) >= fire:
            return
        deadline = fire + rule.after + _allowance(fire, job, success)
        if self._now < deadline:
            self._state.watch.append((name, fire, deadline))
            return
        last = None if success is None else _ended(success)
        what = "was not planned" if job is None and schedule.next_fire_time == fire else "has no success"
        text = f"the fire of {to_iso(fire // SECOND * SECOND)} {what}; last success: {ago(self._now, last)}"
        self._found(rule, name, fire, text, fire=fire)

    # -- skipped -------------------------------------------------------------------------------------
    async def _skipped(self) -> None:
        """Not for an overlap: a schedule with overlap `skip` says that it is no loss."""
        window = max((rule.window for rule in self._rules.of(Condition.SKIPPED)), default=0)
        wanted = JobFilter(
            self._tenant, frozenset({State.SKIPPED}), scheduled=True, fire_after=self._now - window
        )
        jobs = await self._store.list_jobs(wanted, MAX_ROWS) if window else []
        fires: dict[str, list[Job]] = {}
        for job in jobs:
            if job.disposition is None and not (job.error or "").startswith("overlap:"):
                fires.setdefault(job.schedule or "", []).append(job)
        for name, skipped in fires.items():
            rule = self._rules.best(Condition.SKIPPED, name, skipped[0].queue)
            if rule is None:
                continue
            recent = [job for job in skipped if job.fire_time > self._now - rule.window]
            if len(recent) >= rule.count:
                text = f"{len(recent)} fires were skipped within {duration.show(rule.window)}"
                reason = error_line(recent[0].error or "no reason is known")
                self._found(
                    rule, name, min(_ended(job) for job in recent), f"{text}; the last: {reason}",
                    count=len(recent),
                )  # fmt: skip
        if len(jobs) < MAX_ROWS:
            self._close_others(Condition.SKIPPED, "fewer fires are skipped")

    # -- over ----------------------------------------------------------------------------------------
    async def _recovered(self) -> None:
        """Of many open alerts some in each sweep, in turns."""
        wanted = (Condition.SILENT, Condition.FAILING)
        alerts = [alert for alert in self._state.open if alert.condition in wanted]
        first = self._state.turn % len(alerts) if alerts else 0
        self._state.turn = first + MAX_CHECKS // 2
        for alert in (alerts[first:] + alerts[:first])[: MAX_CHECKS // 2]:
            rule = next((one for one in self._rules.rules if one.name == alert.rule), None)
            if rule is None or rule.ratio is None:
                await self._check_recovery(alert)

    async def _check_recovery(self, alert: Alert) -> None:
        name = alert.subject
        schedule = await self._store.get_schedule(self._tenant, name)
        condition = Condition(alert.condition)
        if schedule is None or schedule.paused:
            self.over[alert.key] = "removed" if schedule is None else "paused"
        elif self._rules.best(condition, name, schedule.draft.queue) is None:
            self.over[alert.key] = "no rule applies"
        elif condition is Condition.SILENT:
            success = await self._last_success(name)
            if success is not None and _ended(success) >= alert.detail.get("fire", alert.since):
                self.over[alert.key] = "succeeded again"
        else:
            last = await self._store.list_jobs(JobFilter(self._tenant, ENDED, schedule=name), 1)
            if not last or last[0].state is State.SUCCEEDED:
                self.over[alert.key] = "succeeded again"

    # -- lag and lateness ----------------------------------------------------------------------------
    async def _lag(self) -> None:
        rules = self._rules.of(Condition.QUEUE_LAG)
        if not rules:
            self._close_others(Condition.QUEUE_LAG, "no rule applies")
            return
        shortest = min(rule.after for rule in rules)
        if self._now < self._state.resumed_at + shortest:
            return
        overdue = await self._overdue(JobFilter(self._tenant, WAITING), shortest)
        paused = await self._paused() if overdue else set()
        oldest: dict[str, Job] = {}
        for job in overdue:
            if job.queue not in paused and job.queue != ALERT_QUEUE:
                known = oldest.get(job.queue)
                oldest[job.queue] = job if known is None or job.due_at < known.due_at else known
        for queue, job in oldest.items():
            rule = self._rules.best(Condition.QUEUE_LAG, None, queue)
            if rule is not None and job.due_at < self._now - rule.after:
                waits = duration.show((self._now - job.due_at) // SECOND * SECOND)
                self._found(rule, queue, job.due_at, f"a job is due for {waits} and has not started")
        if len(overdue) < MAX_ROWS:
            self._close_others(Condition.QUEUE_LAG, "no job is overdue")

    async def _late(self) -> None:
        full = False
        for rule in self._rules.of(Condition.LATE):
            if self._now < self._state.resumed_at + rule.after:
                continue
            wanted = JobFilter(self._tenant, WAITING, scheduled=rule.schedule is not None)
            wanted = replace(wanted, schedule=_exact(rule.schedule), queue=_exact(rule.queue))
            overdue = await self._overdue(wanted, rule.after)
            full = full or len(overdue) >= MAX_ROWS
            for job in overdue:
                subject = job.schedule or job.queue
                if self._rules.best(Condition.LATE, job.schedule, job.queue) == rule:
                    late = duration.show((self._now - job.due_at) // SECOND * SECOND)
                    self._found(rule, subject, job.due_at, f"a job is {late} late and has not started")
        if not full:
            self._close_others(Condition.LATE, "no job is late")

    async def _overdue(self, wanted: JobFilter, after: Micros) -> list[Job]:
        """By fire time as well, which an index has: pending jobs of the future are not looked at."""
        before = self._now - after
        return await self._store.list_jobs(replace(wanted, due_before=before, fire_before=before), MAX_ROWS)

    async def _paused(self) -> set[str]:
        queues = await self._store.queues(wanted=QueueFilter(restricted=True))
        return {queue.name for queue in queues if queue.paused}

    # -- inside --------------------------------------------------------------------------------------
    async def _last_success(self, schedule: str) -> Job | None:
        wanted = JobFilter(self._tenant, frozenset({State.SUCCEEDED}), schedule=schedule)
        found = await self._store.list_jobs(wanted, 1)
        return found[0] if found else None

    async def _count(self, wanted: JobFilter) -> int:
        return await self._store.count_jobs(wanted, MAX_COUNTED)

    def _may_check(self) -> bool:
        self._checks -= 1
        return self._checks >= 0

    def _found(self, rule: AlertRule, subject: str, since: Micros, text: str, **detail: int) -> None:
        self.findings.append(Finding(rule, subject, since, text, detail))

    def _alert(self, condition: Condition, subject: str) -> Alert | None:
        key = key_of(condition, subject)
        return next((alert for alert in self._state.open if alert.key == key), None)

    def _is_open(self, condition: Condition, subject: str) -> bool:
        key = key_of(condition, subject)
        return self._alert(condition, subject) is not None or any(one.key == key for one in self.findings)

    def _close_others(self, condition: Condition, reason: str) -> None:
        """All alerts of the condition that were not found."""
        found = {finding.key for finding in self.findings}
        for alert in self._state.open:
            if alert.condition == condition and alert.key not in found:
                self.over[alert.key] = reason


def _ended(job: Job) -> Micros:
    return job.finished_at or job.fire_time


def _exact(pattern: str | None) -> str | None:
    return None if pattern is None or "*" in pattern else pattern


def _allowance(fire: Micros, job: Job | None, success: Job | None) -> Micros:
    """A job that runs may take as long as the last success took, and half of it more. One that has not begun
    may begin at its due time, which jitter moves."""
    if job is None or job.state not in OPEN_ENDED:
        return 0
    if job.state is not State.RUNNING:
        return max(0, job.due_at - fire) if job.attempt == 0 else 0
    if success is None or success.started_at is None:
        return 0
    return min(MAX_RUNTIME, (_ended(success) - success.started_at) * 3 // 2)
