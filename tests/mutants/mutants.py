"""Deliberately broken statements of the stores: the attempt number, the cursor, the lease or the due time is not compared. The
conformance suite must find each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from duetime.store import Store
from duetime.testing.conformance.checkpoints import CheckpointConformance, OnceConformance
from duetime.testing.conformance.claim import ClaimantConformance
from duetime.testing.conformance.drafts import LANE
from duetime.testing.conformance.due_times import TWO_LANES, DueTimeConformance
from duetime.testing.conformance.fire import FireOnceConformance
from duetime.testing.conformance.nodes import BeatConformance
from duetime.testing.conformance.settle import AttemptConformance, FencingConformance
from duetime.testing.conformance.tickets import TicketConformance, named

ConformanceTest = Callable[[Store], Awaitable[None]]


class Edit(NamedTuple):
    """Of a named SQL statement, a function in the database (`duetime.NAME`) or a file of Lua code."""

    where: str
    old: str
    new: str = ""


Edits = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """`tests`: those of the conformance suite that should find it. Of a store that cannot have it: the reason."""

    tests: tuple[ConformanceTest, ...]
    sqlite: Edits | str
    postgres: Edits | str
    mariadb: Edits | str
    redis: Edits | str


STORES = ("sqlite", "postgres", "mariadb", "redis")

_fencing, _due_times = FencingConformance(), DueTimeConformance()
LATE_FINISHER = (
    _fencing.test_a_late_finisher_is_refused,
    _fencing.test_a_number_from_the_future_is_refused,
)
PLAIN_DUE_TIMES = tuple(
    partial(_due_times.test_claim_takes_what_is_due_by_its_end_and_nothing_else, kind="plain", lanes=lanes)
    for lanes in ((LANE,), TWO_LANES)
)
RESTRICTED_DUE_TIMES = tuple(
    partial(_due_times.test_claim_takes_what_is_due_by_its_end_and_nothing_else, kind=kind, lanes=(LANE,))
    for kind in ("limit key", "overlap")
)
NAMED_DUE_TIMES = tuple(
    partial(_due_times.test_job_starts_when_it_is_due_and_not_before, kind=kind, claim_of=named)
    for kind in ("plain", "limit key")
)
ONE_FENCE = "`settle` compares the attempt once for all it writes"


def _postgres_claims(old: str, new: str) -> Edits:
    """Claims by one lane, by several, and by name."""
    return tuple(Edit(where, old, new) for where in ("claim", "claim_lane", "claim_named"))


MUTANTS = {
    "final settlement of any attempt": Mutant(
        LATE_FINISHER,
        sqlite=(Edit("settle_final", " AND j.attempt = d.attempt"),),
        postgres=(Edit("settle_successes", "attempt = $2", "$2::bigint IS NOT NULL"),),
        mariadb=(Edit("settle_plain", " AND j.attempt = d.attempt"),),
        redis=(Edit("settle", "is_plain = group.attempt == attempts[i]", "is_plain = true"),),
    ),
    "settlement that sends back any attempt": Mutant(
        LATE_FINISHER,
        sqlite=(Edit("settle_pending", " AND attempt = ?2"),),
        postgres=(Edit("settle", " AND k.attempt = x.attempt"),),
        mariadb=(Edit("settle_pending", " AND attempt = ?2"),),
        redis=(Edit("settle", "if run and unpack_struct('>I4', run) == attempt then", "if run then"),),
    ),
    "settlement that deletes any attempt": Mutant(
        LATE_FINISHER,
        sqlite=(Edit("settle_delete", " AND j.attempt = d.attempt"),),
        postgres=ONE_FENCE,
        mariadb=(Edit("settle_plain", " AND attempt = d.attempt"),),
        redis=ONE_FENCE,
    ),
    "record of any attempt": Mutant(
        (AttemptConformance().test_a_refused_decision_leaves_none,),
        sqlite=(Edit("record_attempt", " AND j.attempt = e.attempt"),),
        postgres=ONE_FENCE,
        mariadb=(Edit("record_attempt", " AND j.attempt = e.attempt"),),
        redis=ONE_FENCE,
    ),
    "checkpoint of any attempt": Mutant(
        (CheckpointConformance().test_attempt_that_lost_its_job_saves_nothing,),
        sqlite=(Edit("save_progress", " AND attempt = ?2"),),
        postgres=(Edit("save_progress", " AND k.attempt = x.attempt"),),
        mariadb=(Edit("save_progress", " AND attempt = ?2"),),
        redis=(Edit("save_progress", "attempt ~= tonumber(ARGV[at + 1]) or "),),
    ),
    "once-marker of any attempt": Mutant(
        (OnceConformance().test_attempt_that_lost_its_job_takes_nothing,),
        sqlite=(Edit("take_marker", " AND attempt = ?2"),),
        postgres=(Edit("take_once", "attempt = $2", "$2::bigint IS NOT NULL"),),
        mariadb=(Edit("take_marker", " AND attempt = ?2"),),
        redis=(Edit("take_once", " or unpack_struct('>I4', run) ~= tonumber(ARGV[2])"),),
    ),
    "ticket of any attempt": Mutant(
        (TicketConformance().test_ticket_of_another_attempt_claims_nothing,),
        sqlite=(Edit("named_candidates", " AND j.attempt = t.column2"),),
        postgres=(
            Edit("claim_named", " AND j.attempt = t.attempt"),
            Edit("lock_named", " AND j.attempt = t.attempt"),
        ),
        mariadb=(Edit("named_candidates", " AND (id, attempt) IN (/* rows */ (?, ?))"),),
        redis=(Edit("claim", "job.attempt == tonumber(ARGV[i + 1]) and "),),
    ),
    "fire from any cursor": Mutant(
        (FireOnceConformance().test_a_step_from_another_cursor_is_refused,),
        sqlite=(Edit("move_cursor", " AND next_fire_time = ?3"),),
        postgres=(Edit("fire", " AND k.next_fire_time IS NOT DISTINCT FROM x.cursor"),),
        mariadb=(Edit("move_cursor", " AND next_fire_time = ?3"),),
        redis=(Edit("fire", " and one.cursor == ARGV[at + 3]"),),
    ),
    "fire of any version": Mutant(
        (FireOnceConformance().test_a_step_from_another_version_is_refused,),
        sqlite=(Edit("move_cursor", " AND version = ?2"),),
        postgres=(Edit("fire", " AND k.version = x.version"),),
        mariadb=(Edit("move_cursor", " AND version = ?2"),),
        redis=(Edit("fire", " and one.version == tonumber(ARGV[at + 2])"),),
    ),
    "heartbeat of a dead node": Mutant(
        (BeatConformance().test_a_dead_node_stays_dead, BeatConformance().test_a_node_that_left_stays_dead),
        sqlite=(Edit("beat", " AND dead = 0"),),
        postgres=(Edit("beat", "id = $1 AND NOT dead", "id = $1"),),
        mariadb=(Edit("beat", " AND dead = 0"),),
        redis=(Edit("beat", "call('ZSCORE', ALIVE, node) and 1 or 0", "1"),),
    ),
    "claim after the end of the lease": Mutant(
        (
            ClaimantConformance().test_not_one_whose_lease_has_ended,
            TicketConformance().test_node_whose_lease_has_ended_claims_no_named_job,
        ),
        sqlite=(Edit("may_claim", "lease_until > ?2", "?2 > 0"),),
        postgres=(
            *_postgres_claims(" AND lease_until > statement_timestamp()", ""),
            Edit("lock_named", " AND lease_until > statement_timestamp()"),
            Edit("duetime.claim_candidates", " AND n.lease_until > clock_timestamp()"),
        ),
        mariadb=(Edit("may_claim", " AND lease_until > ?2"),),
        redis=(Edit("rows", "return lease and tonumber(lease) > now", "return lease"),),
    ),
    "claim a second early": Mutant(
        PLAIN_DUE_TIMES,
        sqlite=(Edit("claimable", "j.due_at <= ?3", "j.due_at <= ?3 + 1000000"),),
        postgres=_postgres_claims(
            "j.due_at <= statement_timestamp()", "j.due_at <= statement_timestamp() + interval '1 second'"
        ),
        mariadb=(Edit("claimable", "due_at <= ?6", "due_at <= ?6 + 1000000"),),
        redis=(Edit("claim", "until_text = text(until_)", "until_text = text(until_ + 1000000)"),),
    ),
    "claim of restricted jobs a second early": Mutant(
        RESTRICTED_DUE_TIMES,
        sqlite=(Edit("restricted_candidates", "j.due_at <= ?3", "j.due_at <= ?3 + 1000000"),),
        postgres=(
            Edit(
                "duetime.claim_candidates",
                "j.tenant = lane.tenant AND j.due_at <= horizon",
                "j.tenant = lane.tenant AND j.due_at <= horizon + interval '1 second'",
            ),
        ),
        mariadb=(Edit("restricted_candidates", "due_at <= ?6", "due_at <= ?6 + 1000000"),),
        redis=(Edit("claim", "until_text = text(until_)", "until_text = text(until_ + 1000000)"),),
    ),
    "claim by name a second early": Mutant(
        NAMED_DUE_TIMES,
        sqlite="Python code compares the due times of named jobs",
        postgres=tuple(
            Edit(
                where,
                "j.due_at <= statement_timestamp()",
                "j.due_at <= statement_timestamp() + interval '1 second'",
            )
            for where in ("claim_named", "lock_named")
        ),
        mariadb="Python code compares the due times of named jobs",
        redis=(Edit("claim", "job.due_at <= until_ and", "job.due_at <= until_ + 1000000 and"),),
    ),
    "claim a microsecond early": Mutant(
        PLAIN_DUE_TIMES,
        sqlite=(Edit("claimable", "j.due_at <= ?3", "j.due_at <= ?3 + 1"),),
        postgres=_postgres_claims(
            "j.due_at <= statement_timestamp()",
            "j.due_at <= statement_timestamp() + interval '1 microsecond'",
        ),
        mariadb=(Edit("claimable", "due_at <= ?6", "due_at <= ?6 + 1"),),
        redis=(Edit("claim", "until_text = text(until_)", "until_text = text(until_ + 1)"),),
    ),
    "claim without the jobs that are due now": Mutant(
        PLAIN_DUE_TIMES,
        sqlite=(Edit("claimable", "j.due_at <= ?3", "j.due_at < ?3"),),
        postgres=_postgres_claims(
            "j.due_at <= statement_timestamp()", "j.due_at < statement_timestamp()"
        ),
        mariadb=(Edit("claimable", "due_at <= ?6", "due_at < ?6"),),
        redis=(Edit("claim", "until_text = text(until_)", "until_text = text(until_ - 1)"),),
    ),
}  # fmt: skip
