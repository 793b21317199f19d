"""The parts of a call that are the same for every call of one target: read once from the stored target, then
cached."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import ClientTimeout
from multidict import CIMultiDict, istr
from yarl import URL

from duetime.model.instant import SECOND
from duetime.model.keyring import KeyRing
from duetime.model.signing import Signer, endpoint_secrets
from duetime.model.target import SIGNING, Body, HttpTarget
from duetime.version import VERSION

MAX_TARGETS = 2_048
MAX_CONNECT_SECONDS = 10.0
TYPES = {Body.JSON: "application/json", Body.RAW: "text/plain; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class PreparedTarget:
    target: HttpTarget
    url: URL
    timeout: ClientTimeout
    headers: CIMultiDict[str]
    content_type: str | None  # None if the caller's own headers set it
    signer: Signer | None  # for an endpoint without its own secret
    hidden: tuple[tuple[str, str], ...]  # header names and their encrypted values
    own_signing: str | None  # encrypted


class TargetCache:
    """Prepared targets by tenant, because each tenant has its own keys."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._kept: dict[tuple[str, bytes], PreparedTarget] = {}

    def find(self, tenant: str, spec: bytes) -> PreparedTarget:
        found = self._kept.get((tenant, spec))
        if found is None:
            if len(self._kept) >= MAX_TARGETS:
                self._kept.clear()
            found = self._kept[tenant, spec] = self._prepare(tenant, HttpTarget.from_spec(spec))
        return found

    def _prepare(self, tenant: str, target: HttpTarget) -> PreparedTarget:
        seconds = target.timeout / SECOND
        sealed = {name: secret.text for name, secret in target.hidden}
        own_signing = sealed.pop(SIGNING, None)
        ours = {"User-Agent": f"Duetime/{VERSION}", "Accept": "*/*", "Accept-Encoding": "identity"}
        headers = CIMultiDict((istr(name), text) for name, text in ours.items())
        for name, text in target.headers:
            headers[istr(name)] = text
        return PreparedTarget(
            target,
            URL(str(target.url), encoded=True),
            ClientTimeout(total=seconds, sock_connect=min(seconds, MAX_CONNECT_SECONDS), ceil_threshold=3600),
            headers,
            None
            if "Content-Type" in headers or any(name.lower() == "content-type" for name in sealed)
            else TYPES[target.body],
            None
            if own_signing or not self._ring.keys
            else Signer(endpoint_secrets(self._ring, tenant, target.url.origin)),
            tuple(sealed.items()),
            own_signing,
        )
