"""Another tenant's ids answer 404 on every route. The routes come from the OpenAPI document, so that a new one
is covered, or this test fails."""

from __future__ import annotations

import re
from typing import Any

from tests.momentum.api.scene import Client, soon
from tests.momentum.media import samples

# Bodies that the routes accept, so that the id is what is refused.
BODIES: dict[str, Any] = {
    "PATCH /posts/{post_id}": {"version": 1, "text": "changed"},
    "POST /posts/{post_id}/schedule": {"scheduled_at": soon(86_400)},
    "POST /posts/{post_id}/resolve": {"decision": "published"},
    "PATCH /accounts/{account_id}": {"probe": True},
}
NOT_OF_A_TENANT = {"name"}  # of a platform


async def test_ids_of_another_tenant_answer_404_on_every_route(client: Client, other_client: Client) -> None:
    account = await client.stored_account()
    media = await client.upload(samples.image())
    body = {"account_id": account.id, "text": "mine", "scheduled_at": soon(86_400)}
    post = await client.post("/posts", body, 201)
    ids = {"post_id": post["id"], "account_id": account.id, "media_id": media["id"]}
    document = await client.get("/openapi.json")
    tried = []
    for path, operations in document["paths"].items():
        names = set(re.findall(r"{(\w+)}", path)) - NOT_OF_A_TENANT
        if not names:
            continue
        assert names <= ids.keys(), f"{path}: this test needs an id for {names}"
        route = path.removeprefix("/api/v1")
        for method in operations:
            name = f"{method.upper()} {route}"
            answer = await other_client.call(
                method.upper(), route.format(**ids), 404, json=BODIES.get(name, {})
            )
            missing = await other_client.call(
                method.upper(),
                route.format(**dict.fromkeys(ids, "nothing_1")),
                404,
                json=BODIES.get(name, {}),
            )
            assert answer["code"] == missing["code"] == "not_found", name
            tried.append(name)
    assert len(tried) >= 17, tried
    assert await client.get(f"/posts/{post['id']}") == post  # and nothing has changed


async def test_lists_show_nothing_of_another_tenant(client: Client, other_client: Client) -> None:
    account = await client.stored_account()
    await client.upload(samples.image())
    body = {"account_id": account.id, "text": "mine", "scheduled_at": soon(3_600)}
    await client.post("/posts", body, 201)
    assert (await other_client.get("/posts"))["items"] == []
    assert (await other_client.get("/posts", account=account.id))["items"] == []
    assert (await other_client.get("/accounts"))["items"] == []
    assert (await other_client.get("/log"))["items"] == []
    span = {"from": soon(0)[:10], "to": soon(86_400)[:10]}
    days = (await other_client.call("GET", "/calendar", params=span))["days"]
    assert [day["count"] for day in days] == [0, 0]


async def test_ids_of_another_tenant_in_a_body_are_unknown(client: Client, other_client: Client) -> None:
    account, theirs = await client.stored_account(), await other_client.stored_account()
    media = await client.upload(samples.image())
    refused = await other_client.post("/posts", {"account_id": account.id, "text": "x"}, 422)
    assert [(one["field"], one["code"]) for one in refused["problems"]] == [("account_id", "account_unknown")]
    body = {"account_id": theirs.id, "text": "x", "media": [{"media_id": media["id"]}]}
    refused = await other_client.post("/posts", body, 422)
    assert [(one["field"], one["code"]) for one in refused["problems"]] == [
        ("media[0].media_id", "media_unknown")
    ]
