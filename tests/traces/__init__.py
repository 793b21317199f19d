"""Traces: real processes export to a receiver that decodes OTLP."""
