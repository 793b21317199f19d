"""The certificate of the service. A renewed certificate takes effect for new connections, without a
restart."""

from __future__ import annotations

import ssl
from logging import getLogger
from pathlib import Path
from typing import Self

from duetime.errors import ConfigError
from duetime.model.instant import SECOND, Micros

CHECK_INTERVAL = 60 * SECOND
Stamp = tuple[int, ...] | None  # of a file; None: it cannot be read
_logger = getLogger("duetime")


class RenewableContext(ssl.SSLContext):
    """Serves with the newest readable pair of certificate and key.

    A context in use cannot be reloaded: a broken pair would damage it, and OpenSSL would keep a key of
    another type next to the new one. So each pair has its own context, and every handshake switches to the
    newest.
    """

    def __new__(cls, certificate: str, key: str) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, certificate: str, key: str) -> None:
        self._files = (certificate, key)
        self._seen = self._stamps()
        self._next_check: Micros = 0
        _load(self, certificate, key)
        self._newest: ssl.SSLContext = self
        self.sni_callback = self._switch_context

    def renew(self) -> None:
        """Read the files again. Invalid files are logged and change nothing."""
        self._seen = self._stamps()
        fresh = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            _load(fresh, *self._files)
        except (ConfigError, OSError) as problem:
            _logger.error("%s; the previous certificate stays in use", problem)
        else:
            self._newest = fresh
            _logger.info("new connections use the certificate from %s", self._files[0])

    def check(self, now: Micros) -> None:
        """Reload changed files. Checks once a minute, however often it is called."""
        if now < self._next_check:
            return
        self._next_check = now + CHECK_INTERVAL
        if self._stamps() != self._seen:
            self.renew()

    def _stamps(self) -> list[Stamp]:
        return [_stamp(file) for file in self._files]

    def _switch_context(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        """For every handshake, also without a server name."""
        connection.context = self._newest


def _stamp(file: str) -> Stamp:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return (
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
        found.st_size,
    )  # ctime: a chmod may make it readable


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    for name, file in (("tls_cert", certificate), ("tls_key", key)):
        try:
            open(file, "rb").close()
        except OSError as problem:
            raise ConfigError(f"{name}: {file} cannot be read ({problem.strerror}): use a PEM file") from None
    try:
        context.load_cert_chain(certificate, key, _no_password)
    except ssl.SSLError as problem:
        reason = (problem.reason or "not PEM").replace("_", " ").lower()
        remedy = "use a PEM certificate with its chain and its unencrypted key"
        raise ConfigError(
            f"tls_cert: {certificate} and {key} are not a usable pair ({reason}): {remedy}"
        ) from None


def _no_password() -> str:
    """A service cannot ask for a password."""
    return ""
