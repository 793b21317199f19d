"""TLS to PostgreSQL: the certificate is verified when the URL says so, and a wrong one is refused. PgBouncer
is the server, because the PostgreSQL of the wheel has no TLS."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from duetime.errors import StoreUnavailable
from duetime.stores.postgres import PostgresStore
from duetime.testing.conformance.drafts import job, joined
from tests.http.test_tls import certificate
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer
from tests.servers.process import give
from tests.stores.conftest import NAME


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Not below pytest's own folder, which the server, as another user, cannot enter."""
    with tempfile.TemporaryDirectory(prefix="duetime-tls-") as name:
        give(Path(name))
        yield Path(name)


@pytest.fixture(scope="module")
def certificates(folder: Path) -> dict[str, Path]:
    made = {name: certificate(folder, name) for name in ("localhost", "elsewhere.example")}
    for path in made.values():
        give(path)
    return made


@pytest.fixture(scope="module")
def secure(postgres_server: PostgresServer, certificates: dict[str, Path]) -> Iterator[PgBouncer]:
    own = str(certificates["localhost"])
    settings = {"client_tls_sslmode": "require", "client_tls_key_file": own, "client_tls_cert_file": own}
    with PgBouncer(postgres_server, settings=settings) as server:
        yield server


def url(server: PgBouncer | PostgresServer, options: str, host: str = "localhost") -> str:
    return f"postgresql://postgres@{host}:{server.port}/{NAME}?pooler=transaction&{options}"


async def test_store_works_over_a_verified_connection(
    secure: PgBouncer, certificates: dict[str, Path], postgres_database: str
) -> None:
    store = PostgresStore.from_url(
        url(secure, f"sslmode=verify-full&sslrootcert={certificates['localhost']}")
    )
    await store.open()
    await joined(store)
    draft = job(await store.time())
    await store.add_jobs([draft])
    assert await store.get_job(draft.tenant, draft.id) is not None
    await store.close()


@pytest.mark.parametrize(
    ("trusted", "host"),
    [("elsewhere.example", "localhost"), ("localhost", "127.0.0.1")],
    ids=["issuer", "name"],
)
async def test_wrong_certificate_is_refused(
    trusted: str, host: str, secure: PgBouncer, certificates: dict[str, Path], postgres_database: str
) -> None:
    options = f"sslmode=verify-full&sslrootcert={certificates[trusted]}"
    store = PostgresStore.from_url(url(secure, options, host))
    with pytest.raises(StoreUnavailable, match="certificate"):
        await store.open()
    await store.close()


async def test_server_without_tls_is_refused_when_tls_is_required(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    store = PostgresStore.from_url(url(postgres_server, "sslmode=require"))
    with pytest.raises(StoreUnavailable, match="SSL"):
        await store.open()
    await store.close()
