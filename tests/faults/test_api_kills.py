"""A service that is killed while it stores a job. The caller gets no answer, and repeats the request with the same
`Idempotency-Key`."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx2
import pytest

from tests.servers.service import Service

pytestmark = pytest.mark.slow
ANSWERED = 5  # requests before the one that is killed
JOB = {"target": {"type": "http", "url": "http://127.0.0.1:1/"}, "delay": "1h"}
TAKEOVER = 60.0  # seconds until a request of a dead process is done by another


def submit(client: httpx2.Client, key: str) -> httpx2.Response:
    return client.post("/jobs", json=JOB, headers={"Idempotency-Key": key})


def stored(client: httpx2.Client) -> set[str]:
    return {job["id"] for job in client.get("/jobs", params={"limit": 100}).json()["items"]}


def submit_until_killed(service: Service, moment: str) -> dict[str, str]:
    """The jobs by key, of the requests that were answered."""
    answers: dict[str, str] = {}
    with httpx2.Client(base_url=f"{service.address}/api/v1", timeout=60) as client:
        for number in range(ANSWERED):
            answers[f"{moment}-{number}"] = submit(client, f"{moment}-{number}").json()["id"]
        with pytest.raises(httpx2.TransportError):
            submit(client, moment)
    assert service.process.wait() == -signal.SIGKILL, service.output
    return answers


def repeated(client: httpx2.Client, key: str) -> httpx2.Response:
    """As a caller does it who obeys Retry-After."""
    deadline = time.monotonic() + TAKEOVER
    while (answer := submit(client, key)).status_code == 409:
        assert time.monotonic() < deadline, answer.text
        time.sleep(float(answer.headers["retry-after"]))
    return answer


def test_repeated_request_of_a_killed_service_stores_one_job(tmp_path: Path) -> None:
    """A1, A2: killed right before the job is stored, and right after."""
    store, answers = f"sqlite:///{tmp_path}/jobs.db", dict[str, str]()
    for moment in ("before", "after"):
        kill = {"DUETIME_FAILPOINTS": f"commands.{moment}_add=kill@{ANSWERED + 1}"}
        with Service(store, tmp_path / f"{moment}.log", environment=kill) as service:
            answers |= submit_until_killed(service, moment)
    with (
        Service(store, tmp_path / "last.log") as service,
        httpx2.Client(base_url=f"{service.address}/api/v1", timeout=60) as client,
    ):
        acknowledged = set(answers.values())
        [unanswered] = stored(client) - acknowledged
        for key, job in answers.items():
            answer = submit(client, key)
            assert (answer.json()["id"], answer.headers["idempotency-replayed"]) == (job, "true")
        assert repeated(client, "after").json()["id"] == unanswered
        late = repeated(client, "before").json()["id"]
        assert stored(client) == {*acknowledged, unanswered, late}
        assert len(acknowledged | {unanswered, late}) == 2 * (ANSWERED + 1)
