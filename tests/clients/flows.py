"""The main flows, with a client that openapi-python-client generated: `python flows.py FOLDER ADDRESS KEY`.
The environment has the packages of requirements/clients.txt, and not Duetime."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

FOLDER, ADDRESS, KEY = sys.argv[1:]
sys.path.insert(0, FOLDER)
models: Any = import_module("duetime_client.models")
client: Any = import_module("duetime_client").AuthenticatedClient(base_url=ADDRESS, token=KEY)


def call(operation: str, *path: Any, **given: Any) -> Any:
    return import_module(f"duetime_client.api.{operation}").sync(*path, client=client, **given)


def jobs() -> None:
    greeting = models.TaskTargetIn(type_="task", name="greet")
    job = models.NewJob(target=greeting, payload={"name": "Ada"}, unique_key="one")
    made = call("jobs.submit_job", body=job, idempotency_key="k1")
    assert made.created
    assert call("jobs.submit_job", body=job, idempotency_key="k1").id == made.id
    done = call("jobs.read_job", made.id, wait="30s")
    assert (done.state, done.result, done.queue) == (models.State.SUCCEEDED, "hello Ada", "greetings")
    later = call("jobs.submit_job", body=models.NewJob(target=greeting, payload={"name": "b"}, delay="1h"))
    moved = call("jobs.change_job", later.id, body=models.JobPatch(priority=9))
    assert (moved.priority, moved.queue) == (9, "greetings")
    assert call("jobs.cancel_job", later.id).state == models.State.CANCELLED
    assert {one.id for one in call("jobs.list_jobs").items} == {made.id, later.id}
    batch = models.JobBatch(jobs=[models.BatchJob(target=greeting, payload={"name": "c"}) for _ in range(3)])
    assert call("jobs.submit_jobs", body=batch).created == 3


def schedules() -> None:
    target = models.HttpTargetIn(type_="http", url="https://agent.example/run", method="PUT")
    wanted = models.NewSchedule(name="nightly", when=models.CronIn(cron="0 2 * * *"), target=target)
    made = call("schedules.create_schedule", body=wanted)
    assert (made.name, made.queue, made.target["method"]) == ("nightly", "default", "PUT")
    edited = call(
        "schedules.edit_schedule", made.id, body=models.SchedulePatch(when=models.EveryIn(every="10m"))
    )
    assert (edited.version, edited.when["every"], edited.target["method"]) == (2, "10m", "PUT")
    assert call("schedules.pause_schedule", "nightly", body=models.Pause(note="holiday")).paused
    assert [one.name for one in call("schedules.list_schedules").items] == ["nightly"]
    call("schedules.remove_schedule", "nightly")


def problems() -> None:
    target = models.TaskTargetIn(type_="task", name="greet")
    refused = call("jobs.submit_job", body=models.NewJob(target=target, priority=12))
    assert isinstance(refused, models.Problem)
    assert (refused.code, refused.field) == ("input_invalid", "priority")


jobs()
schedules()
problems()
