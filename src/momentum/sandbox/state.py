"""What the sandbox remembers: an SQLite file and a folder of uploaded files, so that a restarted demo keeps
its accounts and posts."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from shutil import rmtree
from typing import Any

DEFAULTS: dict[str, Any] = {
    "client_id": "momentum",
    "client_secret": "sandbox-secret",
    "member_daily_limit": 150,  # requests
    "app_daily_limit": 100_000,
    "versions": ["202601", "202602", "202603", "202604", "202605", "202606", "202607", "202608", "202609"],
    "token_seconds": 5_184_000,  # 60 days
    "refresh_tokens": False,  # only partners of LinkedIn get them
    "refresh_seconds": 31_536_000,
    "single_use_refresh": False,  # each refresh token works once, as at other platforms
    "code_seconds": 1800,
    "upload_url_seconds": 86_400,
    "part_bytes": 4 * 1024 * 1024,
    "processing_seconds": 1.0,  # between the last byte and AVAILABLE
    "duplicate_seconds": 86_400,  # how long an identical post is refused
}
MEMBERS = (
    ("mYa_7-kQ2x", "Maya Lindqvist", "Founder, Northwind Coffee"),
    ("tOm4s-R8_b", "Tomás Rivera", "Engineer and writer"),
    ("aIk0_Tn-5c", "Aiko Tanaka", "Designs calm software"),
)
ORGANIZATIONS = (
    ("5001", "Northwind Coffee", "northwind-coffee", "mYa_7-kQ2x"),
    ("5002", "Brightwater Studio", "brightwater-studio", "aIk0_Tn-5c"),
)
TABLES = (
    "codes",
    "tokens",
    "assets",
    "parts",
    "posts",
    "usage",
    "settings",
    "roles",
    "organizations",
    "members",
)


class State:
    def __init__(self, folder: Path) -> None:
        self.files = folder / "files"
        self.files.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(folder / "sandbox.db", isolation_level=None)
        self._database.row_factory = sqlite3.Row
        # A demo and tests: speed is worth more than the last posts before a power failure.
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;")
        self._database.executescript((files("momentum.sandbox") / "schema.sql").read_text())
        self._settings = DEFAULTS | {
            row["name"]: json.loads(row["value"]) for row in self.all("SELECT * FROM settings")
        }
        self._add_demo_accounts()

    def one(self, sql: str, *values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._database.execute(sql, values).fetchone()
        return row

    def all(self, sql: str, *values: Any) -> Sequence[sqlite3.Row]:
        return self._database.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        """The number of rows that were changed."""
        return self._database.execute(sql, values).rowcount

    def close(self) -> None:
        self._database.close()

    def setting(self, name: str) -> Any:
        return self._settings[name]

    def change_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(changes) - set(DEFAULTS))
        if unknown:
            known = ", ".join(sorted(DEFAULTS))
            raise ValueError(f"unknown settings: {', '.join(unknown)}; there are {known}")
        for name, value in changes.items():
            self.run("INSERT OR REPLACE INTO settings VALUES (?, ?)", name, json.dumps(value))
        self._settings |= changes
        return self._settings

    def reset(self) -> None:
        """As on the first day."""
        for table in TABLES:
            self.run(f"DELETE FROM {table}")  # noqa: S608 - a constant
        rmtree(self.files)
        self.files.mkdir()
        self._settings = dict(DEFAULTS)
        self._add_demo_accounts()

    def signing_key(self) -> bytes:
        """For upload URLs; in the file, so that a URL outlives a restart."""
        name = "signing_key"
        row = self.one("SELECT value FROM settings WHERE name = ?", name)
        if row is None:
            self.run("INSERT INTO settings VALUES (?, ?)", name, json.dumps(secrets.token_hex(32)))
            return self.signing_key()
        return bytes.fromhex(json.loads(row["value"]))

    def add_member(self, member: str, name: str, headline: str = "") -> None:
        self.run("INSERT OR IGNORE INTO members VALUES (?, ?, ?)", member, name, headline)

    def add_organization(self, organization: str, name: str, vanity_name: str, admin: str) -> None:
        self.run("INSERT OR IGNORE INTO organizations VALUES (?, ?, ?)", organization, name, vanity_name)
        self.run("INSERT OR IGNORE INTO roles VALUES (?, ?, 'ADMINISTRATOR')", admin, organization)

    def add_token(self, member: str, scopes: str) -> sqlite3.Row:
        """A new access token, with a refresh token if the app may have one."""
        now = time.time()
        refreshes = self.setting("refresh_tokens")
        token = f"AQ{secrets.token_urlsafe(48)}"
        self.run(
            "INSERT INTO tokens VALUES (?, ?, ?, ?, 0, ?, ?)",
            token,
            member,
            scopes,
            now + self.setting("token_seconds"),
            f"AR{secrets.token_urlsafe(48)}" if refreshes else None,
            now + self.setting("refresh_seconds") if refreshes else None,
        )
        row = self.one("SELECT * FROM tokens WHERE token = ?", token)
        assert row is not None
        return row

    def author_name(self, urn: str) -> tuple[str, str]:
        """The name of a member or organization, and the line below it."""
        key = urn.rsplit(":", 1)[-1]
        member = self.one("SELECT name, headline FROM members WHERE id = ?", key)
        if member is not None:
            return member["name"], member["headline"]
        organization = self.one("SELECT name FROM organizations WHERE id = ?", key)
        return (organization["name"], "Company") if organization is not None else (urn, "")

    def count_request(self, who: str) -> int:
        """The requests of a member, or of the app, on this UTC day."""
        day = time.strftime("%Y-%m-%d", time.gmtime())
        row = self.one(
            "INSERT INTO usage VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET requests = requests + 1 "
            "RETURNING requests",
            day,
            who,
        )
        assert row is not None
        return int(row["requests"])

    def _add_demo_accounts(self) -> None:
        for member in MEMBERS:
            self.add_member(*member)
        for organization in ORGANIZATIONS:
            self.add_organization(*organization)
