"""The variables of OpenTelemetry that say where spans are sent to, and how."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from opentelemetry.util.re import parse_env_headers

from duetime.errors import ConfigError

TRACES_PATH = "/v1/traces"
PROTOCOL = "http/protobuf"
ENCODINGS = ("none", "gzip", "deflate")
EXPORT_TIMEOUT = 5.0  # seconds
MAX_QUEUED_SPANS = 8_192
MAX_BATCH = 2_048
SCHEDULE_DELAY = 5_000.0  # milliseconds


class ExportLimits(NamedTuple):
    """Of the queue of ended spans."""

    queue: int  # spans that wait, at most
    batch: int  # spans of one export, at most
    delay: float  # seconds between exports


class Collector(NamedTuple):
    """Where spans are sent to, and how."""

    url: str
    headers: Mapping[str, str]
    timeout: float  # seconds, with all repetitions
    compression: str
    certificate: str | None  # files
    client_certificate: str | None
    client_key: str | None


def limits(environment: Mapping[str, str]) -> ExportLimits:
    queue = _number(environment, ("OTEL_BSP_MAX_QUEUE_SIZE",), MAX_QUEUED_SPANS, 1)
    batch = _number(environment, ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE",), MAX_BATCH, 1)
    delay = _number(environment, ("OTEL_BSP_SCHEDULE_DELAY",), SCHEDULE_DELAY, 1)
    return ExportLimits(int(queue), min(int(batch), int(queue)), delay / 1_000)


def collector(url: str | None, environment: Mapping[str, str]) -> Collector:
    """`url`: None: as the variables say."""
    if url is None:
        name, protocol = _first(environment, _names("PROTOCOL"))
        if protocol not in (None, PROTOCOL):
            raise ConfigError(
                f"{name}: {protocol!r} is not supported; "
                f"use {PROTOCOL!r}, and the port of the collector for it: 4318, not 4317"
            )
    name, compression = _first(environment, _names("COMPRESSION"))
    if compression is not None and compression not in ENCODINGS:
        raise ConfigError(f"{name}: {compression!r} must be one of {', '.join(ENCODINGS)}")
    address, login = _without_login(endpoint(environment) if url is None else endpoint_of(url))
    return Collector(
        address,
        {**login, **parse_env_headers(_first(environment, _names("HEADERS"))[1] or "", liberal=True)},
        # Of OTEL_EXPORTER_OTLP_TIMEOUT: seconds in Python, as in the SDK.
        _number(environment, _names("TIMEOUT"), EXPORT_TIMEOUT, 0.001),
        compression or "none",
        _first(environment, _names("CERTIFICATE"))[1],
        _first(environment, _names("CLIENT_CERTIFICATE"))[1],
        _first(environment, _names("CLIENT_KEY"))[1],
    )


def endpoint(environment: Mapping[str, str]) -> str:
    exact, general = _names("ENDPOINT")
    name, value = _first(environment, (exact, general))
    url = value or "http://localhost:4318"
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{name}: {url!r} is not the URL of a collector: use http://HOST:4318 or https://..."
        )
    return url if name == exact and value else url.rstrip("/") + TRACES_PATH


def endpoint_of(url: str) -> str:
    """The collector's address for traces; a path of one's own is left as it is."""
    parts = urlsplit(url)
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{TRACES_PATH}"


def _without_login(url: str) -> tuple[str, dict[str, str]]:
    """The URL without a name and a password, and the header with them."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    encoded = b64encode(unquote(login).encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), {"authorization": f"Basic {encoded}"}


def _names(last: str) -> tuple[str, str]:
    return f"OTEL_EXPORTER_OTLP_TRACES_{last}", f"OTEL_EXPORTER_OTLP_{last}"


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str | None]:
    """The first of these variables that is set, and its value."""
    for name in names:
        if value := environment.get(name, "").strip():
            return name, value
    return names[0], None


def _number(environment: Mapping[str, str], names: tuple[str, ...], otherwise: float, least: float) -> float:
    name, text = _first(environment, names)
    if text is None:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise ConfigError(f"{name}: {text!r} must be a number of at least {least:g}")
    return value
