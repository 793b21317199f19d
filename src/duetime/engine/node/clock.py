"""The clock of a running node: the store's time, carried on this machine's monotonic clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from duetime.clock import Alarm, Follower, load_per_core, monotonic_micros, noise, pause
from duetime.engine.node.timer import make_timer
from duetime.model.instant import SECOND, Micros

NEVER_SAMPLED = 1 << 60
STALE_AFTER = 10 * SECOND

AlarmMaker = Callable[[Callable[[], None], Callable[[], Micros]], Alarm]


class NodeClock:
    """Follows a store's clock. The simulation passes its own monotonic clock and alarms."""

    def __init__(
        self,
        monotonic: Callable[[], Micros] = monotonic_micros,
        alarms: AlarmMaker = make_timer,
        noise: Callable[[], float] = noise,
        load: Callable[[], float] = load_per_core,
    ) -> None:
        self.monotonic = monotonic
        self.noise = noise
        self.load = load
        self._alarms = alarms
        self._follower = Follower()

    def now(self) -> Micros:
        return self._follower.at(self.monotonic())

    async def sleep(self, micros: Micros) -> None:
        await pause(micros / SECOND)

    def alarm(self, ring: Callable[[], None]) -> Alarm:
        return _StoreTimeAlarm(self, self._alarms(ring, self.monotonic))

    async def follow(self, read_store: Callable[[], Awaitable[Micros]]) -> None:
        self._follower.sample(await read_store(), self.monotonic())

    @property
    def sample_age(self) -> Micros:
        latest = self._follower.latest
        return NEVER_SAMPLED if latest is None else self.monotonic() - latest

    def to_monotonic(self, instant: Micros) -> Micros:
        return instant - self._follower.at(0)


class _StoreTimeAlarm:
    """Takes instants of the store's clock and sets a monotonic alarm for them."""

    def __init__(self, clock: NodeClock, alarm: Alarm) -> None:
        self._clock = clock
        self._alarm = alarm

    def set(self, at: Micros) -> None:
        self._alarm.set(self._clock.to_monotonic(at))

    def cancel(self) -> None:
        self._alarm.cancel()
