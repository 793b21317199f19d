"""Members and the organizations that they manage."""

from __future__ import annotations

from aiohttp import web

from momentum.sandbox import answers
from momentum.sandbox.gateway import Caller
from momentum.sandbox.state import State


class Members:
    def __init__(self, state: State) -> None:
        self._state = state

    async def userinfo(self, request: web.Request, caller: Caller) -> web.Response:
        caller.require("openid")
        name, _ = self._state.author_name(caller.urn)
        given, _, family = name.partition(" ")
        picture = f"{request.url.origin()}/pictures/{caller.member}.svg"
        person = {"sub": caller.member, "name": name, "given_name": given, "family_name": family}
        return web.json_response(
            {**person, "picture": picture, "locale": {"country": "US", "language": "en"}}
        )

    async def roles(self, request: web.Request, caller: Caller) -> web.Response:
        caller.require("rw_organization_admin")
        if request.query.get("q") != "roleAssignee":
            raise answers.bad_request("ILLEGAL_ARGUMENT", "The finder must be roleAssignee")
        start, count = int(request.query.get("start", 0)), int(request.query.get("count", 10))
        rows = self._state.all(
            "SELECT * FROM roles WHERE member = ? ORDER BY organization LIMIT ? OFFSET ?",
            caller.member,
            count,
            start,
        )
        elements = [
            {
                "organization": f"urn:li:organization:{row['organization']}",
                "role": row["role"],
                "roleAssignee": caller.urn,
                "state": "APPROVED",
            }
            for row in rows
        ]
        paging = {"start": start, "count": count, "links": []}
        return web.json_response({"elements": elements, "paging": paging})

    async def organization(self, request: web.Request, caller: Caller) -> web.Response:
        caller.require("rw_organization_admin")
        row = self._state.one("SELECT * FROM organizations WHERE id = ?", request.match_info["id"])
        if row is None:
            raise answers.not_found("Organization")
        fields = {"localizedName": row["name"], "vanityName": row["vanity_name"]}
        return web.json_response({"id": int(row["id"]), **fields})


def manages(state: State, caller: Caller, organization: str) -> bool:
    return (
        state.one(
            "SELECT 1 FROM roles WHERE member = ? AND organization = ?",
            caller.member,
            organization.rsplit(":", 1)[-1],
        )
        is not None
    )


def check_may_write(state: State, caller: Caller, author: str) -> None:
    """Whether the token may post, or upload a file, in the name of this author."""
    if author.startswith("urn:li:organization:"):
        caller.require("w_organization_social")
        if not manages(state, caller, author):
            raise answers.forbidden()
    elif author.startswith("urn:li:person:"):
        caller.require("w_member_social")
        if author != caller.urn:
            raise answers.forbidden()
    else:
        raise answers.bad_request("INVALID_URN_TYPE", f"{author} is not a person or an organization")
