"""E-mail addresses of alert channels: every accepted address can stand in the header of a notice."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidInput
from duetime.invokers.alert.email import message
from duetime.model.alert.channel import Channel


def channel(sender: str, to: str) -> Channel:
    fields: dict[str, Any] = {"type": "email", "host": "smtp.example.org", "sender": sender, "to": [to]}
    return Channel.received("team", fields, None, lambda name, text: text)


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x85", "\n", "\0", "\u00a0", "[", "(", ":", "\\"])
def test_address_that_no_header_can_hold_is_refused(letter: str) -> None:
    for address in (f"o{letter}ps@example.org", f"ops@exam{letter}ple.org", f"ops@example.org{letter}"):
        with pytest.raises(InvalidInput, match="is not an e-mail address") as caught:
            channel(address, "b@example.org")
        assert caught.value.field == "sender"
        with pytest.raises(InvalidInput, match="is not an e-mail address"):
            channel("a@example.org", address)


@pytest.mark.parametrize("address", ["ops+night@example.org", "o'neil@mail-1.example", "jürgen@example.org"])
def test_notice_can_be_built_for_an_accepted_address(address: str) -> None:
    made = message(channel("duetime@example.org", address), "disk full", "text", "id", 0.0)
    assert made["To"] == address
