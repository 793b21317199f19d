"""LinkedIn's "little text", the format of a post's text. An unescaped reserved character cuts the post off at
that character, and the create call still succeeds: for this reason everything except mentions and hashtags is
escaped, also inside URLs.

The limit of 3,000 characters is for the text as the person typed it, not for the escaped text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

RESERVED = "\\|{}@[]()<>#*_~"
ESCAPES = str.maketrans({character: f"\\{character}" for character in RESERVED})

# A URL is an ordinary text: its fragment is not a hashtag.
ELEMENT = re.compile(
    r"@\[(?P<name>[^\[\]\n]+)\]\((?P<urn>urn:li:(?:person|organization):[\w-]+)\)"
    r"|(?P<url>https?://\S+)"
    r"|(?<![\w&/#])#(?P<tag>\w+)"
)
HASHTAG_TEMPLATE = re.compile(r"\{hashtag\|\\?#\|((?:\\.|[^|}\\])+)\}")
MENTION = re.compile(r"@\[([^\[\]]+)\]\([^()]+\)")
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Hashtag:
    tag: str


@dataclass(frozen=True, slots=True)
class Mention:
    name: str
    urn: str


Token = Text | Hashtag | Mention


def tokens(typed: str) -> Iterator[Token]:
    """The typed text in its parts; joined they are the typed text again."""
    end = 0
    for found in ELEMENT.finditer(typed):
        if found["url"]:
            continue
        if found.start() > end:
            yield Text(typed[end : found.start()])
        yield Hashtag(found["tag"]) if found["tag"] else Mention(found["name"], found["urn"])
        end = found.end()
    if end < len(typed):
        yield Text(typed[end:])


def escape(text: str) -> str:
    return text.translate(ESCAPES)


def to_little_text(typed: str) -> str:
    """What the API expects, so that readers see what was typed."""
    return "".join(_encoded(token) for token in tokens(typed))


def _encoded(token: Token) -> str:
    match token:
        case Mention(name, urn):
            return f"@[{escape(name)}]({urn})"
        case Hashtag(tag):
            return f"{{hashtag|\\#|{escape(tag)}}}"
        case Text(text):
            return escape(text)


def normalised(little_text: str) -> str:
    """The text as readers see it, in one form of Unicode and with single spaces: for comparing a post with
    what the platform says it holds."""
    text = HASHTAG_TEMPLATE.sub(r"#\1", MENTION.sub(r"\1", little_text))
    return " ".join(unicodedata.normalize("NFC", ESCAPED.sub(r"\1", text)).split())
