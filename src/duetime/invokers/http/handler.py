"""One call from beginning to end: prepare, sign, send, read, judge."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver
from multidict import CIMultiDict, istr

from duetime.errors import InvalidInput, InvalidPayload, SecretUnreadable
from duetime.invoker import Context, Policies
from duetime.invokers.http.answer import Answer, read_answer
from duetime.invokers.http.connection import Connection
from duetime.invokers.http.guard import Refused
from duetime.invokers.http.late import POLICIES
from duetime.invokers.http.outcome import judge, judge_problem
from duetime.invokers.http.prepared import Prepared, Shelf, own_timeout
from duetime.invokers.http.secrets import SecretBox
from duetime.model.addresses import Egress
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.model.job import Claimed
from duetime.model.keyring import KeyRing
from duetime.model.limit import Limit
from duetime.model.signing import Signer, read_secret, report_token
from duetime.model.target import SIGNING
from duetime.model.verdict import Failed, GiveUp, HandOver, Verdict

REPORT_WITHIN = "1h"  # for jobs without a timeout of their own
ACCEPTED = 202
LAST_64_BITS = 0xFFFF_FFFF_FFFF_FFFF
# As istr, which is folded to lower case once and not for every call.
IDEMPOTENCY_KEY, TRACEPARENT, CONTENT_TYPE = istr("Idempotency-Key"), istr("traceparent"), istr("Content-Type")
JOB_ID, ATTEMPT, FIRE_TIME, SCHEDULE = (istr(f"Duetime-{name}") for name in ("Job-Id", "Attempt", "Fire-Time", "Schedule"))
WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE = (istr(f"webhook-{name}") for name in ("id", "timestamp", "signature"))
SAFE_IN_NAME = " !#$&'()*+,-./:;<=>?@[]^_`{|}~"


class HttpHandler:
    """Calls HTTP targets. Connects with its first call; `close` it on the same event loop."""

    limit: Limit | None = None

    def __init__(
        self,
        now: Callable[[], Micros],
        egress: Egress,
        ring: KeyRing | None = None,
        public_url: str | None = None,
        policies: Policies = POLICIES,
        resolver: AbstractResolver | None = None,
        roots: ssl.SSLContext | None = None,
        per_host: int = 0,
    ) -> None:
        self.policies = policies
        self._now = now
        self._ring = ring or KeyRing()
        self._public_url = public_url
        self._box = SecretBox(self._ring)
        self._shelf = Shelf(self._ring)
        self._connect: Callable[[], Connection] = partial(Connection, egress, resolver, roots, per_host)
        self._connection: Connection | None = None

    async def invoke(self, context: Context, payload: bytes) -> Any:
        job = context.job
        prepared, body = self._read(job, payload)
        headers, hidden = self._headers(prepared, job, body)
        answer = await self._call(prepared, headers, body, hidden)
        if answer.status == ACCEPTED and prepared.target.reports:
            return HandOver(own_timeout(job.policies) or REPORT_WITHIN)
        return judge(prepared.target, answer, self._now()) or answer.to_json()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _read(self, job: Claimed, payload: bytes) -> tuple[Prepared, bytes | None]:
        try:
            prepared = self._shelf.find(job.tenant, job.target_spec or b"{}")
            return prepared, prepared.target.content(payload)
        except InvalidPayload as problem:
            raise GiveUp(str(problem)) from None
        except (InvalidInput, ValueError) as problem:
            raise GiveUp(f"the target of this job cannot be read: {problem}") from None

    async def _call(self, prepared: Prepared, headers: CIMultiDict[str], body: bytes | None, hidden: list[str]) -> Answer:
        target = prepared.target
        if self._connection is None:
            self._connection = self._connect()
        try:
            self._connection.guard.check(target.url)
            response = await self._connection.session.request(
                target.method,
                prepared.url,
                data=body,
                headers=headers,
                skip_auto_headers=(CONTENT_TYPE,) if body is None else None,  # of nothing there is no type
                allow_redirects=False,
                timeout=prepared.timeout,
            )
            try:
                return await read_answer(response, hidden)
            except BaseException:
                response.close()
                raise
        except (Refused, TimeoutError, aiohttp.ClientError, OSError) as problem:
            verdict: Verdict = judge_problem(target, problem)
        # Outside, so that what is raised carries nothing of the problem with it: its text may tell too much.
        raise verdict

    # -- headers ------------------------------------------------------------------------------------------------------
    def _headers(self, prepared: Prepared, job: Claimed, body: bytes | None) -> tuple[CIMultiDict[str], list[str]]:
        headers = prepared.headers.copy()
        opened = [(name, self._open(job.tenant, name, sealed)) for name, sealed in prepared.hidden]
        headers.extend(opened)
        if body is not None and prepared.content_type is not None:
            headers[CONTENT_TYPE] = prepared.content_type
        _tell_of_job(headers, job)
        if prepared.target.reports:
            self._tell_how_to_report(headers, job)
        hidden = [text for _, text in opened if text]
        self._sign(headers, prepared, job, body or b"", hidden)
        return headers, hidden

    def _sign(self, headers: CIMultiDict[str], prepared: Prepared, job: Claimed, body: bytes, hidden: list[str]) -> None:
        signer = prepared.signer
        if prepared.own_signing is not None:
            text = self._open(job.tenant, SIGNING, prepared.own_signing)
            hidden.append(text)
            signer = Signer([read_secret(text, SIGNING)])
        if signer is not None:
            message, seconds = f"job_{headers[JOB_ID]}", self._now() // SECOND
            headers[WEBHOOK_ID] = message
            headers[WEBHOOK_TIMESTAMP] = str(seconds)
            headers[WEBHOOK_SIGNATURE] = signer.sign(message, seconds, body)

    def _tell_how_to_report(self, headers: CIMultiDict[str], job: Claimed) -> None:
        token = report_token(self._ring, job.tenant, job.id, job.attempt)
        if token is not None:
            headers["Duetime-Report-Token"] = token
        if self._public_url is not None:
            headers["Duetime-Report-Url"] = f"{self._public_url.rstrip('/')}/api/v1/jobs/{job.id}"

    def _open(self, tenant: str, name: str, sealed: str) -> str:
        try:
            return self._box.open(tenant, name, sealed)
        except SecretUnreadable as problem:
            raise Failed(str(problem)) from None


@lru_cache(4_096)
def _written(name: str) -> str:
    """Names may hold any letter; headers may not."""
    return quote(name, safe=SAFE_IN_NAME)


@lru_cache(4_096)
def _instant(moment: Micros) -> str:
    """Many schedules fire at the same instant."""
    return f"{to_datetime(moment).isoformat()[:-6]}Z"


def _tell_of_job(headers: CIMultiDict[str], job: Claimed) -> None:
    job_id = str(job.id)
    headers[IDEMPOTENCY_KEY] = job_id
    headers[JOB_ID] = job_id
    headers[ATTEMPT] = str(job.attempt)
    headers[FIRE_TIME] = _instant(job.fire_time)
    if job.schedule is not None:
        headers[SCHEDULE] = _written(job.schedule)
    # All attempts of a job are one trace, each a span of its own; nothing has to be remembered for it.
    span = job.id.int & LAST_64_BITS ^ job.attempt
    headers[TRACEPARENT] = f"00-{job_id.replace('-', '')}-{span:016x}-01"
