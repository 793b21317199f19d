"""The certificate the service shows. A renewed one takes effect without a restart: whoever connects from then on gets it, and connections
that are open go on."""

from __future__ import annotations

import ssl
from logging import getLogger
from pathlib import Path
from typing import Self

from duetime.errors import ConfigError
from duetime.model.instant import SECOND, Micros

LOOK_EVERY = 60 * SECOND
Stamp = tuple[int, ...] | None  # of a file; None: it cannot be looked at
_logger = getLogger("duetime")


class RenewableContext(ssl.SSLContext):
    """Serves with the newest pair of files that could be read.

    Reading into a context that is in use would not do: a pair that is broken spoils the one before it, and a key of another kind is put
    beside the old one, which OpenSSL may go on to prefer. So each pair has a context of its own, to which handshakes are handed over.
    """

    def __new__(cls, certificate: str, key: str) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, certificate: str, key: str) -> None:
        self._files = (certificate, key)
        self._seen = self._stamps()
        self._next_look: Micros = 0
        _load(self, certificate, key)
        self._newest: ssl.SSLContext = self
        self.sni_callback = self._hand_over

    def renew(self) -> None:
        """Read the files again. What cannot be served is told, and changes nothing."""
        self._seen = self._stamps()
        fresh = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            _load(fresh, *self._files)
        except (ConfigError, OSError) as problem:
            _logger.error("%s; until then the certificate that was read before is used", problem)
        else:
            self._newest = fresh
            _logger.info("the certificate was read again from %s: new connections get it", self._files[0])

    def look(self, now: Micros) -> None:
        """Once a minute, however often it is called: have the files changed since they were read?"""
        if now < self._next_look:
            return
        self._next_look = now + LOOK_EVERY
        if self._stamps() != self._seen:
            self.renew()

    def _stamps(self) -> list[Stamp]:
        return [_stamp(file) for file in self._files]

    def _hand_over(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """At every handshake, also of those who name no server."""
        connection.context = self._newest


def _stamp(file: str) -> Stamp:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size  # a chmod that makes it readable counts, too


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    for name, file in (("tls_cert", certificate), ("tls_key", key)):
        try:
            open(file, "rb").close()
        except OSError as problem:
            raise ConfigError(f"{name}: {file} cannot be read ({problem.strerror}): name a PEM file") from None
    try:
        context.load_cert_chain(certificate, key, _no_password)
    except ssl.SSLError as problem:
        reason = (problem.reason or "not PEM").replace("_", " ").lower()
        remedy = "give a PEM certificate with its chain and the key it was made with, unencrypted"
        raise ConfigError(f"tls_cert: {certificate} and {key} are no pair to serve with ({reason}): {remedy}") from None


def _no_password() -> str:
    """Nobody is there to be asked for it."""
    return ""
