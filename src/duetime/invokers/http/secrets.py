"""Secret header values: encrypted with AES-GCM under a key of the service, bound to tenant and header name,
decrypted only for a call."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from duetime.errors import InvalidInput, SecretUnreadable
from duetime.model.ids import random_bytes
from duetime.model.keyring import KeyRing, ServiceKey
from duetime.model.target import NO_KEY, HttpTarget, Secret

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
            raise InvalidInput(Secret(text).place(name), NO_KEY)
        nonce = self._random(NONCE_BYTES)
        box = nonce + _cipher(key).encrypt(nonce, text.encode(), _bound_to(tenant, name))
        return f"{FORMAT}.{key.id}.{urlsafe_b64encode(box).decode()}"

    def open(self, tenant: str, name: str, sealed: str) -> str:
        form, _, rest = sealed.partition(".")
        key_id, _, data = rest.partition(".")
        key = self._ring.find(key_id) if form == FORMAT else None
        if key is None:
            raise SecretUnreadable(
                f"a secret of this target was encrypted with the key {key_id[:32]!r}: "
                "add it to this node's secret_keys",
                key_id,
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
