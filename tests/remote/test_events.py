"""The stream of events: read from bytes cut anywhere, and bridged over interruptions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import duetime as dt
from duetime.model.views import EventView
from duetime.remote import request
from duetime.remote.event_parser import EventParser
from duetime.remote.request import RetryPolicy
from tests.remote.conftest import KINDS, caller
from tests.remote.scripted import problem, scripted

TEXT = (
    b": heartbeat\n\nid: 7\nevent: job\ndata: {\"action\": \"started\",\ndata: \"id\": \"x\"}\n\n"
    b"event: many\r\ndata:{\"count\":3}\r\nid:9\r\n\r\nevent: ignored\n\ndata: plain\n\n"
)  # fmt: skip
EVENTS = [
    EventView(id=7, kind="job", data={"action": "started", "id": "x"}),
    EventView(id=9, kind="many", data={"count": 3}),
    EventView(id=9, kind="message", data={"text": "plain"}),
]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@given(st.lists(st.integers(1, len(TEXT) - 1), max_size=8))
def test_event_parser_accepts_bytes_cut_anywhere(cuts: list[int]) -> None:
    parser = EventParser(None, None, RetryPolicy())
    places = [0, *sorted(cuts), len(TEXT)]
    assert [event for start, end in pairwise(places) for event in parser.feed(TEXT[start:end])] == EVENTS


@pytest.mark.parametrize("kind", KINDS)
async def test_event_stream_continues_after_the_last_id(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "FIRST_RETRY_DELAY", 0.001)
    first, second = HEAD + TEXT, HEAD + b"id: 10\nevent: reset\ndata: {}\n\n"
    async with scripted(first, problem(503, "store_unavailable"), second, close=True) as script:
        events = await caller(kind, script.url).first_events(4, types=["job", "node"], after=3)
        assert events == [*EVENTS, EventView(id=10, kind="reset", data={})]
        assert [seen.headers.get("last-event-id") for seen in script.seen] == ["3", "9", "9"]
        assert script.seen[0].path.endswith("/events?types=job%2Cnode")
        assert script.seen[0].headers["accept"] == "text/event-stream"


@pytest.mark.parametrize("kind", KINDS)
async def test_event_stream_raises_permanent_errors(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "FIRST_RETRY_DELAY", 0.001)
    async with scripted(problem(403, "scope_missing")) as script:
        with pytest.raises(dt.AccessDenied):
            await caller(kind, script.url).first_events(1)
        assert len(script.seen) == 1
    with pytest.raises(dt.ServiceUnreachable):
        await caller(kind, script.url, retries=2).first_events(1)
