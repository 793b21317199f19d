"""Duetime's server, with its limits for what strangers may hold, around Momentum's service."""

from __future__ import annotations

import socket
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI

from duetime.serving import ConnectionLimits, address_of, guarded, listen
from momentum.api.state import ServiceState

__all__ = ["address_of", "listen", "serving"]
UPLOAD_RATE = 32 * 1024  # bytes a second: a large file takes minutes


def serving(service: FastAPI, listener: socket.socket) -> AbstractAsyncContextManager[Any]:
    """Serves until the block ends, and then completes requests in progress."""
    state: ServiceState = service.state.service
    limits = ConnectionLimits(proxies=state.settings.trusted_proxies(), upload_rate=UPLOAD_RATE)
    return guarded(service, listener, limits, on_stop=state.changes.close)
