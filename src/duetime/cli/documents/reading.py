"""Files of schedules: which files, and their entries with the places they stand at. All problems are reported
at the same time."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duetime.cli.documents.entry import Entry, read_entry
from duetime.cli.documents.references import SecretSources
from duetime.cli.documents.source import Document, documents_in
from duetime.cli.files import read_text
from duetime.engine.submit.validate import check_name
from duetime.errors import InvalidDocument, InvalidInput

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
TOP = ("managed_by", "schedules")


@dataclass(frozen=True, slots=True)
class Located:
    """An entry and where it stands."""

    entry: Entry
    document: Document
    number: int

    def problem(self, problem: InvalidInput | Exception) -> str:
        """The one line of an error about this entry."""
        return _line(self.document, self.number, self.entry.name, problem)


@dataclass(slots=True)
class Collection:
    """What all files say together."""

    entries: list[Located] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # of managed_by, also of files without entries


def read_files(
    paths: Sequence[str], managed_by: str | None = None, secrets_from: Sequence[str] = ()
) -> Collection:
    """The entries of files and folders; `managed_by` is used in place of the files' own. `secrets_from`:
    variables and folders that references may name besides the usual ones."""
    found, problems = Collection(), list[str]()
    for file in _files(paths):
        try:
            documents = list(documents_in(_text(file), "stdin" if file == STDIN else file))
        except InvalidDocument as problem:
            problems += problem.problems
            continue
        sources = SecretSources.of(None if file == STDIN else file, secrets_from)
        for document in documents:
            problems += _collect(document, managed_by, sources, found)
    problems += _doubles(found.entries)
    if problems:
        raise InvalidDocument(*problems)
    return found


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            yield path
            continue
        inside = sorted(
            one for one in Path(path).rglob("*") if one.suffix in SUFFIXES and not _is_hidden(one, Path(path))
        )
        if not inside:
            raise InvalidDocument(f"{path}: has no file that ends with {', '.join(SUFFIXES)}")
        yield from map(str, inside)


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _text(file: str) -> str:
    if file == STDIN:
        return sys.stdin.read()
    try:
        return read_text(file)
    except ValueError as problem:
        raise InvalidDocument(f"{file}: cannot be read: {problem}") from None


def _collect(
    document: Document, managed_by: str | None, sources: SecretSources, found: Collection
) -> Iterator[str]:
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("schedules"), list):
        yield f"{document.place()}: must be a mapping with a list `schedules`: see `duetime apply --schema`"
        return
    for name in value:
        if name not in TOP:
            yield f"{document.place(name)}: {name}: is unknown: use {' and '.join(TOP)}"
    try:
        owner = managed_by or value.get("managed_by")
        if owner is not None:
            found.names.add(check_name(owner, "managed_by"))
    except InvalidInput as problem:
        yield f"{document.place('managed_by')}: {problem}"
        return
    for number, item in enumerate(value["schedules"]):
        try:
            entry = read_entry(item, owner).with_secrets_of(sources)
            found.entries.append(Located(entry, document, number))
        except InvalidInput as problem:
            name = item.get("name") if isinstance(item, dict) else None
            yield _line(document, number, name, problem)


def _doubles(entries: Iterable[Located]) -> Iterator[str]:
    first: dict[str, Located] = {}
    for one in entries:
        name = one.entry.name
        if name in first:
            other = first[name].document.place("schedules", first[name].number)
            yield one.problem(InvalidInput("name", f"is also that of the entry at {other}: rename one"))
        first.setdefault(name, one)


def _line(document: Document, number: int, name: Any, problem: Exception) -> str:
    inside = str(getattr(problem, "field", None) or "").split(".")
    path: list[str | int] = ["schedules", number]
    for part in inside:  # a header's name may contain a dot, and then its line is that of `headers`
        path.append(part)
    message = getattr(problem, "message", str(problem))
    shown = f"{name}: " if isinstance(name, str) else ""
    return f"{document.place(*path)}: {shown}{message}"
