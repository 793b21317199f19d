"""Observers of events: log records, metrics, per-minute roll-ups and the event log."""
