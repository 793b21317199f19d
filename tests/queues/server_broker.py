"""What the brokers of tests have in common: a server of ours, a prefix for the names of one test."""

from __future__ import annotations

import asyncio

from duetime.queue import TicketQueue
from duetime.queues import queue_for
from tests.servers.brokers import PASSWORD, USER, BrokerServer
from tests.servers.process import free_port


class ServerBroker:
    password = PASSWORD
    repeats = False
    keeps_order = True
    options = ""

    def __init__(self, server: BrokerServer, prefix: str) -> None:
        self.server = server
        self.prefix = prefix

    def queue(self) -> TicketQueue:
        return self._queue(self.server.url)

    def queue_with_wrong_password(self) -> TicketQueue:
        return self._queue(self.server.url_for(USER, "not-it"))

    def unreachable_queue(self) -> TicketQueue:
        return self._queue(self.server.url.replace(str(self.server.port), str(free_port())))

    async def restart(self) -> None:
        await asyncio.to_thread(self.server.restart)

    def _queue(self, url: str) -> TicketQueue:
        return queue_for(f"{url}?prefix={self.prefix}{self.options}")
