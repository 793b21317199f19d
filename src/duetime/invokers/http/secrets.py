"""Secret header values: AES-GCM under a key of the service, bound to tenant and header name, opened only to be sent."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from duetime.errors import InvalidInput, SecretUnreadable
from duetime.model.ids import random_bytes
from duetime.model.keyring import KeyRing, ServiceKey
from duetime.model.target import NO_KEY, HttpTarget

NONCE = 12
FORM = "v1"


class SecretBox:
    """`seal` before anything is stored; `open` when calling. A value moved to another tenant or header does not open."""

    def __init__(self, ring: KeyRing, chance: Callable[[int], bytes] = random_bytes) -> None:
        self._ring = ring
        self._chance = chance

    def seal_target(self, target: HttpTarget, tenant: str) -> HttpTarget:
        return target.sealed(lambda name, text: self.seal(tenant, name, text))

    def seal(self, tenant: str, name: str, text: str) -> str:
        key = self._ring.current
        if key is None:
            raise InvalidInput("target.secret_headers", NO_KEY)
        nonce = self._chance(NONCE)
        return f"{FORM}.{key.id}.{urlsafe_b64encode(nonce + _cipher(key).encrypt(nonce, text.encode(), _bound_to(tenant, name))).decode()}"

    def open(self, tenant: str, name: str, sealed: str) -> str:
        form, _, rest = sealed.partition(".")
        key_id, _, data = rest.partition(".")
        key = self._ring.find(key_id) if form == FORM else None
        if key is None:
            raise SecretUnreadable("a secret of this target was encrypted with a key this node does not have: add it to its secret keys")
        try:
            box = urlsafe_b64decode(data)
            return _cipher(key).decrypt(box[:NONCE], box[NONCE:], _bound_to(tenant, name)).decode()
        except (InvalidTag, ValueError):
            raise SecretUnreadable("a secret of this target cannot be opened: write it anew") from None


def _cipher(key: ServiceKey) -> AESGCM:
    return AESGCM(key.derive("secrets"))


def _bound_to(tenant: str, name: str) -> bytes:
    return f"{tenant}\0{name.lower()}".encode()
