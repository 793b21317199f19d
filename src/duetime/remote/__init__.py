"""Calling a Duetime service over HTTP from programs that need no store of their own: `Client`, `AsyncClient`.

Nothing beyond the standard library is needed. What is asked and how answers are read is written once, without any input or output
(`calls/`, `talk.py`); two thin transports carry it out, one that blocks and one for asyncio.
"""

from duetime.remote.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
