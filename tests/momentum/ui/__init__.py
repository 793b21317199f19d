"""Momentum's page in Chromium, on the real service and the local LinkedIn."""
