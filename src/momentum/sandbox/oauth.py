"""Consent and tokens, as www.linkedin.com gives them."""

from __future__ import annotations

import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from momentum.sandbox.pages import consent_page, error_page
from momentum.sandbox.state import State


class OAuth:
    def __init__(self, state: State) -> None:
        self._state = state

    async def consent(self, request: web.Request) -> web.Response:
        problem = self._problem(request.query)
        if problem:
            return _html(error_page(problem), 400)
        members = self._state.all("SELECT * FROM members ORDER BY rowid LIMIT 12")
        scopes = request.query["scope"].split()
        return _html(consent_page(request.path, request.query, [dict(row) for row in members], scopes))

    async def decide(self, request: web.Request) -> web.Response:
        """The form of the consent page."""
        form = await request.post()
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        problem = self._problem(fields)
        if problem:
            return _html(error_page(problem), 400)
        if fields.get("decision") != "allow":
            text = "The user cancelled the authorization"
            return _back(fields, {"error": "user_cancelled_authorize", "error_description": text})
        granted = [str(scope) for scope in form.getall("granted", [])]
        return _back(fields, {"code": self._new_code(fields, granted)})

    async def token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        if not self._is_our_app(form):
            return _refused(401, "invalid_client", "Client authentication failed")
        match form.get("grant_type"):
            case "authorization_code":
                return self._exchange(form)
            case "refresh_token":
                return self._refresh(form)
        return _refused(400, "unsupported_grant_type", "Unsupported grant type")

    async def revoke(self, request: web.Request) -> web.Response:
        form = await request.post()
        self._state.run("UPDATE tokens SET revoked = 1 WHERE token = ?", str(form.get("token", "")))
        return web.json_response({})

    def _problem(self, fields: Mapping[str, str]) -> str | None:
        if fields.get("client_id") != self._state.setting("client_id"):
            return "The passed in client_id is invalid"
        redirect = urlsplit(fields.get("redirect_uri", ""))
        loopback = redirect.hostname in ("127.0.0.1", "localhost", "::1")
        if redirect.scheme != "https" and not (redirect.scheme == "http" and loopback):
            return "The redirect_uri does not match the registered value"
        if fields.get("response_type") != "code" or not fields.get("scope"):
            return "You need to pass the parameters response_type=code and scope"
        return None

    def _new_code(self, fields: Mapping[str, str], granted: list[str]) -> str:
        code = f"AQT{secrets.token_urlsafe(32)}"
        self._state.run(
            "INSERT INTO codes VALUES (?, ?, ?, ?, ?, ?)",
            code,
            fields.get("member", ""),
            " ".join(granted),
            fields["redirect_uri"],
            fields.get("code_challenge", ""),
            time.time() + self._state.setting("code_seconds"),
        )
        return code

    def _is_our_app(self, form: Mapping[str, str]) -> bool:
        if form.get("client_id") != self._state.setting("client_id"):
            return False
        return "code_verifier" in form or form.get("client_secret") == self._state.setting("client_secret")

    def _exchange(self, form: Mapping[str, str]) -> web.Response:
        # A code works once.
        row = self._state.one("DELETE FROM codes WHERE code = ? RETURNING *", form.get("code", ""))
        if row is None or row["expires_at"] < time.time() or row["redirect_uri"] != form.get("redirect_uri"):
            text = "Unable to retrieve access token: appid/redirect uri/code verifier does not match "
            return _refused(
                400, "invalid_request", f"{text}authorization code. Or authorization code expired."
            )
        if row["challenge"] != _challenge(form.get("code_verifier", "")):
            return _refused(400, "invalid_request", "The code verifier does not match")
        return self._granted(row["member"], row["scopes"])

    def _refresh(self, form: Mapping[str, str]) -> web.Response:
        refresh_token = form.get("refresh_token", "")
        row = self._state.one("SELECT * FROM tokens WHERE refresh_token = ?", refresh_token)
        if row is None or row["revoked"] or row["refresh_expires_at"] < time.time():
            text = "The provided authorization grant or refresh token is invalid, expired or revoked"
            return _refused(400, "invalid_grant", text)
        # The refresh token stays, or at least its end; a new access token does not outlive it.
        expires_at = min(time.time() + self._state.setting("token_seconds"), row["refresh_expires_at"])
        token = f"AQ{secrets.token_urlsafe(48)}"
        rotates = self._state.setting("single_use_refresh")
        next_token = f"AR{secrets.token_urlsafe(48)}" if rotates else refresh_token
        self._state.run(
            "UPDATE tokens SET token = ?, expires_at = ?, refresh_token = ? WHERE refresh_token = ?",
            token,
            expires_at,
            next_token,
            refresh_token,
        )
        return _tokens({**dict(row), "token": token, "expires_at": expires_at, "refresh_token": next_token})

    def _granted(self, member: str, scopes: str) -> web.Response:
        return _tokens(dict(self._state.add_token(member, scopes)))


def _tokens(row: dict[str, Any]) -> web.Response:
    now = time.time()
    answer = {
        "access_token": row["token"],
        "expires_in": round(row["expires_at"] - now),
        "scope": ",".join(row["scopes"].split()),
        "token_type": "Bearer",
    }
    if row["refresh_token"]:
        answer["refresh_token"] = row["refresh_token"]
        answer["refresh_token_expires_in"] = round(row["refresh_expires_at"] - now)
    return web.json_response(answer)


def _challenge(verifier: str) -> str:
    if not verifier:
        return ""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _refused(status: int, error: str, description: str) -> web.Response:
    return web.json_response({"error": error, "error_description": description}, status=status)


def _back(fields: Mapping[str, str], answer: dict[str, str]) -> web.Response:
    query = urlencode(answer | {"state": fields.get("state", "")})
    separator = "&" if "?" in fields["redirect_uri"] else "?"
    return web.Response(status=303, headers={"Location": f"{fields['redirect_uri']}{separator}{query}"})


def _html(page: str, status: int = 200) -> web.Response:
    return web.Response(text=page, status=status, content_type="text/html")
