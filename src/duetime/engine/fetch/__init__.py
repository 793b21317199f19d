"""Fetching: due jobs come from the store to the worker."""
