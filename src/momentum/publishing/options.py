"""The times and bounds of publishing. Tests use shorter ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PublishingOptions:
    lead: timedelta = 10 * MINUTE  # files are brought to the platform so long before the post is due
    call_timeout: timedelta = 90 * SECOND  # of the one call that publishes
    max_attempts: int = 6  # of one post, when the platform says "later"
    first_delay: timedelta = 10 * SECOND  # before the second attempt; then three times as long each time
    max_delay: timedelta = 10 * MINUTE
    poll_delays: tuple[timedelta, ...] = (2 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND, 60 * SECOND)
    max_processing: timedelta = 60 * MINUTE  # of one file at the platform
    hold_jitter: timedelta = 5 * MINUTE  # held posts come back spread over this time
    recheck: timedelta = MINUTE  # how often a post asks whether a hold without end has ended
    find_delays: tuple[timedelta, ...] = (30 * SECOND, 2 * MINUTE, 10 * MINUTE)  # look-ups of a post in doubt
    probe_delay: timedelta = 2 * MINUTE  # the platform must have had the time to store the first one
    republish: bool = False  # publish again by itself if the platform certainly does not have the post
    watch_interval: timedelta = 5 * MINUTE  # for posts that no job takes care of
    stranded_after: timedelta = 10 * MINUTE  # a post this late is looked at
    warn_before_expiry: timedelta = 15 * DAY  # of a token
    refresh_before_expiry: timedelta = 7 * DAY
