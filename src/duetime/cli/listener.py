"""The API of a node: its socket, its certificate, and the service that answers. Needs the packages of
`duetime[service]`."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from signal import SIGHUP

from duetime.api.server import address_of, clear, listen, require_safety, serving, tls_of
from duetime.api.service import Service, build
from duetime.api.tls import RenewableContext
from duetime.app import App
from duetime.config import Settings
from duetime.model.keyring import KeyRing


class Listener:
    """The socket is bound when it is made, before anything else starts."""

    def __init__(self, settings: Settings) -> None:
        require_safety(settings)
        self._settings = settings
        self._tls = tls_of(settings)
        self._socket = listen(settings.host, settings.port)

    @property
    def address(self) -> str:
        return address_of(self._socket, "http" if self._tls is None else "https")

    def close(self) -> None:
        self._socket.close()
        clear(self._settings.host)

    def service(self, app: App, ring: KeyRing) -> Service:
        return build(app, self._settings, ring=ring)

    @asynccontextmanager
    async def answering(self, service: Service) -> AsyncIterator[str]:
        """Answer requests until the block ends; the value is the address."""
        async with serving(service, self._socket, self._tls, self._settings.max_connections):
            yield self.address

    @contextmanager
    def certificate_renewal(self) -> Iterator[None]:
        """SIGHUP reads the certificate again, as in other servers. Without TLS it ends the process, as a
        closed terminal should."""
        if not isinstance(self._tls, RenewableContext):
            yield
            return
        loop = get_running_loop()
        loop.add_signal_handler(SIGHUP, self._tls.renew)
        try:
            yield
        finally:
            loop.remove_signal_handler(SIGHUP)
