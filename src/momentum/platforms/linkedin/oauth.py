"""Access to LinkedIn: consent, tokens, and the authors that a member may post as."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode

from momentum.errors import ConfigError
from momentum.model import Author, AuthorKind
from momentum.platform import Grant, PlatformError, PlatformStopped, ReconnectNeeded, Rejected
from momentum.platforms.linkedin.errors import Answer, error_of
from momentum.platforms.linkedin.http import Http

MEMBER_SCOPES = ("openid", "profile", "w_member_social")
ORGANIZATION_SCOPES = ("r_organization_social", "rw_organization_admin", "w_organization_social")
POSTING_ROLES = ("ADMINISTRATOR", "CONTENT_ADMIN", "CONTENT_ADMINISTRATOR")
PAGE = 100


class OAuth:
    def __init__(self, http: Http) -> None:
        self._http = http
        self._settings = http.settings
        self._web = http.settings.web_url.rstrip("/")
        organizations = ORGANIZATION_SCOPES if http.settings.organizations else ()
        self.scopes = MEMBER_SCOPES + organizations

    def authorize_url(self, state: str, verifier: str, redirect_uri: str) -> str:
        if not self._settings.client_id:
            raise ConfigError(
                "linkedin client_id: is missing; create an app at https://www.linkedin.com/developers "
                "and set its client id and secret"
            )
        fields = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "scope": " ".join(self.scopes),
        }
        path = "v2"
        if self._settings.pkce:
            path = "native-pkce"  # LinkedIn's own path for native apps
            challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
            fields |= {"code_challenge": challenge, "code_challenge_method": "S256"}
        return f"{self._web}/oauth/{path}/authorization?{urlencode(fields, quote_via=quote)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> Grant:
        proof = {"code_verifier": verifier} if self._settings.pkce else self._secret
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, **proof}
        grant = await self._token(fields)
        missing = [scope for scope in self.scopes if scope not in grant.scopes]
        if missing:
            names = ", ".join(missing)
            raise ReconnectNeeded(
                f"LinkedIn did not grant {names}. Check the products of your LinkedIn app, "
                "then connect the account again and accept every permission.",
                code="scope_missing",
            )
        return grant

    async def refresh(self, refresh_token: str) -> Grant:
        """The new refresh token does not live longer than the first one: a year after the login, a person
        must connect the account again."""
        fields = {"grant_type": "refresh_token", "refresh_token": refresh_token, **self._secret}
        return await self._token(fields)

    async def revoke(self, token: str) -> None:
        fields = {"client_id": self._settings.client_id, "token": token, **self._secret}
        await self._http.call("POST", f"{self._web}/oauth/v2/revoke", data=fields)

    async def authors(self, grant: Grant) -> Sequence[Author]:
        url = f"{self._settings.api_url.rstrip('/')}/v2/userinfo"
        answer = await self._http.call("GET", url, headers={"Authorization": f"Bearer {grant.access_token}"})
        person = answer.fields
        name = person.get("name") or person["sub"]
        member = Author(f"urn:li:person:{person['sub']}", name, picture=person.get("picture"))
        if not self._settings.organizations:
            return [member]
        return [member, *[await self._organization(urn, grant) for urn in await self._managed(grant)]]

    @property
    def _secret(self) -> dict[str, str]:
        return {"client_secret": self._settings.client_secret}

    async def _token(self, fields: dict[str, str]) -> Grant:
        url = f"{self._web}/oauth/v2/accessToken"
        answer = await self._http.exchange(
            "POST", url, data={"client_id": self._settings.client_id, **fields}
        )
        if answer.status != 200:
            raise self._refusal(answer)
        return _grant(answer.fields, self.scopes)

    def _refusal(self, answer: Answer) -> PlatformError:
        error = str(answer.fields.get("error", ""))
        reason = answer.fields.get("error_description") or error
        details: dict[str, Any] = {"status": answer.status, "request_id": answer.request_id}
        if error == "invalid_client":
            text = f"LinkedIn does not know this app ({reason}). Check the client id and secret."
            return PlatformStopped(text, code="app_refused", **details)
        if error and answer.status < 500:  # a code that was used or is too old, a refresh token that ended
            text = f"LinkedIn gave no access ({reason}). Connect the account again."
            return ReconnectNeeded(text, code=error, **details)
        return error_of(answer, creates=False, web_url=self._web, now=datetime.now(UTC))

    async def _managed(self, grant: Grant) -> Sequence[str]:
        """The organizations that the member may post for."""
        found: list[str] = []
        for start in range(0, 10_000, PAGE):
            query = f"q=roleAssignee&state=APPROVED&start={start}&count={PAGE}"
            answer = await self._http.rest("GET", f"organizationAcls?{query}", grant.access_token)
            elements = answer.fields.get("elements", [])
            found += [each["organization"] for each in elements if each.get("role") in POSTING_ROLES]
            if len(elements) < PAGE:
                break
        return list(dict.fromkeys(found))

    async def _organization(self, urn: str, grant: Grant) -> Author:
        try:
            answer = await self._http.rest(
                "GET", f"organizations/{urn.rsplit(':', 1)[1]}", grant.access_token
            )
        except Rejected:  # it may be posted for, although its name may not be read
            return Author(urn, urn, AuthorKind.ORGANIZATION)
        name, handle = answer.fields.get("localizedName", urn), answer.fields.get("vanityName")
        return Author(urn, name, AuthorKind.ORGANIZATION, handle=handle)


def _grant(fields: dict[str, Any], requested: Sequence[str]) -> Grant:
    now = datetime.now(UTC)
    granted = fields.get("scope")  # a standard server leaves it out when it granted everything
    refresh_seconds = fields.get("refresh_token_expires_in")
    return Grant(
        access_token=fields["access_token"],
        expires_at=now + timedelta(seconds=int(fields["expires_in"])),
        scopes=tuple(re.split(r"[ ,+]+", granted.strip())) if granted else tuple(requested),
        refresh_token=fields.get("refresh_token"),
        refresh_expires_at=now + timedelta(seconds=int(refresh_seconds)) if refresh_seconds else None,
    )
