"""The objects that all routes of one service share."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import Request

from duetime.api.caller import Authenticator, Caller, RateLimit
from duetime.api.fleet_gauges import FleetGauges
from duetime.api.idempotency import IdempotencyStore
from duetime.api.long_poll import LongPolls
from duetime.api.loop_lag import LoopLag
from duetime.api.meter import Meter
from duetime.api.paging import Cursors
from duetime.api.problems import ApiProblem
from duetime.api.rate_limit import OpenCounts, SharedBuckets
from duetime.app import App
from duetime.app.health import Health
from duetime.app.services import Services
from duetime.config import Settings
from duetime.model.keyring import KeyRing
from duetime.model.url import Egress

MAX_STREAMS_PER_KEY, MAX_STREAMS = 20, 500
MAX_LARGE_BODIES_PER_KEY, MAX_LARGE_BODIES = 2, 8
MAX_SEARCHES_PER_TENANT, MAX_SEARCHES = 8, 100  # open; of a tenant, one runs and the others wait
NO_STREAM = ApiProblem(
    429,
    "streams_exhausted",
    f"too many open streams: close one (at most {MAX_STREAMS_PER_KEY} of one key, {MAX_STREAMS} in all)",
    None,
    {"Retry-After": "5"},
)
NO_LARGE_BODY = ApiProblem(
    429,
    "bodies_exhausted",
    "too many large bodies at the same time: repeat the request, or send smaller batches "
    f"(at most {MAX_LARGE_BODIES_PER_KEY} of one key, {MAX_LARGE_BODIES} in all)",
    None,
    {"Retry-After": "1"},
)
NO_SEARCH = ApiProblem(
    429,
    "searches_exhausted",
    f"too many searches at the same time: repeat it (at most {MAX_SEARCHES_PER_TENANT} of one tenant, "
    f"{MAX_SEARCHES} in all), or leave out `payload`, `label`, `error`, `error_group` and `id`",
    None,
    {"Retry-After": "1"},
)


@dataclass(slots=True)
class ServiceState:
    app: App
    authenticator: Authenticator
    rate_limit: RateLimit
    cursors: Cursors
    ring: KeyRing  # signs report tokens, encrypts the secrets of targets
    settings: Settings
    meter: Meter = field(default_factory=Meter)
    streams: OpenCounts = field(
        default_factory=lambda: OpenCounts(NO_STREAM, MAX_STREAMS_PER_KEY, MAX_STREAMS)
    )
    large_bodies: OpenCounts = field(
        default_factory=lambda: OpenCounts(NO_LARGE_BODY, MAX_LARGE_BODIES_PER_KEY, MAX_LARGE_BODIES)
    )
    searches: OpenCounts = field(
        default_factory=lambda: OpenCounts(NO_SEARCH, MAX_SEARCHES_PER_TENANT, MAX_SEARCHES)
    )
    loop_lag: LoopLag = field(default_factory=LoopLag)
    long_polls: LongPolls = field(default_factory=LongPolls)
    idempotency: IdempotencyStore = field(init=False)
    gauges: FleetGauges = field(init=False)
    health: Health = field(init=False)
    egress: Egress = field(init=False)
    stopping: bool = False

    def __post_init__(self) -> None:
        self.app.watch()
        self.idempotency = IdempotencyStore(self.app.store, SharedBuckets(self.app, "idempotency rate"))
        self.gauges = FleetGauges(self.app)
        self.health = Health(self.app)
        self.egress = self.settings.egress()

    def view(self, caller: Caller) -> Services:
        """The app, limited to the caller's tenant."""
        return self.app.for_tenant(caller.tenant)


def state_of(request: Request) -> ServiceState:
    state: ServiceState = request.app.state.service
    return state
