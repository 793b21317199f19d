"""Clients of a Duetime service over HTTP: `Client` and `AsyncClient`. They need only the standard library.

Requests and the reading of replies are written once, without input or output (`calls/`, `request.py`). Two
transports send them: one blocks, one uses asyncio.
"""

from duetime.remote.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
