"""What every route needs at hand: the app, who guards it, and the service's keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request

from duetime.api.holding import Held
from duetime.api.meter import Meter
from duetime.api.pulse import Pulse
from duetime.api.scrapes import Scrapes
from duetime.api.streams import Streams
from duetime.app import App
from duetime.app.health import Health
from duetime.app.operations import Operations
from duetime.model.keyring import KeyRing

if TYPE_CHECKING:
    from duetime.api.auth import Caller, Gate
    from duetime.api.idempotency import Memory
    from duetime.api.limits import RateLimit
    from duetime.api.paging import Cursors
    from duetime.config import Settings
    from duetime.model.target import Seal


@dataclass(slots=True)
class Edge:
    app: App
    gate: Gate
    rate_limit: RateLimit
    cursors: Cursors
    memory: Memory
    ring: KeyRing  # signs the tokens of reports
    seal: Callable[[str], Seal] | None  # encrypts secret header values of a tenant; None: there is no key to do it with
    settings: Settings
    meter: Meter = field(default_factory=Meter)
    streams: Streams = field(default_factory=Streams)
    pulse: Pulse = field(default_factory=Pulse)
    held: Held = field(default_factory=Held)
    scrapes: Scrapes = field(init=False)
    health: Health = field(init=False)
    stopping: bool = False

    def __post_init__(self) -> None:
        self.app.watch()
        self.scrapes = Scrapes(self.app)
        self.health = Health(self.app)

    def view(self, caller: Caller) -> Operations:
        """The app as this caller's tenant sees it."""
        return self.app.for_tenant(caller.tenant)


def edge_of(request: Request) -> Edge:
    edge: Edge = request.app.state.edge
    return edge
