"""Secrets in text that people read: the log, and the output of jobs."""

from __future__ import annotations

import re

# API keys, signing secrets, bearer tokens and passwords in addresses: only the beginning of one is ever
# shown. Also parts of them, because a text may have been cut. Every repetition is bounded or possessive:
# the time is proportional to the length of the text.
SECRETS = re.compile(
    r"(?P<key>\bdt_[0-9a-z]{10}_)[0-9A-Za-z]++"
    r"|(?P<signing>\bwhs(?:ec|k)_)[0-9A-Za-z+/=]++"
    r"|(?P<bearer>(?i:\bbearer )|(?i:\bbasic ))[0-9A-Za-z._~+/=-]{8,}+"
    r"|(?P<login>\b[a-z][a-z0-9+.-]{0,31}://[^\s:/@]{0,256}:)[^\s@/]++(?=@)"
)


def without_secrets(text: str) -> str:
    return SECRETS.sub(lambda found: f"{found[found.lastgroup or 0]}***", text)
