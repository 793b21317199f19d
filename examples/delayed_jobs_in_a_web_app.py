"""Delayed jobs in an async web application: the node starts and stops with the application.

    python examples/delayed_jobs_in_a_web_app.py [sqlite:///web.db [port]]
    curl -X POST http://127.0.0.1:8000/welcome/ann
    curl http://127.0.0.1:8000/jobs/<id>

The web server is a few lines of asyncio, so the example needs no other package. Starlette, FastAPI and
Litestar accept an async context manager like `lifespan`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import duetime as dt

jobs = dt.App(sys.argv[1] if len(sys.argv) > 1 else None)
PORT = int(sys.argv[2]) if len(sys.argv) > 2 else 8000


@jobs.task("welcome.send", retry=dt.Retry(max_attempts=5, first_delay="1s"))
async def send_welcome(ctx: dt.Context, user: str) -> str:
    ctx.log.info("sending")
    return f"welcomed {user}"


@asynccontextmanager
async def lifespan(web: Any) -> AsyncIterator[None]:
    async with jobs.running(concurrency=20):
        yield  # the application serves requests; when it stops, running jobs finish first


async def respond(method: str, path: str) -> tuple[int, dict[str, Any]]:
    match [method, *path.strip("/").split("/")]:
        case ["POST", "welcome", user]:
            job = await send_welcome.submit(user=user, delay="3s", unique_key=f"welcome/{user}")
            return 202, {"job": str(job.id), "new": job.created}
        case ["GET", "jobs", job_id]:
            try:
                job = await jobs.get_job(job_id)
            except dt.JobNotFound as problem:
                return 404, {"error": problem.code}
            return 200, {"state": job.state, "result": job.result}
        case _:
            return 404, {"error": "no such page"}


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    method, path, _ = head.split(" ", 2)
    status, answer = await respond(method, path)
    body = json.dumps(answer).encode()
    headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"HTTP/1.1 {status} .\r\n{headers}\r\n".encode() + body)
    await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(handle, "127.0.0.1", PORT)
    async with lifespan(server), server:
        print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("stopped", flush=True)
