"""Names with whatever a name may have, from both clients and the command line to a service that really
listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest
from typer.testing import CliRunner

import duetime as dt
from duetime.cli.program import program
from duetime.errors import InvalidInput, ScheduleNotFound
from tests.api.test_names import NASTY
from tests.remote.conftest import Caller, Served
from tests.remote.scripted import answer, scripted

DOTS = [".", ".."]


async def test_queue_may_have_any_printable_name(service: Caller) -> None:
    """Of all names in one test: starting a service takes longer than the rest."""
    for name in (*NASTY, *DOTS):
        await use_queue(service, name)


async def use_queue(service: Caller, name: str) -> None:
    await service.submit("send", queue=name, delay="1h")
    assert (await service.pause_queue(name, "later")).name == name
    assert (name, True) in [(queue.name, queue.paused) for queue in await service.queues()]
    assert (await service.resume_queue(name)).paused is False
    assert (await service.limit_queue(name, 2)).max_running == 2
    assert [job.queue for job in await service.jobs(queue=name)] == [name]


async def test_schedule_may_have_any_printable_name(service: Caller) -> None:
    for name in (*NASTY, *DOTS):
        await use_schedule(service, name)


async def use_schedule(service: Caller, name: str) -> None:
    made = await service.schedule(name, "send", dt.Every("5m"))
    assert (await service.schedule(name, "send", dt.Every("6m"), replace=True)).id == made.id
    assert (await service.pause(name)).paused
    assert not (await service.resume(name)).paused
    assert (await service.edit_schedule(name, {"priority": 7})).priority == 7
    assert (await service.trigger(name)).schedule == name
    assert [job.schedule for job in await service.jobs(schedule=name)] == [name]
    assert (await service.preview_schedule(name)).fires
    assert (await service.why_schedule(name)).why
    assert len(await service.schedule_versions(name)) >= 3
    assert (await service.restore_schedule(name, 1)).name == name
    assert (await service.plan_schedule(name, {"priority": 8})).version
    await service.remove(name)
    with pytest.raises(ScheduleNotFound):
        await service.get_schedule(name)


async def test_invalid_name_is_refused_before_it_is_sent(service: Caller) -> None:
    calls = (service.pause_queue, service.resume_queue, service.limit_queue)
    for call, name in product(calls, ["", "a\nb", " a", "\ud800", "@a", "*", "a" * 129]):
        with pytest.raises(InvalidInput, match="queue: "):
            await call(name)


async def test_name_that_cannot_be_encoded_is_refused(service: Caller) -> None:
    for call, name in product((service.get_schedule, service.revoke_key), ["", "\ud800"]):
        with pytest.raises(InvalidInput, match="name: "):
            await call(name)


@asynccontextmanager
async def command_line(served: Served, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("DUETIME_SERVER", served.url)
    runner = CliRunner()

    async def run(*words: str) -> str:
        done = await asyncio.to_thread(runner.invoke, program, list(words), prog_name="duetime")
        assert done.exit_code == 0, done.output
        return done.stdout

    yield run


@pytest.mark.slow
async def test_command_line_reaches_any_name(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async with command_line(served, monkeypatch) as run:
        for name in ("a/b", "x/jobs", "100% %2F", "a?b=c#d", "\u00e4/\u00f6 \u8a9e", ".."):
            await run("job", "submit", "send", "--queue", name, "--delay", "1h")
            await run("queue", "pause", name)
            assert (name, True) in [
                (one["name"], one["paused"]) for one in json.loads(await run("queue", "list", "--json"))
            ]
            await run("queue", "resume", name)
            await run("schedule", "add", name, "send", "--every", "5m")
            await run("schedule", "pause", name)
            assert json.loads(await run("schedule", "show", name, "--json"))["paused"] is True
            await run("schedule", "trigger", name)
            await run("why", name)
            await run("schedule", "remove", name, "--yes")


@pytest.mark.parametrize("name", ["a/b", ".", ".."])
async def test_name_that_a_proxy_would_change_is_addressed_by_id(name: str) -> None:
    """Proxies make a slash of %2F and take `..` for the way up: the schedule is looked up, and addressed by
    its id."""
    async with scripted(answer(200, {"items": [], "next_cursor": None})) as script:
        async with dt.AsyncClient(script.url) as client:
            with pytest.raises(ScheduleNotFound):
                await client.get_schedule(name)
        assert [seen.path for seen in script.seen] == [
            f"/api/v1/schedules?{urlencode({'text': name, 'limit': 1_000})}"
        ]
