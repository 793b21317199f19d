"""One call from beginning to end: prepare, sign, send, read the response, decide what it means."""

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
from duetime.invoker import Context, Policies, await_report
from duetime.invokers.http.guard import HttpConnections, TargetRefused
from duetime.invokers.http.response import TargetResponse, directive_for, directive_for_error, read_response
from duetime.invokers.http.secrets import SecretBox
from duetime.invokers.http.target_cache import PreparedTarget, TargetCache
from duetime.model.instant import SECOND, Micros, to_iso
from duetime.model.job import Claimed
from duetime.model.keyring import KeyRing
from duetime.model.limit import Limit
from duetime.model.settle import AttemptFailed, GiveUp, NotHere
from duetime.model.signing import Signer, read_secret, report_token
from duetime.model.target import SIGNING
from duetime.model.trace import attempt_trace
from duetime.model.url import Egress
from duetime.tracing import Span, current_span

ACCEPTED = 202
ERROR_STATUS = 400
# An istr is folded to lower case once, not for every call.
IDEMPOTENCY_KEY, TRACEPARENT, CONTENT_TYPE = (
    istr("Idempotency-Key"),
    istr("traceparent"),
    istr("Content-Type"),
)
JOB_ID, ATTEMPT, FIRE_TIME, SCHEDULE = (
    istr(f"Duetime-{name}") for name in ("Job-Id", "Attempt", "Fire-Time", "Schedule")
)
WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE = (
    istr(f"webhook-{name}") for name in ("id", "timestamp", "signature")
)
_iso = lru_cache(4_096)(to_iso)  # cached, because many schedules fire at the same instant
SAFE_IN_NAME = " !#$&'()*+,-./:;<=>?@[]^_`{|}~"


class HttpHandler:
    """Calls HTTP targets. It connects at its first call. Close it on the same event loop."""

    limit: Limit | None = None

    def __init__(
        self,
        now: Callable[[], Micros],
        egress: Egress,
        ring: KeyRing | None = None,
        public_url: str | None = None,
        policies: Policies | None = None,
        resolver: AbstractResolver | None = None,
        roots: ssl.SSLContext | None = None,
        per_host: int = 0,
    ) -> None:
        self.policies = policies or Policies()
        self._now = now
        self._ring = ring or KeyRing()
        self._public_url = public_url
        self._box = SecretBox(self._ring)
        self._targets = TargetCache(self._ring)
        self._connect: Callable[[], HttpConnections] = partial(
            HttpConnections, egress, resolver, roots, per_host
        )
        self._connections: HttpConnections | None = None

    async def invoke(self, context: Context, payload: bytes) -> Any:
        job = context.job
        prepared, body = self._read(job, payload)
        headers, hidden = self._headers(prepared, job, body)
        span = current_span()
        if span is None:
            headers[TRACEPARENT] = attempt_trace(job.id, job.attempt, job.policies).id.traceparent
            response = await self._call(prepared, headers, body, hidden)
        else:
            response = await self._traced_call(span, prepared, headers, body, hidden)
        if response.status == ACCEPTED and prepared.target.reports:
            return await_report(job)
        return directive_for(prepared.target, response, self._now()) or response.to_json()

    async def _traced_call(
        self,
        span: Span,
        prepared: PreparedTarget,
        headers: CIMultiDict[str],
        body: bytes | None,
        hidden: list[str],
    ) -> TargetResponse:
        method, url = prepared.target.method, prepared.url
        attributes = {
            "http.request.method": method,
            "server.address": url.host or "",
            "server.port": url.port or 0,
            "url.full": str(url.with_query(None).with_fragment(None).with_user(None)),
        }
        with span.call(method, attributes) as call:
            headers[TRACEPARENT] = call.id.traceparent
            response = await self._call(prepared, headers, body, hidden)
            call.note(http__response__status_code=response.status)
            if response.status >= ERROR_STATUS:
                call.fail(str(response.status))
            return response

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()

    def _read(self, job: Claimed, payload: bytes) -> tuple[PreparedTarget, bytes | None]:
        try:
            prepared = self._targets.find(job.tenant, job.target_spec or b"{}")
            return prepared, prepared.target.content(payload)
        except InvalidPayload as problem:
            raise GiveUp(str(problem)) from None
        except (InvalidInput, ValueError) as problem:
            raise GiveUp(f"the target of this job is invalid: {problem}") from None

    async def _call(
        self, prepared: PreparedTarget, headers: CIMultiDict[str], body: bytes | None, hidden: list[str]
    ) -> TargetResponse:
        target = prepared.target
        if self._connections is None:
            self._connections = self._connect()
        try:
            self._connections.guard.check(target.url)
            response = await self._connections.session.request(
                target.method,
                prepared.url,
                data=body,
                headers=headers,
                skip_auto_headers=(CONTENT_TYPE,) if body is None else None,  # no body, no type
                allow_redirects=False,
                timeout=prepared.timeout,
            )
            try:
                return await read_response(response, hidden)
            except BaseException:
                response.close()
                raise
        except (TargetRefused, TimeoutError, aiohttp.ClientError, OSError) as problem:
            directive = directive_for_error(target, problem)
        # Raised out here, so that it does not carry the original error: its text may reveal too much.
        raise directive

    def _headers(
        self, prepared: PreparedTarget, job: Claimed, body: bytes | None
    ) -> tuple[CIMultiDict[str], list[str]]:
        headers = prepared.headers.copy()
        opened = [(name, self._open(job.tenant, name, sealed)) for name, sealed in prepared.hidden]
        headers.extend(opened)
        if body is not None and prepared.content_type is not None:
            headers[CONTENT_TYPE] = prepared.content_type
        _add_job_headers(headers, job)
        if prepared.target.reports:
            self._add_report_headers(headers, job)
        hidden = [text for _, text in opened if text]
        self._sign(headers, prepared, job, body or b"", hidden)
        return headers, hidden

    def _sign(
        self,
        headers: CIMultiDict[str],
        prepared: PreparedTarget,
        job: Claimed,
        body: bytes,
        hidden: list[str],
    ) -> None:
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

    def _add_report_headers(self, headers: CIMultiDict[str], job: Claimed) -> None:
        token = report_token(self._ring, job.tenant, job.id, job.attempt)
        if token is not None:
            headers["Duetime-Report-Token"] = token
        if self._public_url is not None:
            headers["Duetime-Report-Url"] = f"{self._public_url.rstrip('/')}/api/v1/jobs/{job.id}"

    def _open(self, tenant: str, name: str, sealed: str) -> str:
        try:
            return self._box.open(tenant, name, sealed)
        except SecretUnreadable as problem:
            failure = AttemptFailed if problem.missing_key is None else NotHere
            raise failure(str(problem)) from None


@lru_cache(4_096)
def _quoted(name: str) -> str:
    """A schedule's name may hold any letter; a header may not."""
    return quote(name, safe=SAFE_IN_NAME)


def _add_job_headers(headers: CIMultiDict[str], job: Claimed) -> None:
    job_id = str(job.id)
    headers[IDEMPOTENCY_KEY] = job_id
    headers[JOB_ID] = job_id
    headers[ATTEMPT] = str(job.attempt)
    headers[FIRE_TIME] = _iso(job.fire_time)
    if job.schedule is not None:
        headers[SCHEDULE] = _quoted(job.schedule)
