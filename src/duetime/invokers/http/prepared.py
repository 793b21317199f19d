"""What is the same for every call of one target, read from its stored form once and kept for the next call."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import ClientTimeout
from multidict import CIMultiDict, istr
from yarl import URL

from duetime.model.codec import decode
from duetime.model.instant import SECOND
from duetime.model.keyring import KeyRing
from duetime.model.signing import Signer, endpoint_secrets
from duetime.model.target import SIGNING, Body, HttpTarget
from duetime.version import VERSION

MOST_KEPT = 2_048
LONGEST_CONNECT_SECONDS = 10.0
TYPES = {Body.JSON: "application/json", Body.RAW: "text/plain; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Prepared:
    target: HttpTarget
    url: URL
    timeout: ClientTimeout
    headers: CIMultiDict[str]
    content_type: str | None  # None when the caller's own headers say it
    signer: Signer | None  # of an endpoint without a secret of its own
    hidden: tuple[tuple[str, str], ...]  # header names with what is sealed under them
    own_signing: str | None  # sealed


class Shelf:
    """The prepared calls of this node. A tenant's are its own: the keys differ."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._kept: dict[tuple[str, bytes], Prepared] = {}

    def find(self, tenant: str, spec: bytes) -> Prepared:
        found = self._kept.get((tenant, spec))
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = self._kept[tenant, spec] = self._prepare(tenant, HttpTarget.from_spec(spec))
        return found

    def _prepare(self, tenant: str, target: HttpTarget) -> Prepared:
        seconds = target.timeout / SECOND
        sealed = {name: secret.text for name, secret in target.hidden}
        own_signing = sealed.pop(SIGNING, None)
        ours = {"User-Agent": f"Duetime/{VERSION}", "Accept": "*/*", "Accept-Encoding": "identity"}
        headers = CIMultiDict((istr(name), text) for name, text in ours.items())
        for name, text in target.headers:
            headers[istr(name)] = text
        return Prepared(
            target,
            URL(str(target.url), encoded=True),
            ClientTimeout(total=seconds, sock_connect=min(seconds, LONGEST_CONNECT_SECONDS), ceil_threshold=3600),
            headers,
            None if "Content-Type" in headers or any(name.lower() == "content-type" for name in sealed) else TYPES[target.body],
            None if own_signing or not self._ring.keys else Signer(endpoint_secrets(self._ring, tenant, target.url.origin)),
            tuple(sealed.items()),
            own_signing,
        )


def own_timeout(policies: bytes | None) -> str | None:
    """The timeout a job was given for itself."""
    return None if policies is None else decode(policies).get("timeout")
