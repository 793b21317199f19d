"""Isolated tasks: a process of their own, bounded in time and memory, that takes everything it started
along."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import psutil
import pytest

from duetime.errors import Conflict, Fenced, InvalidInput, InvalidPayload, ProcessDied, TaskError
from duetime.invokers import process
from duetime.invokers.isolation import Isolation
from duetime.invokers.resources import ResourceBox, Use
from duetime.model.codec import decode, encode
from duetime.model.job import trace
from duetime.model.settle import Cancel, RetryAfter, Snooze
from tests.app.waiting import eventually
from tests.unit.invokers import chores
from tests.unit.invokers.attempts import ListDesk, context, handler
from tests.unit.invokers.families import alive, family

pytestmark = pytest.mark.slow  # every test starts processes
ALONE = Isolation(spare=False)
PATIENCE = 40.0


async def isolated(
    function: Callable[..., Any], /, desk: ListDesk | None = None, isolate: Any = ALONE, **arguments: Any
) -> Any:
    return await handler(function, isolate=isolate).invoke(context(desk, checkpoint="old"), encode(arguments))


async def test_isolated_task_runs_in_another_process_with_a_working_context() -> None:
    desk = ListDesk()
    result = await isolated(chores.plain, desk, day="2026-11-15", n=3)
    assert result.pop("pid") != os.getpid()
    assert result == {
        "year": 2026, "before": "old", "after": {"at": 3}, "once": [True, False], "attempt": 1, "folder": os.getcwd(), "argv": sys.argv,
    }  # fmt: skip
    assert [(note.checkpoint, note.progress and decode(note.progress)["note"]) for note in desk.notes] == [
        (b'{"at":3}', None),
        (None, "half"),
    ]


async def test_async_function_is_isolated_too() -> None:
    desk = ListDesk()
    assert await isolated(chores.awaited, desk, n=4) == 5
    assert desk.notes[0].checkpoint == b"4"


async def test_output_and_log_records_of_a_child_are_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "OUTPUT_TIMEOUT", PATIENCE)
    with caplog.at_level(logging.INFO):
        await isolated(chores.chatty)
    said = {(record.levelname, record.message) for record in caplog.records if record.name == "duetime.task"}
    assert said == {
        ("INFO", "printed"), ("WARNING", "complained"), ("INFO", "half a line"), ("INFO", "unfinished"), ("WARNING", "logged"),
    }  # fmt: skip
    job_ids = {record.__dict__["job_id"] for record in caplog.records if record.name == "duetime.task"}
    assert job_ids == {str(context().job_id)}


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("hiccup", chores.Hiccup, r"no luck \(7\)"),
        ("local", TaskError, "Strange: odd"),
        ("snooze", Snooze, "later"),
        ("again", RetryAfter, "busy"),
        ("cancel", Cancel, "done already"),
        ("exit", TaskError, "SystemExit: 4"),
        ("vanish", ProcessDied, "the process ended with status 3 before the task was done"),
        ("killed", ProcessDied, r"killed by signal 9 \(SIGKILL\): out of memory\?"),
        ("crash", ProcessDied, r"killed by signal 11 \(SIGSEGV\)$"),
    ],
)
async def test_however_it_ends_the_worker_is_told(how: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        await isolated(chores.ending, how=how)
    assert type(caught.value) is kind
    if isinstance(caught.value, Snooze | RetryAfter):
        assert caught.value.delay == (5_000_000 if how == "snooze" else 7_000_000)
    if how == "hiccup":
        assert "in ending" in caught.value.__notes__[0]
        assert str(Path(process.__file__).parents[1]) not in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (chores.ending, {"how": "no json"}, "the task returned something that is not JSON"),
        (chores.ending, {"how": "nan"}, "result.mean: nan is not a JSON number"),
        (chores.long_result, {}, "over the limit of 262,144: store it elsewhere and return a reference"),
    ],
)
async def test_work_whose_result_cannot_be_stored_is_done(
    function: Callable[..., Any], arguments: dict[str, Any], reason: str
) -> None:
    here = context()
    assert await handler(function, isolate=ALONE).invoke(here, encode(arguments)) is None
    assert (here.unstored or "").startswith("succeeded without a result: ")
    assert reason in (here.unstored or "")


async def test_result_that_is_not_to_be_stored_stays_in_the_child() -> None:
    here = context()
    calls = handler(chores.ending, isolate=ALONE, store_result=False)
    assert await calls.invoke(here, encode({"how": "no json"})) is None
    assert here.unstored is None


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("end of file", EOFError, "EOF when reading a line"),
        ("tool", subprocess.CalledProcessError, "Command '['false']' returned non-zero exit status 1."),
        ("bytes", UnicodeDecodeError, "'utf-8' codec can't decode byte 0xff in position 0"),
        ("mute", chores.Mute, "Mute (its text cannot be read)"),
    ],
)
async def test_any_error_of_the_task_arrives_with_its_class_and_its_text(
    how: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        await isolated(chores.ending, how=how)
    last_line = trace(caught.value, None).rpartition("\n")[2]
    assert f"{kind.__name__}: {message}" in last_line


async def test_memory_is_bounded() -> None:
    with pytest.raises(MemoryError, match="memory limit"):
        await isolated(chores.greedy, isolate=Isolation(memory="256MB", spare=False))


async def test_being_fenced_reaches_the_task() -> None:
    desk = ListDesk()
    desk.fenced = True
    with pytest.raises(Fenced, match="belongs to another attempt"):
        await isolated(chores.fenced, desk)


async def test_the_worker_s_connection_stays_there() -> None:
    with pytest.raises(Conflict, match=r"ctx\.connection belongs to the worker's process"):
        await isolated(chores.connected)


async def test_a_payload_that_does_not_fit_starts_no_process() -> None:
    with pytest.raises(InvalidPayload, match="day"):
        await isolated(chores.plain, day="tomorrow")


@pytest.mark.parametrize(
    ("function", "waits", "last"),
    [
        (chores.polite, "STOP_TIMEOUT", "ended by itself"),
        (chores.tidy, "TERMINATE_TIMEOUT", "cleaned up"),
        (chores.tidy_async, "TERMINATE_TIMEOUT", "cleaned up"),
        (chores.stubborn, None, ""),
    ],
)
async def test_stopping_asks_then_tells_then_kills_the_whole_group(
    function: Callable[..., Any],
    waits: str | None,
    last: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that listen have all the time they need."""
    if waits is not None:
        monkeypatch.setattr(process, waits, PATIENCE)
    notes = tmp_path / "notes"
    running = asyncio.ensure_future(isolated(function, notes=str(notes)))
    pids = await family(notes)
    assert all(alive(pid) for pid in pids)
    running.cancel()
    _, late = await asyncio.wait([running], timeout=2 * PATIENCE)
    assert not late
    assert running.cancelled()
    assert notes.read_text().partition("\n")[2] == last

    async def gone() -> bool:  # the kernel ends a killed process when it gets to it
        return not any(alive(pid) for pid in pids)

    await eventually(gone)


