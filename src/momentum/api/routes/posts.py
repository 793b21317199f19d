"""Posts: create, list, edit, schedule, cancel, publish, resolve. Nothing is published inside a request."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from momentum.api.auth import KnownCaller
from momentum.api.models.posts import (
    ArticleIn,
    CheckOut,
    ImportOut,
    ImportRowOut,
    NewPostIn,
    PostOut,
    PostPage,
    PostPatchIn,
    PostPreview,
    ResolveIn,
    ScheduleIn,
    TimelineOut,
    VersionIn,
    problem_items,
)
from momentum.api.state import ServiceState, State
from momentum.api.views import show_attempt, show_event, show_posts
from momentum.database import attempts, events, posts
from momentum.errors import InvalidPost, Problem
from momentum.model import Article, MediaUse, PostState
from momentum.posts.commands import Saved
from momentum.posts.content import visible_text
from momentum.posts.csv_import import import_csv
from momentum.posts.queries import MAX_PAGE, PostFilter, listing

router = APIRouter(tags=["posts"])
MAX_SEARCH = 200
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]
NO_VERSION = VersionIn()


async def shown(state: ServiceState, saved: Saved) -> PostOut:
    notes = {saved.post.id: saved.note} if saved.note else {}
    async with state.momentum.database.reading() as connection:
        return (await show_posts(connection, saved.post.tenant, [saved.post], notes))[0]


@router.post("/posts", status_code=201, response_model=PostOut)
async def create_post(
    body: NewPostIn,
    response: Response,
    caller: KnownCaller,
    state: State,
    idempotency_key: IdempotencyKey = None,
) -> PostOut:
    """Store a draft, or a planned post if it has a time."""
    canonical = json.dumps(body.model_dump(mode="json"), sort_keys=True)
    saved = await state.posts.create(
        caller.tenant,
        body.to_input(),
        actor=caller.name,
        request_key=idempotency_key,
        request_digest=sha256(canonical.encode()).hexdigest() if idempotency_key else None,
    )
    if not saved.created:
        response.status_code = 200
    response.headers["Location"] = f"/api/v1/posts/{saved.post.id}"
    return await shown(state, saved)


@router.post("/posts/check", response_model=CheckOut)
async def check_input(body: NewPostIn, caller: KnownCaller, state: State) -> CheckOut:
    """What would be wrong with this post, and how it reads. Nothing is stored."""
    checked, rules = await state.posts.check(caller.tenant, body.to_input())
    text = visible_text(body.text)
    fold = rules.fold_after
    preview = PostPreview(
        text=text,
        visible=text if fold is None else text[:fold],
        folded=fold is not None and len(text) > fold,
        scheduled_at=checked.scheduled_at,
        note=checked.note,
    )
    return CheckOut(
        problems=problem_items(checked.problems),
        length=len(text),
        max_length=rules.max_text,
        fold_at=fold,
        preview=preview,
    )


@router.post("/posts/import", response_model=ImportOut)
async def import_posts(
    request: Request, caller: KnownCaller, state: State, dry_run: bool = False, partial: bool = False
) -> ImportOut:
    """Posts from a CSV file (text/csv): all or none, unless `partial`."""
    try:
        text = (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidPost(
            [Problem("body", "is not UTF-8: export the file as CSV UTF-8", "csv_invalid")]
        ) from None
    rows, created = await import_csv(
        state.posts, caller.tenant, text, actor=caller.name, dry_run=dry_run, partial=partial
    )
    shown_rows = [
        ImportRowOut(line=row.line, ok=row.ok, post_id=row.post_id, problems=problem_items(row.problems))
        for row in rows
    ]
    return ImportOut(rows=shown_rows, created=created)


@router.get("/posts", response_model=PostPage)
async def list_posts(
    caller: KnownCaller,
    state: State,
    states: Annotated[list[PostState], Query(alias="state")] = [],  # noqa: B006  # FastAPI copies it
    account: str | None = None,
    platform: str | None = None,
    since: Annotated[datetime | None, Query(alias="from")] = None,
    until: Annotated[datetime | None, Query(alias="to")] = None,
    q: Annotated[str | None, Query(max_length=MAX_SEARCH)] = None,
    label: str | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> PostPage:
    """Latest first. `state` may be repeated; `q` searches the text."""
    _require_offset("from", since)
    _require_offset("to", until)
    wanted = PostFilter(tuple(states), account, platform, since, until, q, label)
    async with state.momentum.database.reading() as connection:
        page = await listing(connection, caller.tenant, wanted, cursor, limit)
        return PostPage(items=await show_posts(connection, caller.tenant, page.items), next=page.next)


@router.get("/posts/{post_id}", response_model=PostOut)
async def get_post(post_id: str, caller: KnownCaller, state: State) -> PostOut:
    async with state.momentum.database.reading() as connection:
        return await shown(state, Saved(await posts.get(connection, caller.tenant, post_id)))


@router.patch("/posts/{post_id}", response_model=PostOut)
async def edit_post(post_id: str, body: PostPatchIn, caller: KnownCaller, state: State) -> PostOut:
    """Change the given fields. `version` is the one that the caller has seen."""
    saved = await state.posts.edit(
        caller.tenant, post_id, _changes(body), version=body.version, actor=caller.name
    )
    return await shown(state, saved)


def _changes(body: PostPatchIn) -> dict[str, Any]:
    """Only what was given: `article: null` removes the article, no `article` keeps it."""
    given: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set - {"version"}}
    for name in ("account_id", "text", "media", "visibility", "labels", "zone"):
        if name in given and given[name] is None:
            raise InvalidPost([Problem(name, "must not be null: leave it out to keep it", "null")])
    if "media" in given:
        given["media"] = tuple(MediaUse(**use.model_dump()) for use in given["media"])
    if isinstance(given.get("article"), ArticleIn):
        given["article"] = Article(**given["article"].model_dump())
    if "labels" in given:
        given["labels"] = tuple(given["labels"])
    return given


@router.delete("/posts/{post_id}", status_code=204)
async def delete_post(post_id: str, caller: KnownCaller, state: State) -> None:
    """A draft, a cancelled or a failed post."""
    await state.posts.delete(caller.tenant, post_id)


@router.post("/posts/{post_id}/schedule", response_model=PostOut)
async def schedule_post(post_id: str, body: ScheduleIn, caller: KnownCaller, state: State) -> PostOut:
    """Plan it, or move it to another time."""
    when: dict[str, Any] = {"scheduled_at": body.scheduled_at, "local_time": body.local_time}
    if body.zone is not None:
        when["zone"] = body.zone
    saved = await state.posts.schedule(caller.tenant, post_id, when, version=body.version, actor=caller.name)
    return await shown(state, saved)


@router.post("/posts/{post_id}/unschedule", response_model=PostOut)
async def unschedule_post(
    post_id: str, caller: KnownCaller, state: State, body: VersionIn = NO_VERSION
) -> PostOut:
    """A planned post becomes a draft."""
    saved = await state.posts.unschedule(caller.tenant, post_id, version=body.version, actor=caller.name)
    return await shown(state, saved)


@router.post("/posts/{post_id}/cancel", response_model=PostOut)
async def cancel_post(
    post_id: str, caller: KnownCaller, state: State, body: VersionIn = NO_VERSION
) -> PostOut:
    """It is not published; a failed post leaves the inbox."""
    saved = await state.posts.cancel(caller.tenant, post_id, version=body.version, actor=caller.name)
    return await shown(state, saved)


@router.post("/posts/{post_id}/duplicate", status_code=201, response_model=PostOut)
async def duplicate_post(post_id: str, caller: KnownCaller, state: State) -> PostOut:
    """A draft with the same content."""
    return await shown(state, await state.posts.duplicate(caller.tenant, post_id, actor=caller.name))


@router.post("/posts/{post_id}/publish", response_model=PostOut)
async def publish_post(
    post_id: str, caller: KnownCaller, state: State, body: VersionIn = NO_VERSION
) -> PostOut:
    """Plan it for now: a worker publishes it."""
    saved = await state.posts.publish_now(caller.tenant, post_id, version=body.version, actor=caller.name)
    return await shown(state, saved)


@router.post("/posts/{post_id}/resolve", response_model=PostOut)
async def resolve_post(post_id: str, body: ResolveIn, caller: KnownCaller, state: State) -> PostOut:
    """Decide about a post in doubt."""
    saved = await state.posts.resolve(
        caller.tenant,
        post_id,
        published=body.decision == "published",
        then=body.then,
        url=body.url,
        actor=caller.name,
    )
    return await shown(state, saved)


@router.post("/posts/{post_id}/check", status_code=202, response_model=PostOut)
async def look_up_post(post_id: str, caller: KnownCaller, state: State) -> PostOut:
    """Have a worker find out now whether a post in doubt was published."""
    return await shown(state, await state.posts.look_up(caller.tenant, post_id, actor=caller.name))


@router.get("/posts/{post_id}/timeline", response_model=TimelineOut)
async def get_timeline(post_id: str, caller: KnownCaller, state: State) -> TimelineOut:
    """What happened to the post and each attempt to publish it, oldest first."""
    async with state.momentum.database.reading() as connection:
        post = await posts.get(connection, caller.tenant, post_id)
        happened = [show_event(one) for one in await events.of_post(connection, post.id)]
        tried = [show_attempt(one) for one in await attempts.of_post(connection, post.id)]
    return TimelineOut(items=sorted(happened + tried, key=lambda item: item.at))


def _require_offset(field: str, instant: datetime | None) -> None:
    if instant is not None and instant.tzinfo is None:
        raise InvalidPost([Problem(field, "has no offset: write it with Z or +01:00", "time_invalid")])
