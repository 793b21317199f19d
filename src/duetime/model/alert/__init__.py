"""Alerts: rules, channels, times of silence, open alerts and the notices about them. Pure."""
