"""The platforms that Momentum publishes to. Another one is a file in this folder and its line here."""

from __future__ import annotations

from typing import Protocol

from momentum.platform import Platform
from momentum.platforms.linkedin import LinkedIn
from momentum.platforms.linkedin.settings import LinkedInSettings
from momentum.platforms.mastodon import Mastodon, MastodonSettings


class PlatformSettings(Protocol):
    """The part of Momentum's settings that chooses the platforms."""

    @property
    def linkedin(self) -> LinkedInSettings: ...

    @property
    def mastodon(self) -> bool: ...

    @property
    def mastodon_servers(self) -> tuple[str, ...]: ...


def platforms_of(settings: PlatformSettings) -> dict[str, Platform]:
    platforms: list[Platform] = [LinkedIn(settings.linkedin)]
    if settings.mastodon:
        platforms.append(Mastodon(MastodonSettings(servers=settings.mastodon_servers)))
    return {platform.name: platform for platform in platforms}
