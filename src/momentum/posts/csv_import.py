"""Posts from a CSV file: each line is checked as if it were saved alone; all are stored, or none, unless the
caller accepts a part."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import accounts, tables
from momentum.errors import InvalidPost, Problem
from momentum.model import Account, Article, MediaUse
from momentum.posts.commands import PostCommands
from momentum.posts.content import PostInput

COLUMNS = ("account", "text", "scheduled_at", "zone", "media", "article_url", "labels")
OPTIONAL = ("article_title", "article_description", "visibility")
REQUIRED = ("account", "text")
MAX_ROWS = 1_000
SEPARATOR = ";"  # between several files or labels of one cell


@dataclass(frozen=True, slots=True)
class ImportedRow:
    line: int
    post_id: str | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Known:
    """What names in the file can refer to."""

    accounts: Sequence[Account]
    files: Mapping[str, Sequence[str]]  # ids by id and by name


class _NothingStored(Exception):
    """Rolls the transaction back."""


async def import_csv(
    commands: PostCommands, tenant: str, text: str, *, actor: str, dry_run: bool, partial: bool
) -> tuple[Sequence[ImportedRow], int]:
    """The rows, and how many posts were stored."""
    lines = list(read_lines(text))
    rows: list[ImportedRow] = []
    await commands.learn_rules(tenant)
    try:
        async with commands.database.transaction() as connection:
            known = await _known(connection, tenant)
            for line in lines:
                rows.append(await _import_line(commands, connection, tenant, line, known, actor))
            if dry_run or not (partial or all(row.ok for row in rows)):
                raise _NothingStored
    except _NothingStored:
        return [replace(row, post_id=None) for row in rows], 0
    return rows, sum(row.ok for row in rows)


def read_lines(text: str) -> Iterator[_Line]:
    """The lines with their names. Numbers are those of the file, where the header is line 1."""
    text = text.removeprefix("\ufeff")
    header = text.partition("\n")[0]
    delimiter = ";" if header.count(";") > header.count(",") else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip().lower() for name in reader.fieldnames or []]
        _require_columns(names)
        reader.fieldnames = names
        for count, cells in enumerate(reader, 1):
            if count > MAX_ROWS:
                raise InvalidPost([Problem("body", f"has over {MAX_ROWS:,} rows: split it", "csv_too_long")])
            if None in cells:
                message = f"line {reader.line_num} has more cells than the header"
                raise InvalidPost([Problem("body", f"{message}: put texts into quotes", "csv_invalid")])
            filled = {name: (value or "").strip() for name, value in cells.items()}
            if any(filled.values()):
                yield _Line(reader.line_num, filled)
    except csv.Error as problem:
        message = f"is not CSV at line {reader.line_num}: {problem}"
        raise InvalidPost([Problem("body", message, "csv_invalid")]) from None


def _require_columns(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in COLUMNS + OPTIONAL]
    missing = [name for name in REQUIRED if name not in names]
    if unknown or missing:
        wrong = f"has the unknown columns {', '.join(map(repr, unknown))}" if unknown else ""
        lacks = f"lacks the columns {', '.join(missing)}" if missing else ""
        remedy = f"use {', '.join(COLUMNS)} (and if needed {', '.join(OPTIONAL)})"
        message = f"the header {' and '.join(part for part in (wrong, lacks) if part)}: {remedy}"
        raise InvalidPost([Problem("body", message, "csv_columns")])


async def _known(connection: AsyncConnection, tenant: str) -> _Known:
    files: dict[str, list[str]] = {}
    query = select(tables.media.c.id, tables.media.c.name).where(tables.media.c.tenant == tenant)
    for media_id, name in await connection.execute(query):
        files.setdefault(media_id, []).append(media_id)
        files.setdefault(name, []).append(media_id)
    return _Known(await accounts.listing(connection, tenant), files)


async def _import_line(
    commands: PostCommands,
    connection: AsyncConnection,
    tenant: str,
    line: _Line,
    known: _Known,
    actor: str,
) -> ImportedRow:
    try:
        given = _to_input(line.cells, known)
        saved = await commands.create_within(connection, tenant, given, actor=actor)
    except InvalidPost as problem:
        return ImportedRow(line.number, None, problem.problems)
    return ImportedRow(line.number, saved.post.id)


def _to_input(cells: Mapping[str, str], known: _Known) -> PostInput:
    problems: list[Problem] = []
    account = _account(cells["account"], known, problems)
    media = tuple(MediaUse(_file(name, known, problems)) for name in _several(cells.get("media", "")))
    instant, local_time = _time(cells.get("scheduled_at", ""), problems)
    if problems:
        raise InvalidPost(problems)
    return PostInput(
        account,
        cells["text"],
        media,
        _article(cells),
        cells.get("visibility") or "PUBLIC",
        tuple(_several(cells.get("labels", ""))),
        instant,
        local_time,
        cells.get("zone") or None,
    )


def _account(name: str, known: _Known, problems: list[Problem]) -> str:
    """By id, URN, handle or name."""
    found = [
        account.id
        for account in known.accounts
        if name in (account.id, account.author.urn, account.author.handle, account.author.name)
    ]
    if len(found) != 1:
        several = "means several accounts: use the id" if found else "is not an account: see the accounts"
        problems.append(Problem("account", f"{name!r} {several}", "account_unknown"))
    return found[0] if found else ""


def _file(name: str, known: _Known, problems: list[Problem]) -> str:
    found = known.files.get(name, ())
    if len(found) != 1:
        several = "is the name of several files: use the id" if found else "is not uploaded: upload it first"
        problems.append(Problem("media", f"{name!r} {several}", "media_unknown"))
    return found[0] if found else ""


def _time(text: str, problems: list[Problem]) -> tuple[datetime | None, str | None]:
    """An instant if it has an offset, else a local time of the column `zone`."""
    if not text:
        return None, None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a time: write 2026-11-20 09:00 with a zone, or 2026-11-20T09:00:00Z"
        problems.append(Problem("scheduled_at", message, "time_invalid"))
        return None, None
    return (None, read.isoformat()) if read.tzinfo is None else (read, None)


def _article(cells: Mapping[str, str]) -> Article | None:
    url = cells.get("article_url", "")
    if not url:
        return None
    try:
        title = cells.get("article_title") or urlsplit(url).hostname or ""
    except ValueError:
        title = ""
    return Article(url, title, cells.get("article_description", ""))


def _several(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(SEPARATOR) if part.strip()]
