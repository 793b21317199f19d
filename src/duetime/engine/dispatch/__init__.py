"""Dispatching: tickets of due jobs go from the store to the broker."""
