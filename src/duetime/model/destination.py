"""Destinations of publish targets: brokers that the operator configures by name. Jobs hold only the name, so
credentials are never stored, shown or logged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from duetime.errors import InvalidInput

DEFAULT_TYPE = "duetime.job"
COMMON_OPTIONS = ("type", "tenants")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_FORM = "1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first"


class BrokerKind(NamedTuple):
    """A kind of broker: the extra that installs its client, and the options of its URLs."""

    extra: str
    needed: tuple[str, ...]  # one of these options must be given, if there are any
    more: tuple[str, ...] = ()


_RABBITMQ = BrokerKind("rabbitmq", ("exchange", "routing_key"))
_REDIS = BrokerKind("redis", ("stream",), ("maxlen",))
_NATS = BrokerKind("nats", ("subject",))
_KAFKA = BrokerKind("kafka", ("topic",), ("tls", "sasl"))
_SQS = BrokerKind("sqs", (), ("region", "tls"))
KINDS = {
    "amqp": _RABBITMQ,
    "amqps": _RABBITMQ,
    "redis": _REDIS,
    "rediss": _REDIS,
    "nats": _NATS,
    "tls": _NATS,
    "kafka": _KAFKA,
    "sqs": _SQS,
}
_FORMS = {
    _RABBITMQ: "amqp://USER:PASSWORD@HOST/VHOST?exchange=NAME&routing_key=KEY",
    _REDIS: "redis://USER:PASSWORD@HOST/DATABASE?stream=NAME",
    _NATS: "nats://USER:PASSWORD@HOST?subject=NAME",
    _KAFKA: "kafka://USER:PASSWORD@HOST:PORT,HOST:PORT?topic=NAME",
    _SQS: "the URL of the queue with sqs:// for https://",
}
_QUEUE_PATH = re.compile(r"/[^/]+/[^/]+")


def is_destination_name(text: Any) -> TypeGuard[str]:
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Destination:
    name: str
    kind: BrokerKind
    url: str = field(repr=False)  # of the broker, without our options
    options: Mapping[str, str] = field(repr=False)
    tenants: tuple[str, ...] = ()  # those that may use it; empty: all

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def user(self) -> str | None:
        return None if self.parts.username is None else unquote(self.parts.username)

    @property
    def password(self) -> str | None:
        return None if self.parts.password is None else unquote(self.parts.password)

    @property
    def event_type(self) -> str:
        return self.options.get("type", DEFAULT_TYPE)

    def allows(self, tenant: str) -> bool:
        return not self.tenants or tenant in self.tenants

    def hide_secrets(self, text: str) -> str:
        """A text of the broker or its client, without the password."""
        for secret in filter(None, (self.url, self.parts.password, self.password)):
            text = text.replace(secret, "***")
        return text


def parse(settings: Mapping[str, Any]) -> tuple[Destination, ...]:
    """Raises ValueError, which never repeats a part of a URL."""
    return tuple(_parsed(name, url) for name, url in settings.items())


def _parsed(name: str, url: Any) -> Destination:
    if not is_destination_name(name):
        raise ValueError(f"{name!r} is not a name of a destination: use {NAME_FORM}")
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        complete = bool(parts.hostname)
    except ValueError:
        raise ValueError(f"{name}: is not a URL: check its host and port") from None
    kind = KINDS.get(parts.scheme)
    if kind is None:
        raise ValueError(f"{name}: must be a URL that begins with {', '.join(f'{one}://' for one in KINDS)}")
    if not complete or (kind is _SQS and not _QUEUE_PATH.fullmatch(parts.path)):
        raise ValueError(f"{name}: is not complete: write {_FORMS[kind]}")
    known = (*kind.needed, *kind.more, *COMMON_OPTIONS)
    for option in options:
        if option not in known:
            raise ValueError(f"{name}: has an unknown option: use {', '.join(known)}")
    if kind.needed and not any(options.get(option) for option in kind.needed):
        raise ValueError(f"{name}: needs {' or '.join(kind.needed)}: write {_FORMS[kind]}")
    tenants = tuple(filter(None, options.pop("tenants", "").split(",")))
    return Destination(name, kind, parts._replace(query="", fragment="").geturl(), options, tenants)


def check_destination(known: Iterable[Destination], name: str, tenant: str, field: str = "target") -> None:
    """Refuse a destination that this process knows not to exist. A process without destinations cannot tell:
    then the job waits for a node that knows it."""
    known = list(known)
    allowed = [one.name for one in known if one.allows(tenant)]
    if known and name not in allowed:
        raise InvalidInput(
            f"{field}.destination",
            f"there is no destination {name!r} here: use {', '.join(allowed)}"
            if allowed
            else f"there is no destination {name!r} here, and none that you may use: ask the operator",
        )
