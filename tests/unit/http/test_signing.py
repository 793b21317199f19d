"""Standard Webhooks as the reference library reads them; tokens for reports; the keys they come from."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from duetime.errors import ConfigError, InvalidInput
from duetime.model.keyring import KeyRing
from duetime.model.signing import (
    Signer,
    endpoint_secrets,
    read_secret,
    report_token,
    verify_report_token,
    write_secret,
)

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
SECRET, OTHER = b"s" * 32, b"o" * 32
BODY = b'{"a": 1}'
JOB = UUID(int=5)


def entry(name: str, letter: bytes) -> str:
    return f"{name}:{b64encode(letter * 32).decode()}"


class FrozenTime:
    """What the reference library reads instead of the wall clock."""

    @staticmethod
    def now(tz: tzinfo) -> datetime:
        return NOW

    fromtimestamp = datetime.fromtimestamp


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("standardwebhooks.webhooks.datetime", FrozenTime)
        yield


OLD, NEW = entry("old", b"1"), entry("new", b"2")


def headers(
    secrets: list[bytes], body: bytes = BODY, at: datetime = NOW, message: str = "job_1"
) -> dict[str, str]:
    seconds = int(at.timestamp())
    return {
        "webhook-id": message,
        "webhook-timestamp": str(seconds),
        "webhook-signature": Signer(secrets).sign(message, seconds, body),
    }


@given(
    st.binary(min_size=24, max_size=64),
    st.text().map(lambda text: b'"' + text.encode("utf-8", "ignore").hex().encode() + b'"'),
)
def test_the_reference_library_verifies_ours(secret: bytes, body: bytes) -> None:
    Webhook(write_secret(secret)).verify(body, headers([secret], body))


def test_a_published_example() -> None:
    """The vector of the reference libraries."""
    secret = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "secret")
    signature = Signer([secret]).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_both_keys_verify_while_they_are_changed() -> None:
    sent = headers([SECRET, OTHER])
    for secret in (SECRET, OTHER):
        Webhook(write_secret(secret)).verify(BODY, sent)


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (headers([OTHER]), BODY),
        (headers([SECRET]), BODY.replace(b"1", b"0")),
        (headers([SECRET], at=NOW - timedelta(minutes=6)), BODY),
        (headers([SECRET], at=NOW + timedelta(minutes=6)), BODY),
        (headers([SECRET]) | {"webhook-id": "job_2"}, BODY),
        (headers([SECRET]) | {"webhook-timestamp": str(int(NOW.timestamp()) + 1)}, BODY),
    ],
)
def test_tampered_request_is_rejected(sent: dict[str, str], body: bytes) -> None:
    """Another endpoint's key, a flipped bit, an old timestamp, another id."""
    with pytest.raises(WebhookVerificationError):
        Webhook(write_secret(SECRET)).verify(body, sent)


def test_every_endpoint_and_tenant_has_its_own_secret() -> None:
    ring = KeyRing.parse([NEW, OLD])
    found = [
        endpoint_secrets(ring, tenant, origin)
        for tenant in ("a", "b")
        for origin in ("https://x.example", "https://x.example:8443")
    ]
    assert len({secret for secrets in found for secret in secrets}) == 8
    assert endpoint_secrets(KeyRing.parse([NEW]), "a", "https://x.example") == found[0][:1]
    assert endpoint_secrets(KeyRing(), "a", "https://x.example") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        "whsec_!!!",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        None,
        5,
        write_secret(b"x" * 23),
        write_secret(b"x" * 65),
    ],
)
def test_malformed_signing_secret_is_rejected(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"^field: must be whsec_"):
        read_secret(text, "field")


# -- reports
# ----------------------------------------------------------------------------------------------------------
def test_a_token_speaks_for_one_attempt_of_one_job() -> None:
    ring = KeyRing.parse([NEW])
    token = report_token(ring, "shop", JOB, 7)
    assert token is not None
    assert verify_report_token(ring, JOB, token) == ("shop", 7)
    assert verify_report_token(ring, UUID(int=6), token) is None
    assert verify_report_token(KeyRing.parse([OLD]), JOB, token) is None
    assert verify_report_token(KeyRing.parse([OLD, NEW]), JOB, token) == ("shop", 7)
    assert report_token(KeyRing(), "shop", JOB, 7) is None
    assert verify_report_token(KeyRing(), JOB, token) is None


@pytest.mark.parametrize(
    "forge",
    [
        lambda t: "8" + t[1:],
        lambda t: t[:-1],
        lambda t: "0" + t,
        lambda t: t[2:],
        lambda t: "7.",
        lambda t: "7.b3RoZXI." + t.rpartition(".")[2],
        lambda t: "7.%%%." + t.rpartition(".")[2],
        lambda t: "",
        lambda t: "7.ä",
        lambda t: "9" * 5_000 + t[1:],
        lambda t: "-7" + t[1:],
    ],
)
def test_a_forged_token_speaks_for_nothing_else(forge: object) -> None:
    ring = KeyRing.parse([NEW])
    forged = forge(report_token(ring, "shop", JOB, 7))  # type: ignore[operator]  # a lambda of one argument
    assert verify_report_token(ring, JOB, forged) in (None, ("shop", 7) if forged.startswith("07") else None)


# -- keys
# -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "bad",
    [
        "canary",
        "id:canary!",
        "id:" + b64encode(b"short").decode(),
        ":" + b64encode(b"x" * 32).decode(),
        "i d:" + b64encode(b"x" * 32).decode(),
    ],
)
def test_a_key_that_cannot_be_read_is_not_repeated(bad: str) -> None:
    with pytest.raises(ConfigError, match="secret key number 2 is invalid") as caught:
        KeyRing.parse([NEW, bad])
    assert bad not in str(caught.value)


def test_keys_do_not_show_themselves() -> None:
    ring = KeyRing.parse([NEW, OLD])
    assert "2222" not in repr(ring)
    assert ring.current is not None
    assert ring.current.id == "new"
    with pytest.raises(ConfigError, match="same id"):
        KeyRing.parse([NEW, NEW])
    assert (
        len({key.derive(purpose) for key in ring.keys for purpose in ("webhook", "report", "secrets")}) == 6
    )
