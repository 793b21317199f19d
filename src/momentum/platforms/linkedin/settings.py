"""The settings of the LinkedIn client."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from momentum.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LinkedInSettings:
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    version: str = "202609"  # of the API, YYYYMM
    web_url: str = "https://www.linkedin.com"  # consent, tokens and the pages of posts
    api_url: str = "https://api.linkedin.com"
    organizations: bool = False  # needs the product "Community Management API"
    pkce: bool = False  # LinkedIn enables it for native apps only, on request; then no secret is sent
    publish_timeout: float = 80.0  # seconds that the create call may take
    timeout: float = 30.0  # seconds without a byte, for all other calls
    grace: float = (
        10.0  # seconds that a member's image or document gets for processing: it cannot be looked up
    )

    def __post_init__(self) -> None:
        if not re.fullmatch(r"20\d\d(0[1-9]|1[0-2])", self.version):
            raise ConfigError(
                f"linkedin version: {self.version!r} is not a version; use a year and month, "
                'for example "202609"'
            )
        for name in ("web_url", "api_url"):
            if not re.match(r"https?://[^/]+", getattr(self, name)):
                raise ConfigError(
                    f"linkedin {name}: {getattr(self, name)!r} is not a URL; use for example "
                    f'"{LinkedInSettings.__dataclass_fields__[name].default}"'
                )
