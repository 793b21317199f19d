"""Posts over HTTP: what may be saved, versions, states, idempotency."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest
from sqlalchemy import select

from momentum.database import media, tables
from momentum.ids import new_id
from momentum.model import Media, MediaKind
from tests.momentum.api.scene import Client, soon
from tests.momentum.media import samples
from tests.momentum.samples import utc_now

DAY = 86_400
MB = 1024 * 1024


async def new_post(client: Client, **changes: Any) -> Any:
    account = changes.pop("account_id", None) or (await client.stored_account()).id
    return await client.post("/posts", {"account_id": account, "text": "Hello", **changes}, 201)


async def stored_media(client: Client, **changes: Any) -> str:
    """A row without its bytes: for limits that real files would reach slowly."""
    values: dict[str, Any] = {"kind": MediaKind.IMAGE, "type": "image/png", "size": 1_000}
    values |= {"name": "file", "digest": "", "created_at": utc_now(), **changes}
    item = Media(id=new_id("media"), tenant=client.tenant, **values)
    async with client.service.momentum.database.transaction() as connection:
        await media.insert(connection, item)
    return item.id


async def refused(client: Client, **fields: Any) -> list[tuple[str, str]]:
    account = await client.stored_account()
    body = {"account_id": account.id, "text": "Hello", "scheduled_at": soon(DAY), **fields}
    answer = await client.post("/posts", body, 422)
    assert answer["type"] == f"urn:momentum:problem:{answer['code']}"
    assert (await client.get("/posts"))["items"] == []
    return [(one["field"], one["code"]) for one in answer["problems"]]


async def test_draft_needs_nothing_and_planned_post_needs_content(client: Client) -> None:
    assert (await new_post(client, text=""))["state"] == "draft"
    account = await client.stored_account()
    body = {"account_id": account.id, "text": " \n", "scheduled_at": soon(DAY)}
    answer = await client.post("/posts", body, 422)
    assert [(one["field"], one["code"]) for one in answer["problems"]] == [("text", "text_missing")]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"text": "x" * 3_001}, [("text", "text_too_long")]),
        ({"visibility": "FRIENDS"}, [("visibility", "visibility_unknown")]),
        ({"scheduled_at": "2020-01-01T00:00:00Z"}, [("scheduled_at", "time_past")]),
        ({"scheduled_at": "2099-01-01T00:00:00Z"}, [("scheduled_at", "time_too_far")]),
        ({"scheduled_at": "2030-01-01T00:00:00"}, [("scheduled_at", "time_invalid")]),
        ({"zone": "Europe/Berlim"}, [("zone", "zone_unknown")]),
        ({"scheduled_at": None, "local_time": "2030-01-01T09:00"}, [("zone", "zone_missing")]),
        (
            {"scheduled_at": None, "local_time": "tomorrow", "zone": "Europe/Berlin"},
            [("local_time", "time_invalid")],
        ),
        ({"local_time": "2030-01-01T09:00", "zone": "UTC"}, [("scheduled_at", "time_ambiguous")]),
        ({"labels": ["ok", "x" * 61]}, [("labels[1]", "label_invalid")]),
        ({"article": {"url": "ftp://x", "title": "T"}}, [("article.url", "url_invalid")]),
        ({"article": {"url": "https://example.org/a"}}, [("article.title", "title_missing")]),
        ({"media": [{"media_id": "media_1"}]}, [("media[0].media_id", "media_unknown")]),
        ({"mediaa": []}, [("mediaa", "extra_forbidden")]),
        ({"account_id": "acc_1"}, [("account_id", "account_unknown")]),
        ({"text": "a\0b"}, [("text", "text_invalid")]),
        (
            {"text": "x" * 3_001, "visibility": "FRIENDS", "zone": "Nowhere"},
            [("zone", "zone_unknown"), ("text", "text_too_long"), ("visibility", "visibility_unknown")],
        ),
    ],
)
async def test_field_that_cannot_be_published_is_named(
    client: Client, fields: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert await refused(client, **fields) == expected


VIDEO = {
    "kind": MediaKind.VIDEO,
    "type": "video/mp4",
    "size": MB,
    "seconds": 10.0,
    "width": 640,
    "height": 360,
}
DOCUMENT = {"kind": MediaKind.DOCUMENT, "type": "application/pdf", "size": MB, "pages": 3}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([{"size": 5 * MB + 1}], [("media[0]", "media_too_large")]),
        ([{"type": "image/webp"}], [("media[0]", "media_type")]),
        ([{"width": 7_000, "height": 6_000}], [("media[0]", "media_too_many_pixels")]),
        ([{}] * 21, [("media", "media_too_many")]),
        ([{**DOCUMENT, "pages": 301}], [("media[0]", "media_too_many_pages")]),
        ([{**DOCUMENT, "size": 100 * MB + 1}], [("media[0]", "media_too_large")]),
        ([DOCUMENT, DOCUMENT], [("media", "media_too_many")]),
        ([{**VIDEO, "seconds": 2.9}], [("media[0]", "media_too_short")]),
        ([{**VIDEO, "seconds": 1_801.0}], [("media[0]", "media_too_long")]),
        ([{**VIDEO, "size": 70 * 1024}], [("media[0]", "media_too_small")]),
        ([{**VIDEO, "type": "video/quicktime"}], [("media[0]", "media_type")]),
        ([{**VIDEO, "width": 2_500, "height": 1_000}], [("media[0]", "video_aspect")]),
        ([{}, VIDEO], [("media", "media_mixed")]),
    ],
)
async def test_every_limit_of_files_is_checked_when_saved(
    client: Client, files: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    uses = [{"media_id": await stored_media(client, **each)} for each in files]
    assert await refused(client, media=uses) == expected


async def test_file_twice_and_thumbnail_that_is_no_image_are_refused(client: Client) -> None:
    picture, document = await stored_media(client), await stored_media(client, **DOCUMENT)
    twice = [{"media_id": picture}, {"media_id": picture}]
    assert await refused(client, media=twice) == [("media", "media_repeated")]
    article = {"url": "https://example.org", "title": "T", "thumbnail": document}
    assert await refused(client, article=article) == [("article.thumbnail", "thumbnail_invalid")]
    article["thumbnail"] = picture
    assert (await new_post(client, article=article))["article"]["thumbnail"] == picture


async def test_text_of_the_longest_length_with_mentions_is_accepted(client: Client) -> None:
    """A mention counts as the name that readers see."""
    text = "@[Northwind](urn:li:organization:5001)" + "é" * 2_991
    assert (await new_post(client, text=text, scheduled_at=soon(DAY)))["text"] == text
    checked = await client.post(
        "/posts/check", {"account_id": (await client.stored_account()).id, "text": text + "!" * 5}
    )
    assert (checked["length"], checked["max_length"], checked["fold_at"]) == (3_005, 3_000, 210)
    assert [one["code"] for one in checked["problems"]] == ["text_too_long"]
    assert checked["preview"]["visible"].startswith("Northwindé")


async def test_repeat_with_the_same_key_gets_the_same_post(client: Client) -> None:
    account = await client.stored_account()
    body = {"account_id": account.id, "text": "once", "scheduled_at": soon(DAY)}
    headers = {"Idempotency-Key": "first"}
    first = await client.post("/posts", body, 201, headers=headers)
    again = await client.post("/posts", body, 200, headers=headers)
    assert again["id"] == first["id"]
    answer = await client.post("/posts", {**body, "text": "other"}, 409, headers=headers)
    assert "Idempotency-Key" in answer["detail"]
    assert len((await client.get("/posts"))["items"]) == 1


async def test_simultaneous_repeats_make_one_post(client: Client) -> None:
    account = await client.stored_account()
    body = {"account_id": account.id, "text": "once", "scheduled_at": soon(DAY)}
    address = f"{client.service.address}/api/v1/posts"

    async def send() -> tuple[int, str]:
        async with client.http.post(address, json=body, headers={"Idempotency-Key": "k"}) as response:
            return response.status, (await response.json())["id"]

    answers = await asyncio.gather(*(send() for _ in range(8)))
    assert sorted(status for status, _ in answers) == [200] * 7 + [201]
    assert len({post_id for _, post_id in answers}) == 1


async def test_edit_raises_the_version_and_replaces_the_job(client: Client) -> None:
    post = await new_post(client, scheduled_at=soon(DAY), labels=["a"])
    edited = await client.call("PATCH", f"/posts/{post['id']}", json={"version": 1, "text": "Better"})
    assert (edited["version"], edited["text"], edited["state"]) == (2, "Better", "scheduled")
    assert edited["scheduled_at"] == post["scheduled_at"]
    assert edited["labels"] == ["a"]
    assert edited["job_id"] not in (None, post["job_id"])
    old = await client.service.momentum.app.jobs.get(post["job_id"])
    assert old.state == "cancelled"
    stale = await client.call("PATCH", f"/posts/{post['id']}", 409, json={"version": 1, "text": "Lost"})
    assert "version" in stale["detail"]
    draft = await client.call("PATCH", f"/posts/{post['id']}", json={"version": 2, "scheduled_at": None})
    assert (draft["state"], draft["scheduled_at"], draft["job_id"]) == ("draft", None, None)


async def test_edit_is_checked_as_a_whole(client: Client) -> None:
    post = await new_post(client, scheduled_at=soon(DAY))
    path = f"/posts/{post['id']}"
    answer = await client.call("PATCH", path, 422, json={"version": 1, "text": ""})
    assert [one["code"] for one in answer["problems"]] == ["text_missing"]
    answer = await client.call("PATCH", path, 422, json={"version": 1, "media": None})
    assert [one["field"] for one in answer["problems"]] == ["media"]
    assert (await client.get(path))["version"] == 1


async def test_states_and_what_may_follow(client: Client) -> None:
    post = await new_post(client)
    path = f"/posts/{post['id']}"
    planned = await client.post(f"{path}/schedule", {"scheduled_at": soon(DAY), "version": 1})
    assert planned["state"] == "scheduled"
    await client.post(f"{path}/schedule", {"scheduled_at": soon(DAY), "version": 1}, 409)
    await client.call("DELETE", path, 409)
    draft = await client.post(f"{path}/unschedule", {})
    assert (draft["state"], draft["scheduled_at"]) == ("draft", None)
    await client.post(f"{path}/unschedule", {}, 409)
    copy = await client.post(f"{path}/duplicate", None, 201)
    assert (copy["state"], copy["text"]) == ("draft", post["text"])
    assert (await client.post(f"{path}/cancel", {}))["state"] == "cancelled"
    assert (await client.post(f"{path}/cancel", {}))["state"] == "cancelled"
    await client.call("DELETE", path, 204)
    await client.get(path, 404)
    assert (await client.get(f"/posts/{copy['id']}"))["id"] == copy["id"]


async def test_schedule_without_a_time_is_refused(client: Client) -> None:
    post = await new_post(client)
    answer = await client.post(f"/posts/{post['id']}/schedule", {"zone": "UTC"}, 422)
    assert [one["field"] for one in answer["problems"]] == ["scheduled_at"]


async def test_local_times_of_clock_changes_are_shown(client: Client) -> None:
    account = (await client.stored_account()).id
    usual = await new_post(client, account_id=account, local_time="2027-01-15T09:00", zone="Europe/Berlin")
    assert (usual["scheduled_at"], usual["note"]) == ("2027-01-15T08:00:00.000Z", None)
    assert usual["local_time"] == "2027-01-15T09:00"
    skipped = await new_post(client, account_id=account, local_time="2027-03-28T02:30", zone="Europe/Berlin")
    assert skipped["scheduled_at"] == "2027-03-28T01:00:00.000Z"
    assert (skipped["local_time"], "skips 02:30" in skipped["note"]) == ("2027-03-28T03:00", True)
    twice = await new_post(client, account_id=account, local_time="2027-10-31T02:30", zone="Europe/Berlin")
    assert twice["scheduled_at"] == "2027-10-31T00:30:00.000Z"
    assert "twice" in twice["note"]


async def test_post_and_job_are_stored_together_or_not_at_all(client: Client) -> None:
    """A refused post leaves no job behind."""
    app = client.service.momentum.app
    before = [job.id for job in await app.jobs(queue="linkedin", limit=500)]
    await refused(client, text="x" * 3_001)
    assert [job.id for job in await app.jobs(queue="linkedin", limit=500)] == before


async def test_deleted_post_stays_in_the_execution_log(client: Client) -> None:
    post = await new_post(client)
    async with client.service.momentum.database.transaction() as connection:
        row = {
            "id": new_id("att"),
            "tenant": client.tenant,
            "post_id": post["id"],
            "number": 1,
            "version": 1,
            "digest": "",
            "scheduled_at": utc_now(),
            "started_at": utc_now(),
            "outcome": "failed",
            "error": "=HYPERLINK(1)",
            "worker": "w",
        }
        await connection.execute(tables.attempts.insert().values(row))
    await client.call("DELETE", f"/posts/{post['id']}", 204)
    assert [one["post_id"] for one in (await client.get("/log"))["items"]] == [post["id"]]
    async with client.service.momentum.database.reading() as connection:
        query = select(tables.events.c.id).where(tables.events.c.post_id == post["id"])
        assert (await connection.execute(query)).all() == []
    text = await client.get("/log.csv")
    header, line = text.strip().splitlines()
    assert header.startswith("post_id,account_id,number,scheduled_at,started_at")
    assert "'=HYPERLINK(1)" in line


async def test_large_body_is_refused(client: Client) -> None:
    body = io.BytesIO(json.dumps({"account_id": "a", "text": "x" * (1 << 20)}).encode())
    json_type = {"content-type": "application/json"}
    answer = await client.call("POST", "/posts", 413, data=body, headers=json_type)
    assert answer["code"] == "body_too_large"


async def test_picture_of_a_planned_post_cannot_be_deleted(client: Client) -> None:
    item = await client.upload(samples.image())
    post = await new_post(client, media=[{"media_id": item["id"]}], scheduled_at=soon(DAY))
    answer = await client.call("DELETE", f"/media/{item['id']}", 409)
    assert post["id"] in answer["detail"]
    await client.post(f"/posts/{post['id']}/cancel", {})
    await client.call("DELETE", f"/media/{item['id']}", 204)
    await client.get(f"/media/{item['id']}", 404)
