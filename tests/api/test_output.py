"""The output of jobs over HTTP."""

from __future__ import annotations

import duetime as dt
from tests.api.conftest import Api, refused

MISSING = "01935c2e-7b3a-7000-8000-000000000000"


async def test_output_is_read_line_after_line(api: Api) -> None:
    @api.app.task("talks")
    async def talks(ctx: dt.Context) -> None:
        ctx.log("one")
        ctx.log.error("two")

    job_id = await api.submit(target={"type": "task", "name": "talks"})
    before = (await api.get(f"/jobs/{job_id}/output")).json()
    assert before == {"attempt": 0, "lines": [], "total": 0, "last": 0, "ended": False}
    async with api.app.running():
        await api.get(f"/jobs/{job_id}?wait=30s")
    body = (await api.get(f"/jobs/{job_id}/output")).json()
    assert [(line["number"], line["stream"], line["level"], line["text"]) for line in body["lines"]] == [
        (1, "log", "info", "one"),
        (2, "log", "error", "two"),
    ]
    assert body["lines"][0]["at"].endswith("Z")
    assert (body["attempt"], body["total"], body["last"], body["ended"]) == (1, 2, 2, True)
    rest = (await api.get(f"/jobs/{job_id}/output?attempt=1&after=1")).json()
    assert [line["text"] for line in rest["lines"]] == ["two"]


async def test_wrong_questions_are_refused(api: Api) -> None:
    job_id = await api.submit()
    refused(await api.get(f"/jobs/{MISSING}/output"), 404, "job_not_found")
    refused(await api.get(f"/jobs/{job_id}/output?attempt=7"), 404, "job_not_found")
    refused(await api.get(f"/jobs/{job_id}/output?after=-1"), 422, "input_invalid", "after")
