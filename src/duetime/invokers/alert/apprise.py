"""Notices by Apprise, which knows more than a hundred services. Its URL is the secret of a channel.

Apprise connects by itself, without our address guard. For this reason a service needs `allow_apprise`."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from duetime.errors import InvalidInput
from duetime.model.alert import text
from duetime.model.settle import AttemptFailed, Directive, GiveUp, NotHere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apprise import NotifyBase

MISSING = "needs the package 'apprise': pip install 'duetime[apprise]'"
OFF = "channels of type apprise are not allowed on this node: start it with --allow-apprise yes"
WORTH_A_RETRY = (408, 429)
_STATUS = re.compile(r"\berror=(\d{3})\b")
_LOGGERS = ("apprise", "urllib3.connectionpool", "oauthlib.oauth1.rfc5849", "requests_oauthlib.oauth1_auth")


_sending: ContextVar[list[int] | None] = ContextVar("_sending", default=None)  # statuses of answers


class _LogFilter(logging.Filter):
    """Keeps what is logged while a notice is sent out of the log: debug lines contain the URL. What is of
    interest in them is the status of the answer, because Apprise itself only says yes or no."""

    def filter(self, record: logging.LogRecord) -> bool:
        statuses = _sending.get()
        if statuses is None:
            return True  # of another part of the program
        statuses += map(int, _STATUS.findall(record.getMessage()))
        return False


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_LogFilter())


@contextmanager
def _statuses() -> Iterator[list[int]]:
    """Of what is sent meanwhile, also on other threads: Apprise takes the context along."""
    found: list[int] = []
    token = _sending.set(found)
    try:
        yield found
    finally:
        _sending.reset(token)


async def check(url: Any) -> None:
    """Refuses a URL that Apprise does not understand. Without the package, it refuses every URL: notices
    could not be delivered."""
    if isinstance(url, str):  # else the fields of the channel say what is wrong
        try:
            made = await asyncio.to_thread(_made, url)
        except ModuleNotFoundError:
            raise InvalidInput("type", f"apprise {MISSING}") from None
        if made is None:
            raise InvalidInput("url", "is not a URL that Apprise knows, such as tgram://bottoken/chat")


async def send(url: str, notice: text.Fields, link: str | None) -> dict[str, Any]:
    return await asyncio.to_thread(_send, url, notice, link)


def _send(url: str, notice: text.Fields, link: str | None) -> dict[str, Any]:
    try:
        from apprise import Apprise, NotifyFormat
    except ModuleNotFoundError:
        raise NotHere(f"this channel {MISSING}") from None
    made, scheme = _made(url), url.partition(":")[0]
    if made is None:
        raise GiveUp("url of this channel is not known to Apprise: set it again")
    sender = Apprise(made)
    with _statuses() as statuses:
        # As text: a name must not become a link or a picture.
        sent = sender.notify(
            title=text.title(notice),
            body=text.body(notice, link),
            notify_type=_kind(notice),
            body_format=NotifyFormat.TEXT,
        )
    if not sent:
        raise _failed(scheme, statuses)
    return {"service": scheme}


def _made(url: str) -> NotifyBase | None:
    from apprise import Apprise

    with _statuses():
        made: NotifyBase | None = Apprise.instantiate(url)
    return made


def _kind(notice: text.Fields) -> Any:
    from apprise import NotifyType

    if notice["kind"] != "firing":
        return NotifyType.SUCCESS if notice["kind"] == "resolved" else NotifyType.INFO
    is_critical = any(one["severity"] == "critical" for one in notice["alerts"])
    return NotifyType.FAILURE if is_critical else NotifyType.WARNING


def _failed(scheme: str, statuses: list[int]) -> Directive:
    if not statuses:
        return AttemptFailed(f"Apprise could not deliver to {scheme}://")
    line = f"Apprise could not deliver to {scheme}://: HTTP {statuses[-1]}"
    refused = 400 <= statuses[-1] < 500 and statuses[-1] not in WORTH_A_RETRY
    return GiveUp(line) if refused else AttemptFailed(line)
