"""A command target: the words of a program to start, without a shell. As a caller writes it, as it is shown
and as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duetime.errors import InvalidInput
from duetime.model.codec import decode, encode

COMMAND = "@command"
MAX_WORDS = 256
MAX_LENGTH = 32_768  # characters of all words together
FIELDS = ("type", "argv", "cwd")


@dataclass(frozen=True, slots=True)
class CommandTarget:
    argv: tuple[str, ...]
    cwd: str | None = None  # the folder it runs in; None: that of the node

    @staticmethod
    def from_json(value: Mapping[str, Any], field: str = "target") -> CommandTarget:
        """Reads the input of a caller. Every error names its field."""
        for name in value:
            if name not in FIELDS:
                raise InvalidInput(f"{field}.{name}", f"is unknown: use {', '.join(FIELDS)}")
        argv, cwd = value.get("argv"), value.get("cwd")
        if (
            not isinstance(argv, list | tuple)
            or not 1 <= len(argv) <= MAX_WORDS
            or not all(map(_is_word, argv))
        ):
            raise InvalidInput(
                f"{field}.argv",
                f'must be a list of 1 to {MAX_WORDS} words, the program first: ["/usr/bin/backup", "--all"]',
            )
        if not argv[0] or sum(map(len, argv)) > MAX_LENGTH:
            raise InvalidInput(
                f"{field}.argv", f"must begin with a program and have at most {MAX_LENGTH:,} characters"
            )
        if cwd is not None and not (_is_word(cwd) and cwd.startswith("/")):
            raise InvalidInput(f"{field}.cwd", "must be the absolute path of a folder, like /srv/shop")
        return CommandTarget(tuple(argv), cwd)

    @staticmethod
    def from_spec(spec: bytes) -> CommandTarget:
        return CommandTarget.from_json(decode(spec))

    def to_json(self) -> dict[str, Any]:
        return {"type": "command", "argv": list(self.argv), **({} if self.cwd is None else {"cwd": self.cwd})}

    def to_spec(self) -> bytes:
        return encode(self.to_json())


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value
