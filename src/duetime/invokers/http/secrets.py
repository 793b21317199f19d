"""Secret header values: encrypted with AES-GCM under a key of the service, bound to tenant and header name,
decrypted only for a call."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import ClientTimeout
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from multidict import CIMultiDict, istr
from yarl import URL

from duetime.errors import InvalidInput, SecretUnreadable
from duetime.model.codec import decode
from duetime.model.ids import random_bytes
from duetime.model.instant import SECOND
from duetime.model.keyring import KeyRing, ServiceKey
from duetime.model.signing import Signer, endpoint_secrets
from duetime.model.target import NO_KEY, SIGNING, Body, HttpTarget
from duetime.version import VERSION

NONCE_BYTES = 12
FORMAT = "v1"


class SecretBox:
    """`seal` a value before it is stored, `open` it for a call. A value copied to another tenant or header
    does not open."""

    def __init__(self, ring: KeyRing, source: Callable[[int], bytes] = random_bytes) -> None:
        self._ring = ring
        self._random = source

    def seal_target(self, target: HttpTarget, tenant: str) -> HttpTarget:
        return target.sealed(lambda name, text: self.seal(tenant, name, text))

    def seal(self, tenant: str, name: str, text: str) -> str:
        key = self._ring.current
        if key is None:
            raise InvalidInput("target.secret_headers", NO_KEY)
        nonce = self._random(NONCE_BYTES)
        box = nonce + _cipher(key).encrypt(nonce, text.encode(), _bound_to(tenant, name))
        return f"{FORMAT}.{key.id}.{urlsafe_b64encode(box).decode()}"

    def open(self, tenant: str, name: str, sealed: str) -> str:
        form, _, rest = sealed.partition(".")
        key_id, _, data = rest.partition(".")
        key = self._ring.find(key_id) if form == FORMAT else None
        if key is None:
            raise SecretUnreadable(
                "a secret of this target was encrypted with an unknown key: add it to this node's secret_keys"
            )
        try:
            box = urlsafe_b64decode(data)
            return (
                _cipher(key).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], _bound_to(tenant, name)).decode()
            )
        except (InvalidTag, ValueError):
            raise SecretUnreadable("a secret of this target cannot be decrypted: set it again") from None


def _cipher(key: ServiceKey) -> AESGCM:
    return AESGCM(key.derive("secrets"))


def _bound_to(tenant: str, name: str) -> bytes:
    return f"{tenant}\0{name.lower()}".encode()


# The parts of a call that are the same for every call of one target: read once from the stored target, then
# cached.


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


def own_timeout(policies: bytes | None) -> str | None:
    """The timeout that the job itself was given."""
    return None if policies is None else decode(policies).get("timeout")
