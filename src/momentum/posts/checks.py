"""Every limit, checked when a post is saved: what can be read from the fields, then the numbers of the
platform's rules, then the platform's own checks. All problems are named together, each with its field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from momentum.errors import InvalidPost, Problem
from momentum.model import Account, AccountState, Content, Media, MediaKind, Post, PostState
from momentum.platform import MediaRule, Platform, Rules
from momentum.posts.content import PostInput, visible_text
from momentum.posts.local_time import Moment, resolve, zone_of

LATENESS = timedelta(minutes=1)  # a time just past is a slow request, not a mistake
MAX_AHEAD = timedelta(days=5 * 366)
MAX_LABEL = 60
ONLY_WHEN_PLANNED = {"text_missing"}  # a draft may still be empty


@dataclass(frozen=True, slots=True)
class Checked:
    """What a caller gave, as it can be stored."""

    content: Content
    scheduled_at: datetime | None
    zone: str
    labels: tuple[str, ...]
    note: str | None
    problems: tuple[Problem, ...]


def check(
    given: PostInput,
    account: Account,
    platform: Platform,
    media: Sequence[Media],
    now: datetime,
    *,
    planned: bool = False,
) -> Checked:
    """`media` are the files of the post and the picture of its article, in this order. `planned`: it has a
    time already."""
    problems: list[Problem] = []
    moment, zone = None, "UTC"
    try:
        moment, zone = read_time(given, now)
    except InvalidPost as problem:
        problems += problem.problems
    planned = planned or moment is not None
    if account.state is AccountState.DISCONNECTED and planned:
        problems.append(Problem("account_id", "is disconnected: connect it again", "account_disconnected"))
    labels = tuple(dict.fromkeys(label.strip() for label in given.labels))
    problems += _labels(labels)
    problems += _content(given.content, media, platform.rules_at(account.server))
    sample = _sample(given, account, now)
    problems += [one for one in platform.check(sample, media) if planned or one.code not in ONLY_WHEN_PLANNED]
    return Checked(
        given.content,
        moment.instant if moment else None,
        zone,
        labels,
        moment.note if moment else None,
        tuple(dict.fromkeys(problems)),
    )


def read_time(given: PostInput, now: datetime) -> tuple[Moment | None, str]:
    """The instant, if a time was given, and the zone."""
    zone = given.zone or "UTC"
    zone_of(zone)
    if given.scheduled_at is not None and given.local_time is not None:
        message = "give scheduled_at or local_time, not both"
        raise InvalidPost([Problem("scheduled_at", message, "time_ambiguous")])
    field = "scheduled_at" if given.local_time is None else "local_time"
    try:
        moment = _moment(given, zone)
    except OverflowError:  # within a day of the first or last year that Python knows
        raise InvalidPost(
            [Problem(field, "is outside of the calendar: check the year", "time_invalid")]
        ) from None
    if moment is None:
        return None, zone
    if moment.instant < now - LATENESS:
        message = "is in the past: choose a later time, or publish now"
        raise InvalidPost([Problem(field, message, "time_past")])
    if moment.instant > now + MAX_AHEAD:
        raise InvalidPost([Problem(field, "is over five years ahead: check the year", "time_too_far")])
    return moment, zone


def _moment(given: PostInput, zone: str) -> Moment | None:
    if given.local_time is not None:
        if given.zone is None:
            message = "is missing: local_time needs one, such as Europe/Berlin"
            raise InvalidPost([Problem("zone", message, "zone_missing")])
        return resolve(given.local_time, zone)
    if given.scheduled_at is None:
        return None
    if given.scheduled_at.tzinfo is None:
        message = "has no offset: write it with Z or +01:00, or use local_time with zone"
        raise InvalidPost([Problem("scheduled_at", message, "time_invalid")])
    return Moment(given.scheduled_at.astimezone(UTC))


def _labels(labels: tuple[str, ...]) -> Iterator[Problem]:
    for index, label in enumerate(labels):
        if not label or len(label) > MAX_LABEL or not label.isprintable():
            yield Problem(
                f"labels[{index}]", f"must have 1 to {MAX_LABEL} printable characters", "label_invalid"
            )


def _content(content: Content, media: Sequence[Media], rules: Rules) -> Iterator[Problem]:
    length = len(visible_text(content.text))
    if length > rules.max_text:
        yield Problem(
            "text",
            f"has {length:,} characters, and {rules.max_text:,} are allowed",
            "text_too_long",
        )
    if "\0" in content.text:
        yield Problem("text", "contains a character that cannot be published (NUL)", "text_invalid")
    if content.visibility not in rules.visibilities:
        yield Problem(
            "visibility",
            f"{content.visibility!r} is unknown: use {', '.join(rules.visibilities)}",
            "visibility_unknown",
        )
    yield from _article(content, media, rules)
    yield from _media(content, media[: len(content.media)], rules)


def _article(content: Content, media: Sequence[Media], rules: Rules) -> Iterator[Problem]:
    article = content.article
    if article is None:
        return
    if not rules.articles:
        yield Problem("article", "this platform has none: put the address into the text", "no_articles")
    if not _is_address(article.url):
        yield Problem("article.url", "must be a web address that begins with https://", "url_invalid")
    if not article.title.strip():
        yield Problem("article.title", "is missing: the platform does not read the page", "title_missing")
    if article.thumbnail is not None:
        rule = rules.media.get(MediaKind.IMAGE)
        picture = media[-1]
        if picture.kind is not MediaKind.IMAGE or rule is None:
            yield Problem("article.thumbnail", "must be an image", "thumbnail_invalid")
        else:
            yield from _file("article.thumbnail", picture, rule)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
    return known and not any(letter.isspace() for letter in url)


def _media(content: Content, media: Sequence[Media], rules: Rules) -> Iterator[Problem]:
    ids = [use.media_id for use in content.media]
    if len(set(ids)) < len(ids):
        yield Problem("media", "contains a file twice: remove one", "media_repeated")
    for kind in dict.fromkeys(item.kind for item in media):
        rule = rules.media.get(kind)
        count = sum(item.kind is kind for item in media)
        if rule is None:
            yield Problem("media", f"this platform has no posts with a {kind.value}", "media_kind")
        elif count > rule.max_count:
            yield Problem(
                "media", f"has {count} {kind.value}s, and {rule.max_count} are allowed", "media_too_many"
            )
    for index, item in enumerate(media):
        if item.kind in rules.media:
            yield from _file(f"media[{index}]", item, rules.media[item.kind])


def _file(field: str, item: Media, rule: MediaRule) -> Iterator[Problem]:
    if item.type not in rule.types:
        known = ", ".join(name.rpartition("/")[2] for name in rule.types)
        yield Problem(field, f"{item.type} is not accepted: use {known}", "media_type")
    if item.size > rule.max_bytes:
        yield Problem(
            field, f"has {item.size:,} bytes, and {rule.max_bytes:,} are allowed", "media_too_large"
        )
    if item.size < rule.min_bytes:
        yield Problem(
            field, f"has {item.size:,} bytes, and at least {rule.min_bytes:,} are needed", "media_too_small"
        )
    pixels = (item.width or 0) * (item.height or 0)
    if rule.max_pixels is not None and pixels > rule.max_pixels:
        yield Problem(
            field, f"has {pixels:,} pixels, and {rule.max_pixels:,} are allowed", "media_too_many_pixels"
        )
    if rule.max_pages is not None and (item.pages or 0) > rule.max_pages:
        yield Problem(
            field, f"has {item.pages} pages, and {rule.max_pages} are allowed", "media_too_many_pages"
        )
    if item.seconds is not None:
        if rule.min_seconds is not None and item.seconds < rule.min_seconds:
            yield Problem(field, f"lasts {item.seconds:g} s, under {rule.min_seconds:g} s", "media_too_short")
        if rule.max_seconds is not None and item.seconds > rule.max_seconds:
            yield Problem(field, f"lasts {item.seconds:g} s, over {rule.max_seconds:g} s", "media_too_long")


def _sample(given: PostInput, account: Account, now: datetime) -> Post:
    """The post as the platform's own check sees it."""
    return Post("", account.tenant, account.id, PostState.DRAFT, 1, given.content, None, "UTC", now, now)
