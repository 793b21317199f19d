"""The settings of one process. The command line reads them from flags and MOMENTUM_* variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from momentum.errors import ConfigError
from momentum.platforms.linkedin.settings import LinkedInSettings
from momentum.publishing.options import PublishingOptions

AUTHS = ("none", "keys")
ROLES = ("api", "planner", "worker")


@dataclass(frozen=True, slots=True)
class Settings:
    database: str = "sqlite:///momentum.db"  # the same URL is Duetime's store
    queue: str | None = None  # the URL of a broker, as of Duetime; None: workers ask the database
    media: str = "file://momentum-media"  # a folder, or s3://bucket/prefix
    media_quota: int = 20 * 1024**3  # bytes that the files of one tenant may need
    secret_keys: tuple[str, ...] = field(default=(), repr=False)  # Fernet keys, newest first
    auth: str = "none"
    public_url: str | None = None  # where browsers reach this service; OAuth returns there
    proxies: tuple[str, ...] = ()  # networks of proxies whose X-Forwarded-For is trusted
    host: str = "127.0.0.1"
    port: int = 8081
    linkedin: LinkedInSettings = field(default_factory=LinkedInSettings)
    mastodon: bool = False  # offer Mastodon, too
    mastodon_servers: tuple[str, ...] = ()  # the only ones that people may connect to; empty: all
    demo: bool = False  # with the local LinkedIn of `momentum.sandbox`
    platforms: tuple[str, ...] = ()  # that this worker publishes to; empty: all
    concurrency: int = 50  # posts that one worker handles at the same time
    publishing: PublishingOptions = field(default_factory=PublishingOptions)

    def __post_init__(self) -> None:
        if self.auth not in AUTHS:
            raise ConfigError(f"auth: {self.auth!r} is unknown: use {' or '.join(AUTHS)}")
        if self.auth == "none" and not _is_loopback(self.host):
            raise ConfigError(
                f"auth: without keys everyone who reaches {self.host} could publish: use --auth keys, or "
                "--host 127.0.0.1"
            )
        public_host = urlsplit(self.public_url).hostname if self.public_url else "localhost"
        if self.auth == "none" and not _is_loopback(public_host or ""):
            raise ConfigError(
                f"public_url: {self.public_url} is for other machines, and without keys everyone who reaches "
                "it could publish: create a key with `momentum key create NAME` and use --auth keys, or "
                "leave public_url out"
            )
        self.trusted_proxies()
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"port: {self.port} must be from 0 to 65535")
        if self.concurrency < 1:
            raise ConfigError(f"concurrency: {self.concurrency} must be 1 or more")

    def trusted_proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        try:
            return tuple(ip_network(one) for one in self.proxies)
        except ValueError as problem:
            raise ConfigError(f"proxies: {problem}: write 10.1.0.0/16 or an address") from None

    @property
    def base_url(self) -> str:
        """Where browsers reach this service, without a slash at its end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
