"""Delivers one notice to one channel. The job carries the notice; the channel, with its secrets, is read when
it is delivered, so that a corrected channel gets what is still to be repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from duetime.errors import SecretUnreadable
from duetime.invoker import Context, Policies
from duetime.invokers.alert import apprise, email
from duetime.model.alert import text
from duetime.model.alert.channel import Channel, ChannelType
from duetime.model.codec import decode, encode
from duetime.model.instant import SECOND, Micros
from duetime.model.keyring import KeyRing
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.settle import AttemptFailed, GiveUp, NotHere
from duetime.model.signing import Signer, endpoint_secrets, read_secret
from duetime.model.url import Egress, parse
from duetime.store import Store

if TYPE_CHECKING:
    from duetime.invokers.http.post import Poster

CHANNEL = "alert_channel"  # kind of records
TIMEOUT = 60 * SECOND
RETRY = Retry(max_attempts=12, first_delay="5s", max_delay="1h")  # about five hours


def secret_name(channel: str, field: str) -> str:
    """What an encrypted secret is bound to: copied to another channel it cannot be read."""
    return f"alert/{channel}/{field}"


class AlertHandler:
    limit: Limit | None = None

    def __init__(
        self,
        store: Store,
        now: Callable[[], Micros],
        ring: KeyRing,
        egress: Egress,
        public_url: str | None = None,
        allow_apprise: bool = False,
    ) -> None:
        self.policies = Policies(RETRY, TIMEOUT)
        self._store = store
        self._now = now
        self._ring = ring
        self._egress = egress
        self._link = None if public_url is None else f"{public_url.rstrip('/')}/ui/alerts"
        self._allow_apprise = allow_apprise
        self._poster: Poster | None = None

    async def invoke(self, context: Context, payload: bytes) -> Any:
        notice, tenant = decode(payload), context.job.tenant
        record = await self._store.get_record(CHANNEL, tenant, notice["channel"])
        if record is None:
            raise GiveUp(f"channel {notice['channel']!r} was removed before the notice was delivered")
        channel = Channel.from_json(record.key, decode(record.value), record.version)
        if channel.type is ChannelType.EMAIL:
            return await self._mail(context, channel, notice, tenant)
        if channel.type is ChannelType.APPRISE:
            if not self._allow_apprise:
                raise NotHere(apprise.OFF)
            return await apprise.send(self._secret(tenant, channel, "url") or "", notice, self._link)
        return await self._post(context, channel, notice, tenant)

    async def close(self) -> None:
        poster, self._poster = self._poster, None
        if poster is not None:
            await poster.close()

    async def _mail(self, context: Context, channel: Channel, notice: text.Fields, tenant: str) -> Any:
        mail = email.message(
            channel,
            text.title(notice),
            text.body(notice, self._link),
            str(context.job_id),
            self._now() / SECOND,
        )
        return await email.send(channel, mail, self._secret(tenant, channel, "password"), self._egress)

    async def _post(self, context: Context, channel: Channel, notice: text.Fields, tenant: str) -> Any:
        settings = channel.settings

        def secret(field: str) -> str | None:
            return self._secret(tenant, channel, field)

        headers: dict[str, str] = {"Idempotency-Key": str(context.job_id)}
        hidden = [known for field in channel.secrets if (known := secret(field)) is not None]
        match channel.type:
            case ChannelType.WEBHOOK:
                body = encode(text.webhook(notice, tenant))
                headers |= self._signature(tenant, channel, f"msg_{context.job_id}", body)
                return await self._send(settings["url"], [body], headers, hidden)
            case ChannelType.SLACK:
                body = encode(text.slack(notice, self._link))
                return await self._send(secret("url") or "", [body], headers, hidden, "the Slack webhook")
            case ChannelType.PAGERDUTY:
                events = text.pagerduty(notice, secret("routing_key") or "", tenant, self._link)
                return await self._send(settings["url"], [encode(event) for event in events], headers, hidden)
            case _:
                if (authorization := secret("authorization")) is not None:
                    headers["Authorization"] = authorization
                alerts = text.alertmanager(notice, tenant, self._link)
                url = f"{settings['url'].rstrip('/')}/api/v2/alerts"
                return await self._send(url, [encode(alerts)], headers, hidden)

    async def _send(
        self,
        url: str,
        bodies: list[bytes],
        headers: dict[str, str],
        hidden: list[str],
        shown: str | None = None,
    ) -> Any:
        if self._poster is None:
            self._poster = self._make_poster()
        target, answer = parse(url, "url"), None
        for body in bodies:
            answer = await self._poster.post(target, body, headers, hidden, shown or target.shown)
        return answer

    def _make_poster(self) -> Poster:
        try:
            from duetime.invokers.http.post import Poster
        except ModuleNotFoundError as problem:
            raise NotHere(
                f"this channel needs the package {problem.name!r}: pip install 'duetime[service]'"
            ) from None
        return Poster(self._egress, self._now)

    def _signature(self, tenant: str, channel: Channel, message: str, body: bytes) -> dict[str, str]:
        """As for HTTP targets: with the channel's own secret, or one of the service's for this origin."""
        own = self._secret(tenant, channel, "signing_secret")
        origin = parse(channel.settings["url"], "url").origin
        keys = (
            endpoint_secrets(self._ring, tenant, origin)
            if own is None
            else [read_secret(own, "signing_secret")]
        )
        if not keys:
            return {}
        seconds = self._now() // SECOND
        return {
            "webhook-id": message,
            "webhook-timestamp": str(seconds),
            "webhook-signature": Signer(keys).sign(message, seconds, body),
        }

    def _secret(self, tenant: str, channel: Channel, field: str) -> str | None:
        sealed = channel.secrets.get(field)
        if sealed is None:
            return None
        from duetime.invokers.http.secrets import SecretBox

        try:
            return SecretBox(self._ring).open(tenant, secret_name(channel.name, field), sealed)
        except SecretUnreadable as problem:
            failure = AttemptFailed if problem.missing_key is None else NotHere
            raise failure(
                f"{field} of this channel cannot be decrypted: give this node the service's secret_keys, "
                "or set it again"
            ) from None
