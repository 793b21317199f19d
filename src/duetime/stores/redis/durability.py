"""Whether the server keeps what it accepts: a setting that loses jobs silently is refused."""

from __future__ import annotations

from duetime.errors import ConfigError, StoreError
from duetime.stores.redis.connection import RedisConnection

MIN_VERSION = (7, 0)
ACCEPT = "or add durability=none to the URL, if jobs may be lost"
# Setting -> the values that keep jobs, and what the others do
SETTINGS = {
    "appendonly": ({"yes"}, "a restart of the server would lose every job", "yes"),
    "appendfsync": (
        {"everysec", "always"},
        "a power failure could lose the jobs of the last half minute",
        "everysec",
    ),
    "maxmemory-policy": (
        {"noeviction"},
        "the server would delete jobs when its memory is full",
        "noeviction",
    ),
}


async def check_server(connection: RedisConnection) -> None:
    """Raises ConfigError with the setting and the fix."""
    place = f"Redis at {connection.address.place}"
    await check_version(connection, place)
    settings = await _settings(connection, place)
    for name, (safe, loss, fix) in SETTINGS.items():
        value = settings.get(name)
        if value is not None and value not in safe:
            raise ConfigError(
                f"{place} has {name} {value}: {loss}; set `{name} {fix}` in redis.conf and with CONFIG "
                f"SET, {ACCEPT}"
            )
    await _check_default_user(connection, place)


async def check_version(connection: RedisConnection, place: str) -> None:
    info = (await connection.command("INFO", "server")).decode()
    lines = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    version = lines.get("redis_version", "0.0")
    if tuple(map(int, version.split(".")[:2])) < MIN_VERSION:
        raise ConfigError(f"{place} is version {version}: Duetime needs Redis {MIN_VERSION[0]} or later")


async def _settings(connection: RedisConnection, place: str) -> dict[str, str]:
    try:
        flat = await connection.command("CONFIG", "GET", *SETTINGS)
    except (ConfigError, StoreError) as problem:
        raise ConfigError(
            f"{place} does not let this user read its settings ({problem}), so nothing says whether it keeps "
            f"jobs: allow the user `+config|get +acl|getuser +info`, {ACCEPT}"
        ) from problem
    texts = [value.decode() for value in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


async def _check_default_user(connection: RedisConnection, place: str) -> None:
    """While the user `default` is off, Redis 7 ignores what scripts wrote when it loads its append-only file
    (https://github.com/redis/redis/issues/14541)."""
    flat = await connection.command("ACL", "GETUSER", "default")
    flags = dict(zip(flat[::2], flat[1::2], strict=True)).get(b"flags", [])
    if b"off" in flags:
        raise ConfigError(
            f"{place} has `user default off`: Redis 7 then loses what scripts wrote when it restarts; give "
            f"the user `default` a password instead (requirepass), {ACCEPT}"
        )
