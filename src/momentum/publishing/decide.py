"""What follows from the answer of a platform. Pure: nothing is read or written here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from momentum.model import Outcome, PostState
from momentum.platform import (
    DuplicatePost,
    OutcomeUnknown,
    PlatformError,
    PlatformStopped,
    Published,
    ReconnectNeeded,
    Rejected,
    Throttled,
    TryLater,
)

Answer = Published | PlatformError


class Then(Enum):
    """What the job does next."""

    END = auto()
    RETRY = auto()
    WAIT = auto()  # until the hold ends
    FAIL = auto()
    RESOLVE = auto()  # find out whether it was published


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a decision depends on, apart from the answer."""

    resting: PostState  # the state of a post that waits for its next attempt
    repeatable: bool  # whether the call may be repeated without harm: uploads yes, publishing no
    last_try: bool = False
    in_doubt: bool = False  # an earlier attempt with this content may have published the post
    refreshed: bool = False  # the account has a new token


@dataclass(frozen=True, slots=True)
class NewHold:
    whole_platform: bool
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Decision:
    outcome: Outcome
    state: PostState
    then: Then
    code: str | None = None
    message: str | None = None
    status: int | None = None
    request_id: str | None = None
    published: Published | None = None
    hold: NewHold | None = None


def decide(answer: Answer, given: Circumstances) -> Decision:
    match answer:
        case Published():
            return _published(answer)
        case DuplicatePost() if given.in_doubt:
            return _published(answer.existing)
        case DuplicatePost():
            link = answer.existing and (answer.existing.url or answer.existing.id)
            message = f"the same content is published already: {link}" if link else answer.message
            return _failed(answer, "duplicate_content", message)
        case Throttled():
            return _held(answer, given, NewHold(answer.whole_platform, answer.until))
        case PlatformStopped():
            return _held(answer, given, NewHold(whole_platform=True, until=None))
        case ReconnectNeeded():
            if given.refreshed and not given.last_try:
                return _retry(answer, given)
            return _failed(answer, "needs_reconnection")
        case Rejected():
            return _failed(answer, answer.code or "rejected")
        case _ if not given.repeatable and not isinstance(answer, TryLater):
            return _decision(answer, Outcome.UNKNOWN, PostState.UNKNOWN, Then.RESOLVE)
        case _ if given.last_try:
            return _failed(answer, answer.code or "too_many_tries")
        case _:
            return _retry(answer, given)


def in_doubt(message: str, code: str) -> Decision:
    """The decision about a call whose answer no worker has heard."""
    return decide(OutcomeUnknown(message, code=code), Circumstances(PostState.READY, repeatable=False))


def _published(published: Published | None) -> Decision:
    found = published or Published("")
    return Decision(Outcome.PUBLISHED, PostState.PUBLISHED, Then.END, published=found)


def _retry(error: PlatformError, given: Circumstances) -> Decision:
    return _decision(error, Outcome.RETRY, given.resting, Then.RETRY)


def _held(error: PlatformError, given: Circumstances, hold: NewHold) -> Decision:
    return _decision(error, Outcome.HELD, given.resting, Then.WAIT, hold=hold)


def _failed(error: PlatformError, code: str, message: str | None = None) -> Decision:
    return _decision(error, Outcome.FAILED, PostState.FAILED, Then.FAIL, code, message)


def _decision(
    error: PlatformError,
    outcome: Outcome,
    state: PostState,
    then: Then,
    code: str | None = None,
    message: str | None = None,
    hold: NewHold | None = None,
) -> Decision:
    return Decision(
        outcome,
        state,
        then,
        code or error.code or outcome.value,
        message or error.message,
        error.status,
        error.request_id,
        hold=hold,
    )
