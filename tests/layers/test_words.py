"""The repository uses the words of docs/glossary.md and plain English: words that were given up do not
come back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.layers.test_tree import lines, tracked

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "docs", "ui/src", "bench", "examples", "tools")
PAGES = ("README.md", "CONTRIBUTING.md")
CODE = {".py", ".sql", ".lua", ".ts", ".tsx"}
PROSE = {".md", ".css", ".html", ".toml"}
# The first two name the words; the third names an account of the operating system.
NOT_CHECKED = {Path(__file__).relative_to(ROOT), Path("docs/glossary.md"), Path("tests/servers/process.py")}

# In all files. What to write instead.
PHRASES = {
    "whoever": "name the actor: the caller, the worker, the node",
    "nobody": "name the actor: no worker, no caller, no node",
    "somebody": "name the actor: a user, another worker",
    "shall": "must, should or will",
    "anew": "again",
    "mend(s|ed|ing)?": "fix, correct or repair",
    "for ever": "forever, or say how long",
    "its like": "similar ones",
    "since a moment": "just now",
}
# In code, as a name or as a part of one (`ring_bell`, `BellRinger`).
NAMES = {
    "bell": "notifier",
    "errand": "debouncer, or thread call",
    "hearsay": "task defaults cache",
    "herald": "registry publisher",
    "incarnation": "node session",
    "servant": "pool thread",
    "turnstile": "write lock",
}
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Finding(NamedTuple):
    file: str
    line: int
    word: str
    better: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word!r}: better {self.better} (docs/glossary.md)"


def findings(file: str, text: list[str]) -> Iterator[Finding]:
    if not _may_have_findings(file, "\n".join(text)):  # most files: quicker than line by line
        return
    for number, line in enumerate(text, 1):
        for found in PHRASE.finditer(line.replace("_", " ")):
            yield Finding(file, number, found[0], _advice(found[0]))
        if _is_code(file):
            yield from (Finding(file, number, word, NAMES[word.rstrip("s")]) for word in _old_names(line))


def _may_have_findings(file: str, text: str) -> bool:
    lower = text.replace("_", " ").lower()
    return PHRASE.search(lower) is not None or (_is_code(file) and any(name in lower for name in NAMES))


def _is_code(file: str) -> bool:
    return Path(file).suffix in CODE


def _advice(phrase: str) -> str:
    return next(better for pattern, better in PHRASES.items() if re.fullmatch(pattern, phrase, re.IGNORECASE))


def _old_names(line: str) -> Iterator[str]:
    for identifier in IDENTIFIER.findall(line):
        yield from _old_parts(identifier)


@cache  # the same names are repeated often
def _old_parts(identifier: str) -> list[str]:
    parts = [part.lower() for part in PART.findall(identifier)]
    return [part for part in parts if part.rstrip("s") in NAMES]


def checked_files() -> list[Path]:
    files = [path.relative_to(ROOT) for path in tracked()]
    return [
        file
        for file in files
        if file.suffix in CODE | PROSE
        and file not in NOT_CHECKED
        and (str(file) in PAGES or any(Path(folder) in file.parents for folder in FOLDERS))
    ]


def test_repository_uses_the_agreed_words() -> None:
    found = [one for file in checked_files() for one in findings(str(file), lines(ROOT / file))]
    assert not found, f"{len(found)} words to replace:\n" + "\n".join(map(str, found))


@pytest.mark.parametrize("pattern", PHRASES)
def test_phrase_is_found_in_prose_and_code(pattern: str) -> None:
    phrase = pattern.partition("(")[0]
    assert [one.word for one in findings("a.md", [f"{phrase.capitalize()} it is."])] == [phrase.capitalize()]
    assert [one.word for one in findings("a.py", [f"# it is {phrase}"])] == [phrase]


@pytest.mark.parametrize(
    ("file", "line", "word"),
    [
        ("a.py", "def mending_payload(): pass", "mending"),
        ("a.md", "an amending edit", None),
        ("a.py", "self._bell.ring()", "bell"),
        ("a.py", "class ThreadErrand: ...", "errand"),
        ("a.py", "class Bellows: ...", None),
        ("a.py", "label_bellwether = 1", None),
        ("a.sql", "select incarnations from nodes", "incarnations"),
        ("a.md", "the bell rings", None),
    ],
)
def test_word_is_found_where_it_stands_alone(file: str, line: str, word: str | None) -> None:
    assert [one.word for one in findings(file, [line])] == ([] if word is None else [word])


def test_message_names_file_line_and_better_word() -> None:
    (found,) = findings("src/a.py", ["", "turnstile = Lock()"])
    assert str(found) == "src/a.py:2: 'turnstile': better write lock (docs/glossary.md)"
