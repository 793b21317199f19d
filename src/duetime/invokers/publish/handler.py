"""One publication from beginning to end: make the message, publish it, wait for the confirmation of the
broker, and hand the job over if a report of the consumer is awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from duetime.errors import ConfigError, InvalidInput
from duetime.invoker import Context, Policies, await_report
from duetime.invokers.publish.publisher import NotPublished, OutgoingMessage, Publisher
from duetime.model.destination import BrokerKind, Destination
from duetime.model.job import Claimed
from duetime.model.keyring import KeyRing
from duetime.model.limit import Limit
from duetime.model.publish import PublishTarget, cloud_event
from duetime.model.settle import AttemptFailed, Directive, GiveUp, NotHere
from duetime.model.signing import report_token
from duetime.tracing import current_span

PUBLISH_TIMEOUT = 30.0  # seconds, for the broker's confirmation
NO_TOKEN = (
    "a report needs a token, and the node has no secret key to make one: set DUETIME_SECRET_KEYS, the same "
    "on every node"
)


class PublishHandler:
    """Publishes the jobs of one destination."""

    limit: Limit | None = None

    def __init__(
        self,
        destination: Destination,
        policies: Policies,
        ring: KeyRing | None = None,
        public_url: str | None = None,
    ) -> None:
        self.policies = policies
        self._destination = destination
        self._ring = ring or KeyRing()
        self._public_url = public_url
        self._publisher = publisher_for(destination)

    async def invoke(self, context: Context, payload: bytes) -> Any:
        job = context.job
        span = current_span()
        if span is None:
            return await self._send(job, None)
        name = self._destination.name
        attributes = {
            "messaging.system": self._destination.kind.extra,
            "messaging.destination.name": name,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
        }
        with span.publish(f"send {name}", attributes) as publication:
            return await self._send(job, publication.id.traceparent)

    async def _send(self, job: Claimed, traceparent: str | None) -> Any:
        target = self._read(job)
        extensions = self._report(job, target) or {}
        if traceparent is not None:
            extensions["traceparent"] = traceparent
        message = OutgoingMessage(
            cloud_event(job, target, self._destination.event_type, extensions),
            target.key,
            # A message to report on is a new one in each attempt, because its token is.
            f"{job.id}-{job.attempt}" if target.reports else str(job.id),
        )
        problem = await self._publish(message)
        if problem is not None:
            # Raised out here, so that it does not carry the original error: its text may reveal too much.
            raise problem
        return await_report(job) if target.reports else None

    async def close(self) -> None:
        await self._publisher.close()

    def _read(self, job: Claimed) -> PublishTarget:
        try:
            target = PublishTarget.from_spec(job.target_spec or b"{}")
        except (InvalidInput, ValueError) as problem:
            raise GiveUp(f"the target of this job is invalid: {problem}") from None
        if not self._destination.allows(job.tenant):
            raise NotHere(f"destination {target.destination}: is not for the tenant {job.tenant}")
        return target

    def _report(self, job: Claimed, target: PublishTarget) -> dict[str, str] | None:
        if not target.reports:
            return None
        token = report_token(self._ring, job.tenant, job.id, job.attempt)
        if token is None:
            raise NotHere(NO_TOKEN)
        if self._public_url is None:
            return {"reporttoken": token}
        return {"reporttoken": token, "reporturl": f"{self._public_url.rstrip('/')}/api/v1/jobs/{job.id}"}

    async def _publish(self, message: OutgoingMessage) -> Directive | None:
        try:
            async with asyncio.timeout(PUBLISH_TIMEOUT):
                await self._publisher.publish(message)
            return None
        except NotPublished as problem:
            reason = self._text(str(problem))
            return GiveUp(reason) if problem.permanent else AttemptFailed(reason)
        except TimeoutError:
            return AttemptFailed(self._text("the broker did not confirm the message in time"))
        except Exception as problem:
            return AttemptFailed(self._text(_kind(problem)))

    def _text(self, reason: str) -> str:
        return f"destination {self._destination.name}: {self._destination.hide_secrets(reason)}"


def publisher_for(destination: Destination) -> Publisher:
    """It connects at the first message."""
    try:
        return _imported(destination.kind)(destination)
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"destinations: {destination.name} needs the package {missing.name!r}: "
            f"pip install 'duetime[{destination.kind.extra}]'"
        ) from None


def _imported(kind: BrokerKind) -> Callable[[Destination], Publisher]:
    """Only what is used: each needs its extra."""
    match kind.extra:
        case "rabbitmq":
            from duetime.invokers.publish.rabbitmq import RabbitmqPublisher

            return RabbitmqPublisher
        case "redis":
            from duetime.invokers.publish.redis import RedisPublisher

            return RedisPublisher
        case "nats":
            from duetime.invokers.publish.nats import NatsPublisher

            return NatsPublisher
        case "sqs":
            from duetime.invokers.publish.sqs import SqsPublisher

            return SqsPublisher
        case _:
            from duetime.invokers.publish.kafka import KafkaPublisher

            return KafkaPublisher


def _kind(problem: BaseException | None) -> str:
    """The cause without its text, which may contain addresses."""
    number = next((one.errno for one in _causes(problem) if isinstance(one, OSError) and one.errno), None)
    if number is not None and number > 0:
        return f"cannot connect to the broker ({os.strerror(number).lower()})"
    if isinstance(problem, OSError):
        return "cannot connect to the broker, or the connection was lost"
    return f"the broker did not confirm the message ({type(problem).__name__})"


def _causes(problem: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while problem is not None and problem not in found:
        found.append(problem)
        problem = problem.__cause__ or problem.__context__
    return found
