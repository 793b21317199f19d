"""The whole way: connect an account, upload a picture, schedule a post, and see it published."""

from __future__ import annotations

import asyncio
import json

from tests.momentum.api.scene import API, Client, soon
from tests.momentum.media import samples
from tests.momentum.platforms.fixtures import Sandbox


async def test_connected_uploaded_scheduled_post_is_published(client: Client, sandbox: Sandbox) -> None:
    member, company = await client.connect()
    assert (member["author"]["kind"], company["author"]["kind"]) == ("member", "organization")
    assert member["state"] == "active"
    assert member["usage"]["limit"] == 150
    picture = await client.upload(samples.image("PNG", 400, 300), "chart.png")
    assert (picture["kind"], picture["width"], picture["height"]) == ("image", 400, 300)

    changes: list[dict[str, object]] = []
    async with client.http.get(f"{client.service.address}{API}/events") as stream:
        assert stream.content_type == "text/event-stream"
        assert await stream.content.readline() == b"retry: 2000\n"
        text = "Numbers of the week (all of them) #growth \\ {ok} <b> *a* _b_ ~c~ | @you"
        created = await client.post(
            "/posts",
            {
                "account_id": member["id"],
                "text": text,
                "media": [{"media_id": picture["id"], "alt_text": "A chart"}],
                "scheduled_at": soon(1.5),
                "zone": "Europe/Berlin",
                "labels": ["weekly"],
            },
            201,
        )
        assert created["state"] == "scheduled"
        assert created["job_id"]
        async with asyncio.timeout(60):
            while not changes or changes[-1]["state"] != "published":
                line = await stream.content.readline()
                if line.startswith(b"data: "):
                    changes.append(json.loads(line[6:]))
    assert {change["id"] for change in changes} == {created["id"]}

    post = await client.get(f"/posts/{created['id']}")
    assert post["published_at"] >= post["scheduled_at"]
    assert post["url"]
    assert post["platform_id"].startswith("urn:li:")
    assert 0 <= post["lateness_ms"] < 5_000
    assert post["attempts"] == 1
    (published,) = [one for one in await sandbox.posts() if one["id"] == post["platform_id"]]
    assert published["text"] == text

    timeline = (await client.get(f"/posts/{post['id']}/timeline"))["items"]
    assert timeline[0]["kind"] == "created"
    assert [item["outcome"] for item in timeline if item["type"] == "attempt"] == ["published"]
    (line,) = (await client.get("/log", post=post["id"]))["items"]
    assert (line["outcome"], line["account_id"], line["number"]) == ("published", member["id"], 1)
    counts = (await client.get("/status"))["counts"]
    assert counts == {"drafts": 0, "scheduled": 0, "inbox": 0, "failed": 0}


async def test_publish_now_answers_before_it_is_published(client: Client, sandbox: Sandbox) -> None:
    """Nothing is published inside a request: the platform is slow, the answer is not."""
    member, _ = await client.connect()
    await sandbox.faults("slow", seconds=1.0)
    draft = await client.post("/posts", {"account_id": member["id"], "text": "now, please"}, 201)
    assert draft["state"] == "draft"
    assert await sandbox.posts() == []
    answered = await client.post(f"/posts/{draft['id']}/publish", {"version": draft["version"]})
    assert answered["state"] == "scheduled"
    assert await sandbox.posts() == []
    await client.until(draft["id"], "published")
    assert [one["text"] for one in await sandbox.posts()] == ["now, please"]


async def test_post_in_doubt_waits_in_the_inbox_for_a_decision(client: Client, sandbox: Sandbox) -> None:
    member, _ = await client.connect()
    await sandbox.faults("reset_after")
    post = await client.post(
        "/posts", {"account_id": member["id"], "text": "in doubt", "scheduled_at": soon(0.2)}, 201
    )
    await client.until(post["id"], "unknown")
    (item,) = (await client.get("/inbox"))["items"]
    assert (item["kind"], item["post"]["id"]) == ("unknown", post["id"])
    await client.post(f"/posts/{post['id']}/publish", {}, 409)  # never blindly again
    await client.post(f"/posts/{post['id']}/check", {}, 202)
    link = {"decision": "published", "url": "javascript:alert(1)"}
    await client.post(f"/posts/{post['id']}/resolve", link, 422)
    decided = await client.post(
        f"/posts/{post['id']}/resolve", {"decision": "published", "url": "https://example.org/p/1"}
    )
    assert (decided["state"], decided["url"]) == ("published", "https://example.org/p/1")
    assert (await client.get("/inbox"))["items"] == []
    await client.post(f"/posts/{post['id']}/resolve", {"decision": "published"}, 409)
