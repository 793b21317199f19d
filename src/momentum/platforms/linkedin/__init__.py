"""LinkedIn, as a platform."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from momentum.errors import Problem
from momentum.model import Author, Media, Post
from momentum.platform import (
    Access,
    Attachment,
    Grant,
    MediaFile,
    Meter,
    Published,
    Rules,
    SaveUpload,
    Upload,
)
from momentum.platforms.linkedin import rules, versions
from momentum.platforms.linkedin.http import Http
from momentum.platforms.linkedin.media import MediaUploads
from momentum.platforms.linkedin.oauth import OAuth
from momentum.platforms.linkedin.posts import Posts
from momentum.platforms.linkedin.settings import LinkedInSettings

__all__ = ["LinkedIn", "LinkedInSettings"]


class LinkedIn:
    name = "linkedin"
    title = "LinkedIn"
    rules: Rules = rules.RULES

    def __init__(self, settings: LinkedInSettings) -> None:
        self._http = Http(settings)
        self._oauth = OAuth(self._http)
        self._media = MediaUploads(self._http)
        self._posts = Posts(self._http)

    def notices(self, now: datetime) -> Sequence[str]:
        return versions.notices(self._http.settings.version, now)

    async def authorize_url(self, state: str, verifier: str, redirect_uri: str, server: str = "") -> str:
        return self._oauth.authorize_url(state, verifier, redirect_uri)

    async def exchange(self, code: str, verifier: str, redirect_uri: str, server: str = "") -> Grant:
        return await self._oauth.exchange(code, verifier, redirect_uri)

    async def learn_rules(self, server: str) -> None:
        """There is one LinkedIn, and its rules cannot be asked for."""

    def rules_at(self, server: str) -> Rules:
        return self.rules

    async def authors(self, grant: Grant, server: str = "") -> Sequence[Author]:
        return await self._oauth.authors(grant)

    async def refresh(self, refresh_token: str, server: str = "") -> Grant:
        return await self._oauth.refresh(refresh_token)

    async def revoke(self, access: Access) -> None:
        await self._oauth.revoke(access.token)

    def check(self, post: Post, media: Sequence[Media]) -> Sequence[Problem]:
        return rules.problems(post.content, media)

    async def upload(
        self, access: Access, file: MediaFile, upload: Upload, save: SaveUpload, meter: Meter
    ) -> None:
        await self._media.upload(access, file, upload, save, meter)

    async def is_processed(self, access: Access, media: Media, upload: Upload, meter: Meter) -> bool:
        return await self._media.is_processed(access, media, upload, meter)

    async def publish(
        self, access: Access, post: Post, attachments: Sequence[Attachment], meter: Meter
    ) -> Published:
        return await self._posts.publish(access, post, attachments, meter)

    @property
    def can_find(self) -> bool:
        return self._http.settings.organizations

    async def find(self, access: Access, post: Post, since: datetime, meter: Meter) -> Published | None:
        return await self._posts.find(access, post, since, meter)

    async def close(self) -> None:
        await self._http.close()
