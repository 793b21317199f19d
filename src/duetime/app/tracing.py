"""Where traces go: to the collector that a setting or the standard variables of OpenTelemetry name. Without
one, no part of OpenTelemetry is imported here."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from duetime.errors import ConfigError
from duetime.tracing import Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_configured(url: str | None, environment: Mapping[str, str]) -> bool:
    """Whether a URL or the OTEL_* variables ask for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if url is not None:
        return True
    return environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "otlp" and any(
        environment.get(name) for name in ENDPOINTS
    )


def open_tracer(url: str | None, sampling: float = 1.0) -> Tracer:
    """`url`: None: as the OTEL_* variables say."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"traces: {url!r} is not the URL of a collector: use http://HOST:4318 or https://..."
        )
    if isinstance(sampling, bool) or not isinstance(sampling, int | float) or not 0 <= sampling <= 1:
        raise ConfigError(f"trace_sampling: {sampling!r} must be a number from 0 to 1, such as 0.1")
    try:
        from duetime.observers.traces import OpenTelemetryTracer
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"traces: they need the package {missing.name!r}: pip install 'duetime[otel]'"
        ) from None
    tracer = OpenTelemetryTracer(url, float(sampling), f"{socket.gethostname()}-{os.getpid()}")
    tracer.be_global()
    return tracer
