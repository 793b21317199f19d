"""The tests' side of the sandbox, below `/sandbox`: what was published, scripted faults, settings, tokens."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from momentum.sandbox.faults import Fault, Faults
from momentum.sandbox.gateway import body_of
from momentum.sandbox.little_text import read
from momentum.sandbox.state import State

MEMBER_SCOPES = "openid profile w_member_social"
ORGANIZATION_SCOPES = "r_organization_social rw_organization_admin w_organization_social"


class Admin:
    def __init__(self, state: State, faults: Faults) -> None:
        self._state, self._faults = state, faults

    async def posts(self, request: web.Request) -> web.Response:
        """All posts, oldest first."""
        rows = self._state.all("SELECT * FROM posts ORDER BY created_at, urn")
        return web.json_response({"posts": [_post(row) for row in rows]})

    async def assets(self, request: web.Request) -> web.Response:
        """All assets, oldest first, with how often each part arrived."""
        assets = []
        for row in self._state.all("SELECT * FROM assets ORDER BY created_at"):
            parts = self._state.all("SELECT * FROM parts WHERE urn = ? ORDER BY number", row["urn"])
            assets.append({**dict(row), "parts": [dict(part) for part in parts]})
        return web.json_response({"assets": assets})

    async def usage(self, request: web.Request) -> web.Response:
        rows = self._state.all("SELECT * FROM usage ORDER BY day, who")
        return web.json_response({"usage": [dict(row) for row in rows]})

    async def script(self, request: web.Request) -> web.Response:
        """Add a fault: the fields of `Fault`."""
        body = await body_of(request)
        unknown = sorted(set(body) - {field.name for field in fields(Fault)})
        if unknown:
            raise web.HTTPUnprocessableEntity(text=f"unknown fields: {', '.join(unknown)}")
        try:
            self._faults.scripted.append(Fault(**body))
        except ValueError as error:
            raise web.HTTPUnprocessableEntity(text=str(error)) from error
        return await self.scripted(request)

    async def scripted(self, request: web.Request) -> web.Response:
        return web.json_response({"faults": [asdict(fault) for fault in self._faults.scripted]})

    async def unscript(self, request: web.Request) -> web.Response:
        self._faults.scripted.clear()
        return web.Response(status=204)

    async def settings(self, request: web.Request) -> web.Response:
        try:
            return web.json_response(self._state.change_settings(await body_of(request)))
        except ValueError as error:
            raise web.HTTPUnprocessableEntity(text=str(error)) from error

    async def token(self, request: web.Request) -> web.Response:
        """A token without the consent page. Fields: `member` (id), `name`, `scopes`, and `organization` (id)
        that the member manages; what does not exist is created."""
        body = await body_of(request)
        member, organization = str(body["member"]), body.get("organization")
        self._state.add_member(member, body.get("name") or f"Member {member}", "Demo member")
        if organization is not None:
            name = f"Organization {organization}"
            self._state.add_organization(str(organization), name, f"organization-{organization}", member)
        scopes = f"{MEMBER_SCOPES} {ORGANIZATION_SCOPES}" if organization is not None else MEMBER_SCOPES
        row = self._state.add_token(member, body.get("scopes") or scopes)
        urn = f"urn:li:person:{member}" if organization is None else f"urn:li:organization:{organization}"
        name, _ = self._state.author_name(urn)
        answer = {"token": row["token"], "scopes": row["scopes"].split(), "author": urn, "name": name}
        return web.json_response(answer)

    async def reset(self, request: web.Request) -> web.Response:
        self._state.reset()
        self._faults.scripted.clear()
        return web.Response(status=204)


def _post(row: sqlite3.Row) -> dict[str, Any]:
    reading, body = read(row["commentary"]), json.loads(row["body"])
    return {
        "id": row["urn"],
        "author": row["author"],
        "text": reading.text,  # as readers see it
        "typed": reading.typed,  # the same, with mentions in full
        "truncated": reading.truncated,
        "commentary": row["commentary"],
        "visibility": body["visibility"],
        "content": body.get("content"),
        "created_at": datetime.fromtimestamp(row["created_at"], UTC).isoformat(),
        "deleted": bool(row["deleted"]),
    }
