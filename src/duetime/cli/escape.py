"""Text from elsewhere as it may be shown on a terminal (S46): what is not printable is written as an escape, so that it cannot act."""

from __future__ import annotations


def visible(text: object) -> str:
    """One line. Control characters, escape sequences and marks that turn the writing direction become \\x1b, \\u202e and the like."""
    shown = str(text)
    return shown if shown.isprintable() else "".join(one if one.isprintable() else _escape(one) for one in shown)


def visible_lines(text: str) -> str:
    """As `visible`, and line ends stay."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
