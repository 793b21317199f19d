"""What a caller gives for a post, before it is checked, and how its text reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from momentum.model import Article, Content, MediaUse

MENTION = re.compile(r"@\[([^\]\n]*)\]\((urn:[^)\s]+)\)")
MAX_TITLE = 80


@dataclass(frozen=True, slots=True)
class PostInput:
    """A new post, or an edited one: all of its fields."""

    account_id: str
    text: str = ""
    media: tuple[MediaUse, ...] = ()
    article: Article | None = None
    visibility: str = "PUBLIC"
    labels: tuple[str, ...] = ()
    scheduled_at: datetime | None = None
    local_time: str | None = None
    zone: str | None = None

    @property
    def content(self) -> Content:
        return Content(self.text, self.media, self.article, self.visibility)

    @property
    def media_ids(self) -> tuple[str, ...]:
        """Of its files, and of the picture of its article."""
        thumbnail = self.article.thumbnail if self.article else None
        return (*(use.media_id for use in self.media), *([thumbnail] if thumbnail else []))


def visible_text(text: str) -> str:
    """The text as a reader sees it: a mention is the name."""
    return MENTION.sub(lambda found: found[1], text)


def title_of(text: str) -> str:
    """The first line, for lists."""
    first = next((line.strip() for line in visible_text(text).splitlines() if line.strip()), "")
    return first if len(first) <= MAX_TITLE else first[: MAX_TITLE - 1] + "…"
