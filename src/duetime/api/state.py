"""The objects that all routes of one service share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from duetime.api.caller import Authenticator, Caller, RateLimit
from duetime.api.fleet_gauges import FleetGauges
from duetime.api.idempotency import IdempotencyStore
from duetime.api.long_poll import LongPolls
from duetime.api.loop_lag import LoopLag
from duetime.api.meter import Meter
from duetime.api.paging import Cursors
from duetime.api.streams import StreamCounts
from duetime.app import App
from duetime.app.health import Health
from duetime.app.services import Services
from duetime.config import Settings
from duetime.model.keyring import KeyRing
from duetime.model.target import Seal


@dataclass(slots=True)
class ServiceState:
    app: App
    authenticator: Authenticator
    rate_limit: RateLimit
    cursors: Cursors
    ring: KeyRing  # signs report tokens
    seal: (
        Callable[[str], Seal] | None
    )  # encrypts the secret headers of a tenant; None: there is no key to encrypt with
    settings: Settings
    meter: Meter = field(default_factory=Meter)
    streams: StreamCounts = field(default_factory=StreamCounts)
    loop_lag: LoopLag = field(default_factory=LoopLag)
    long_polls: LongPolls = field(default_factory=LongPolls)
    idempotency: IdempotencyStore = field(init=False)
    gauges: FleetGauges = field(init=False)
    health: Health = field(init=False)
    stopping: bool = False

    def __post_init__(self) -> None:
        self.app.watch()
        self.idempotency = IdempotencyStore(self.app.store)
        self.gauges = FleetGauges(self.app)
        self.health = Health(self.app)

    def view(self, caller: Caller) -> Services:
        """The app, limited to the caller's tenant."""
        return self.app.for_tenant(caller.tenant)


def state_of(request: Request) -> ServiceState:
    state: ServiceState = request.app.state.service
    return state
