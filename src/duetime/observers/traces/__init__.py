"""Traces by OpenTelemetry."""

from duetime.observers.traces.tracer import OpenTelemetryTracer

__all__ = ["OpenTelemetryTracer"]
