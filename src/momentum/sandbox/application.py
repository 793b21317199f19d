"""The routes of the sandbox."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from momentum.sandbox.admin import Admin
from momentum.sandbox.faults import Faults
from momentum.sandbox.feed import Feed
from momentum.sandbox.gateway import Gateway
from momentum.sandbox.media import Media
from momentum.sandbox.members import Members
from momentum.sandbox.oauth import OAuth
from momentum.sandbox.posts import Posts
from momentum.sandbox.state import State


def make_application(folder: Path) -> web.Application:
    state, faults = State(folder), Faults()
    gateway = Gateway(state, faults)
    media = Media(gateway)
    application = web.Application()
    application.add_routes(_web_routes(gateway, OAuth(state)))
    application.add_routes(_api_routes(gateway, Members(state), media, Posts(state, media)))
    application.add_routes(_feed_routes(Feed(state, media)))
    application.add_routes(_admin_routes(Admin(state, faults)))

    async def close(_: web.Application) -> None:
        state.close()

    application.on_cleanup.append(close)
    return application


def _web_routes(gateway: Gateway, oauth: OAuth) -> list[web.RouteDef]:
    return [
        *(
            route
            for path in ("/oauth/v2/authorization", "/oauth/native-pkce/authorization")
            for route in (web.get(path, oauth.consent), web.post(path, oauth.decide))
        ),
        web.post("/oauth/v2/accessToken", gateway.open("oauth.token", oauth.token)),
        web.post("/oauth/v2/revoke", gateway.open("oauth.revoke", oauth.revoke)),
    ]


def _api_routes(gateway: Gateway, members: Members, media: Media, posts: Posts) -> list[web.RouteDef]:
    api = gateway.api
    routes = [
        web.get("/v2/userinfo", api("userinfo", members.userinfo, versioned=False)),
        web.get("/rest/organizationAcls", api("organizations.roles", members.roles)),
        web.get("/rest/organizations/{id}", api("organizations.get", members.organization)),
        web.post("/rest/posts", api("posts.create", posts.create)),
        web.get("/rest/posts", api("posts.find", posts.find)),
        web.get("/rest/posts/{urn}", api("posts.get", posts.look_up)),
        web.delete("/rest/posts/{urn}", api("posts.delete", posts.delete)),
        web.put("/dms-uploads/{asset}/{number}", gateway.open("upload", media.receive)),
    ]
    for kind in ("images", "documents", "videos"):
        pattern = f"{{kind:{kind}}}"
        routes.append(web.post(f"/rest/{pattern}", api(f"{kind}.begin", media.begin)))
        routes.append(web.get(f"/rest/{pattern}/{{urn}}", api(f"{kind}.get", media.look_up)))
    return routes


def _feed_routes(feed: Feed) -> list[web.RouteDef]:
    return [
        web.get("/", feed.home),
        web.get("/feed", feed.page),
        web.get("/feed/", feed.page),
        web.get("/feed/update/{urn}/", feed.one),
        web.get("/files/{urn}", feed.file),
        web.get("/pictures/{member}.svg", feed.picture),
    ]


def _admin_routes(admin: Admin) -> list[web.RouteDef]:
    return [
        web.get("/sandbox/posts", admin.posts),
        web.get("/sandbox/assets", admin.assets),
        web.get("/sandbox/usage", admin.usage),
        web.get("/sandbox/faults", admin.scripted),
        web.post("/sandbox/faults", admin.script),
        web.delete("/sandbox/faults", admin.unscript),
        web.post("/sandbox/settings", admin.settings),
        web.post("/sandbox/tokens", admin.token),
        web.post("/sandbox/reset", admin.reset),
    ]
