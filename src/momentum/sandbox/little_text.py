"""How LinkedIn reads little text. Written from its grammar, apart from the client's escaping, so that one
checks the other."""

from __future__ import annotations

import re
from dataclasses import dataclass

RESERVED = frozenset("\\|{}@[]()<>#*_~")
ESCAPED = r"(?:\\[\\|{}@\[\]()<>#*_~])"
PLAIN = r"[^\\|{}@\[\]()<>#*_~]"
NAME = rf"(?:{ESCAPED}|{PLAIN})+"
MENTION = re.compile(rf"@\[({NAME})\]\((urn:li:(?:person|organization):[\w-]+)\)")
TEMPLATE = re.compile(rf"\{{hashtag\|\\?#\|({NAME})\}}")
HASHTAG = re.compile(r"#([^\W_]+)")
TEXT = re.compile(NAME)


@dataclass(frozen=True, slots=True)
class Segment:
    kind: str  # text, hashtag or mention
    text: str  # as readers see it
    urn: str = ""

    @property
    def typed(self) -> str:
        return f"@[{self.text}]({self.urn})" if self.kind == "mention" else self.text


@dataclass(frozen=True, slots=True)
class Reading:
    segments: tuple[Segment, ...]
    truncated: bool  # the rest was lost at an unescaped reserved character

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)

    @property
    def typed(self) -> str:
        """With mentions in full."""
        return "".join(segment.typed for segment in self.segments)


def read(little_text: str) -> Reading:
    segments: list[Segment] = []
    position = 0
    while position < len(little_text):
        if found := TEXT.match(little_text, position):
            segments.append(Segment("text", _unescaped(found[0])))
        elif found := MENTION.match(little_text, position):
            segments.append(Segment("mention", _unescaped(found[1]), found[2]))
        elif found := TEMPLATE.match(little_text, position) or HASHTAG.match(little_text, position):
            segments.append(Segment("hashtag", f"#{_unescaped(found[1])}"))
        else:
            return Reading(tuple(segments), truncated=True)
        position = found.end()
    return Reading(tuple(segments), truncated=False)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
