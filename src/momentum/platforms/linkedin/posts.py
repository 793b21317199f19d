"""Posts at LinkedIn: the create call, and the search for a post whose creation is in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from momentum.model import AuthorKind, Content, MediaKind, Post
from momentum.platform import Access, Attachment, Meter, OutcomeUnknown, Published, Rejected
from momentum.platforms.linkedin.errors import post_url
from momentum.platforms.linkedin.http import Http, encoded
from momentum.platforms.little_text import normalised, to_little_text

READ_SCOPE = "r_organization_social"
CLOCK_SKEW = timedelta(seconds=60)  # between LinkedIn and this machine
PAGE = 50
MAX_POSTS = 1000  # that a search looks through


class Posts:
    def __init__(self, http: Http) -> None:
        self._http = http

    async def publish(
        self, access: Access, post: Post, attachments: Sequence[Attachment], meter: Meter
    ) -> Published:
        """LinkedIn answers with an empty body; the id is in a header."""
        await meter.spend()
        body = create_body(access.author.urn, post.content, attachments)
        answer = await self._http.rest("POST", "posts", access.token, body, creates=True)
        urn = answer.headers.get("x-restli-id", "")
        return Published(urn, post_url(self._http.settings.web_url, urn) if urn else None)

    async def find(self, access: Access, post: Post, since: datetime, meter: Meter) -> Published | None:
        if access.author.kind is AuthorKind.MEMBER or READ_SCOPE not in access.scopes:
            raise OutcomeUnknown("LinkedIn does not let this account read its own posts", code="not_readable")
        text = normalised(to_little_text(post.content.text))
        if not text:
            raise OutcomeUnknown("a post without text cannot be told from others", code="not_comparable")
        earliest = (since - CLOCK_SKEW).timestamp() * 1000
        for start in range(0, MAX_POSTS, PAGE):
            elements = await self._latest(access, start, meter)
            for element in elements:
                if _created_at(element) >= earliest and normalised(element.get("commentary", "")) == text:
                    return Published(element["id"], post_url(self._http.settings.web_url, element["id"]))
            if len(elements) < PAGE or _created_at(elements[-1]) < earliest:
                return None
        raise OutcomeUnknown(
            "the author has published too much since then to look through it", code="too_many"
        )

    async def _latest(self, access: Access, start: int, meter: Meter) -> list[dict[str, Any]]:
        """A page of the author's posts, newest first."""
        await meter.spend()
        query = f"q=author&author={encoded(access.author.urn)}&start={start}&count={PAGE}&sortBy=CREATED"
        headers = {"X-RestLi-Method": "FINDER"}
        try:
            answer = await self._http.rest("GET", f"posts?{query}", access.token, headers=headers)
        except Rejected as error:
            details: Any = {"status": error.status, "request_id": error.request_id}
            raise OutcomeUnknown(error.message, code="not_readable", **details) from error
        return list(answer.fields.get("elements", []))


def _created_at(element: dict[str, Any]) -> int:
    """Milliseconds since 1970."""
    return int(element.get("createdAt") or element.get("publishedAt") or 0)


def create_body(author: str, content: Content, attachments: Sequence[Attachment]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "author": author,
        "commentary": to_little_text(content.text),
        "visibility": content.visibility,
        "distribution": {
            "feedDistribution": "MAIN_FEED",
            "targetEntities": [],
            "thirdPartyDistributionChannels": [],
        },
        "lifecycleState": "PUBLISHED",
        "isReshareDisabledByAuthor": False,
    }
    shown = _content(content, attachments)
    return body | {"content": shown} if shown else body


def _content(content: Content, attachments: Sequence[Attachment]) -> dict[str, Any] | None:
    """Plain strings here: little text is for the commentary only."""
    if content.article is not None:
        article = content.article
        card = {"source": article.url, "title": article.title}
        if article.description:
            card["description"] = article.description
        thumbnail = next((each.asset for each in attachments if each.media.id == article.thumbnail), None)
        return {"article": card | ({"thumbnail": thumbnail} if thumbnail else {})}
    if not attachments:
        return None
    if len(attachments) > 1:
        return {"multiImage": {"images": [_image(each) for each in attachments]}}
    [only] = attachments
    if only.media.kind is MediaKind.IMAGE:
        return {"media": _image(only)}
    title = only.title or only.media.name
    return {"media": {"id": only.asset, "title": title}}


def _image(attachment: Attachment) -> dict[str, str]:
    alt_text = {"altText": attachment.alt_text} if attachment.alt_text else {}
    return {"id": attachment.asset, **alt_text}