async def test_child_that_is_stopped_while_it_starts_ends() -> None:
    def children() -> set[int]:
        return {child.pid for child in psutil.Process().children() if alive(child.pid)}

    before = children()
    for turns in range(4):
        running = asyncio.ensure_future(isolated(chores.pid))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    async def gone() -> bool:
        return children() <= before

    await eventually(gone)


@pytest.mark.parametrize("step", ["create_connection", "connect_read_pipe"])
async def test_child_that_cannot_start_leaves_nothing_behind(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    spawn = process._spawn

    def spawned(line: int, lifeline: int, mark: str) -> subprocess.Popen[bytes]:
        made = spawn(line, lifeline, mark)
        started.append(made.pid)
        return made

    async def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(process, "_spawn", spawned)
    monkeypatch.setattr(asyncio.get_running_loop(), step, refuse)
    before = psutil.Process().num_fds()
    with pytest.raises(OSError, match="Too many open files"):
        await isolated(chores.pid)

    async def gone() -> bool:
        gc.collect()
        return not any(map(alive, started)) and psutil.Process().num_fds() <= before

    assert started
    await eventually(gone)


async def test_processes_of_a_finished_task_are_killed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    assert await isolated(chores.littering, notes=str(notes)) == "done"
    pids = await family(notes)

    async def gone() -> bool:
        return not any(alive(pid) for pid in pids)

    await eventually(gone)


async def test_process_that_left_the_group_ends_with_the_attempt(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    assert await isolated(chores.escaping, notes=str(notes)) == "done"
    assert not any(alive(pid) for pid in await family(notes))


async def test_process_that_left_the_group_ends_with_a_stopped_attempt(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    running = asyncio.ensure_future(isolated(chores.escaping_and_busy, notes=str(notes)))
    pids = await family(notes)
    running.cancel()
    await asyncio.wait([running])
    assert not any(alive(pid) for pid in pids)


async def test_message_without_end_is_not_read() -> None:
    before = psutil.Process().memory_info().rss
    with pytest.raises(ProcessDied, match="sent 4,294,967,295 bytes at once"):
        await isolated(chores.endless_message)
    assert psutil.Process().memory_info().rss - before < 64 * 1024**2


async def test_secrets_of_the_worker_are_not_given_to_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUETIME_SECRET_KEYS", "k1:secret")
    monkeypatch.setenv("CITY", "Graz")
    names = await isolated(chores.variables)
    assert "CITY" in names
    assert "DUETIME_SECRET_KEYS" not in names


async def turns_of_the_loop_during(work: Any) -> int:
    """How often another coroutine of the worker gets its turn meanwhile."""
    running, turns = asyncio.ensure_future(work), 0
    while not running.done():
        await asyncio.sleep(0.01)
        turns += 1
    await running
    return turns


@pytest.mark.parametrize("text", ["y\n", "a line of forty characters, or a little more\n"])
async def test_endless_printing_does_not_occupy_the_worker(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        quiet = await turns_of_the_loop_during(isolated(chores.printing, seconds=2.0, text=""))
        loud = await turns_of_the_loop_during(isolated(chores.printing, seconds=2.0, text=text))
    assert loud > quiet / 3
    assert "lines left out: the task logs more than 1000 per second" in caplog.text


async def test_endless_logging_does_not_occupy_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        quiet = await turns_of_the_loop_during(isolated(chores.printing, seconds=2.0, text=""))
        loud = await turns_of_the_loop_during(isolated(chores.logging_much, seconds=2.0))
    assert loud > quiet / 3
    assert "lines left out" in caplog.text


WORKER = """
import asyncio, sys
from tests.unit.invokers import chores
from tests.unit.invokers.families import alive, family
from tests.unit.invokers.attempts import context, handler
from duetime.model.codec import encode

async def main():
    await handler(getattr(chores, sys.argv[1]), isolate=True).invoke(context(), encode({"notes": sys.argv[2]}))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("chore", ["tidy", "stubborn"])
async def test_when_the_worker_is_killed_nothing_of_it_stays(chore: str, tmp_path: Path) -> None:
    """Not even what is too busy to notice, and what it has started."""
    notes = tmp_path / "notes"
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, chore, str(notes)], cwd=Path(__file__).parents[3]
    )
    pids = await family(notes)
    worker.send_signal(signal.SIGKILL)
    worker.wait()

    async def gone() -> bool:
        return not any(alive(pid) for pid in pids)

    await eventually(gone)


SCRIPT = """
import asyncio, sys
import duetime as dt
from tests.unit.invokers.attempts import context, handler

def twice(n: int) -> list:
    return [2 * n, __name__]

async def main():
    print(await handler(twice, isolate=True).invoke(context(), b'{"n": 4}'))

GUARD
    asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("as_module", "name"), [(False, "__mp_main__"), (True, "script")])
def test_a_function_of_the_script_itself_is_found(as_module: bool, name: str, tmp_path: Path) -> None:
    done = run_script(SCRIPT.replace("GUARD", 'if __name__ == "__main__":'), as_module, tmp_path)
    assert done.stdout.strip() == str([8, name]), done.stderr


@pytest.mark.slow
def test_a_script_that_runs_when_imported_is_refused_with_the_remedy(tmp_path: Path) -> None:
    done = run_script(SCRIPT.replace("GUARD", "if True:"), False, tmp_path)
    assert 'put app.run() under `if __name__ == "__main__":`' in done.stderr


def run_script(text: str, as_module: bool, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(textwrap.dedent(text))
    command = [sys.executable, *(["-m", "script"] if as_module else ["script.py"])]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
async def box() -> AsyncIterator[ResourceBox]:
    made = ResourceBox()
    yield made
    await made.close()


async def test_a_spare_waits_warm_for_the_next_attempt_and_ends_with_the_node(box: ResourceBox) -> None:
    work = handler(chores.pid, isolate=True, resources=box)
    assert work._children is not None
    pids = [await work.invoke(context(), b"{}")]

    async def warm() -> bool:
        return work._children is not None and work._children._spare is not None

    await eventually(warm)
    spare = work._children._spare
    assert spare is not None
    pids.append(await work.invoke(context(), b"{}"))
    assert pids[1] == spare.pid != pids[0]
    await eventually(warm)
    last = work._children._spare
    assert last is not None
    assert alive(last.pid)
    await box.close()
    assert not alive(last.pid)


async def test_a_spare_that_died_is_not_used(box: ResourceBox) -> None:
    work = handler(chores.pid, isolate=True, resources=box)
    assert work._children is not None
    await work._children._refill()
    spare = work._children._spare
    assert spare is not None
    os.kill(spare.pid, signal.SIGKILL)
    await spare.exited
    assert await work.invoke(context(), b"{}") != spare.pid


def needs(pool: Annotated[int, Use(os.getpid)]) -> None: ...


@pytest.mark.parametrize(
    ("function", "isolate", "message"),
    [
        (lambda: None, True, "by its name"),
        (needs, True, "cannot use the worker's resources"),
        (chores.pid, "yes", "use True or"),
    ],
)
def test_function_that_cannot_be_isolated_is_rejected(function: Any, isolate: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        handler(function, isolate=isolate)


@pytest.mark.parametrize(
    "options", [{"memory": "lots"}, {"memory": 512}, {"memory": "1MB"}, {"start": "fork"}]
)
def test_wrong_bounds_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"isolate\.(memory|start)"):
        Isolation(**options)


@pytest.mark.parametrize(
    ("text", "size"), [("512MB", 512 * 1024**2), ("1.5 GiB", 1536 * 1024**2), ("70000kb", 70_000 * 1024)]
)
def test_memory_as_people_write_it(text: str, size: int) -> None:
    assert Isolation(memory=text).memory_bytes == size
