"""Passes every transaction of the store and its answer to the invariants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duetime.engine.plan.leases import HOLDERS
from duetime.model.codec import decode
from duetime.model.instant import Micros
from duetime.model.job import CancelReply
from duetime.store import OnceReply
from duetime.testing.simulation.hosts import Host
from duetime.testing.simulation.invariants.fires import FireInvariants
from duetime.testing.simulation.invariants.jobs import JobInvariants
from duetime.testing.simulation.invariants.nodes import NodeInvariants
from duetime.testing.simulation.invariants.transaction import StoreTransaction
from duetime.testing.simulation.invariants.verdict import Verdict
from duetime.testing.simulation.recorder import Recorder
from duetime.testing.simulation.store import SimulatedStore


class Checker:
    def __init__(self, verdict: Verdict, recorder: Recorder, clock: Callable[[], Micros]) -> None:
        self.verdict = verdict
        self.recorder = recorder
        self.nodes = NodeInvariants(verdict)
        self.fires = FireInvariants(verdict)
        self.jobs = JobInvariants(verdict, recorder, self.nodes, self.fires)
        self._clock = clock
        self.jobs.transaction = StoreTransaction("none", None, (), 0, clock)

    def begin(self, verb: str, host: Host | None, arguments: tuple[Any, ...]) -> StoreTransaction:
        transaction = StoreTransaction(verb, host, arguments, self._clock(), self._clock)
        self.jobs.transaction = transaction
        return transaction

    def end(self, transaction: StoreTransaction, store: SimulatedStore, answer: Any) -> None:
        verb, arguments, now = transaction.verb, transaction.arguments, transaction.now
        match verb:
            case "claim" | "settle" | "add_jobs":
                self.recorder.note(
                    f"{transaction.caller} {verb} "
                    f"{len(answer[0]) if verb != 'add_jobs' else len(answer)} of {_size(arguments[0])}"
                )
            case "add_unique" | "save_progress" | "take_once" | "commit" | "set_queue":
                self._end_of_tool_verb(transaction, answer)
            case (
                "time"
                | "due_jobs"
                | "queues"
                | "list_schedules"
                | "nodes"
                | "running_jobs"
                | "get_job"
                | "list_jobs"
                | "get_schedule"
                | "hint"
            ):
                return
            case "cancel_job":
                if answer is CancelReply.REQUESTED:
                    self.jobs.cancel_was_requested(arguments[1])
            case "write_schedule" | "fire":
                self._end_of_schedule_verb(transaction, store, answer)
            case _:
                self._end_of_node_verb(transaction, answer, now)

    def _end_of_tool_verb(self, transaction: StoreTransaction, answer: Any) -> None:
        arguments, tools = transaction.arguments, self.jobs.tools
        self.recorder.note(f"{transaction.caller} {transaction.verb} {answer}")
        refused = (
            answer is False or answer is OnceReply.REFUSED or (transaction.verb == "save_progress" and answer)
        )
        self.recorder.events[f"{transaction.verb} {'refused' if refused else 'done'}"] += 1
        match transaction.verb:
            case "save_progress":
                for update in arguments[0]:
                    if update.started:
                        self.jobs.announced(update.id, update.attempt, update.id not in answer)
                tools.saved(arguments[0], answer)
            case "take_once" if answer is OnceReply.TAKEN:
                tools.marked(*arguments)
            case "commit" if answer:
                tools.committed(arguments[0])
            case "set_queue":
                tools.queue_changed(arguments[0])

    def _end_of_schedule_verb(
        self, transaction: StoreTransaction, store: SimulatedStore, answer: Any
    ) -> None:
        verb, arguments, now = transaction.verb, transaction.arguments, transaction.now
        if verb == "fire":
            self.recorder.note(f"fire {answer} of {len(arguments[0])}")
            self.fires.fired(arguments[0], answer)
            return
        self.recorder.note(
            f"{verb} {answer.draft.name if answer else 'refused'} version {answer.version if answer else '-'}"
        )
        self.fires.written(arguments[2], answer, [] if answer is None else store.ahead(answer.id, now), now)

    def _end_of_node_verb(self, transaction: StoreTransaction, answer: Any, now: Micros) -> None:
        arguments = transaction.arguments
        match transaction.verb:
            case "join":
                self.recorder.note(f"{arguments[0].name} joins as {answer}")
                self.nodes.joined(answer, arguments[0], arguments[1], transaction.host, now)
            case "beat":
                self.nodes.beaten(arguments[0], arguments[1], answer, now)
            case "leave":
                self.recorder.note(f"node {arguments[0]} leaves")
                self.nodes.left(arguments[0], wrongly=transaction.host is None)
            case "expire_nodes" if answer:
                self.recorder.note(f"expired {answer}")
                self.nodes.expired(answer, now)
            case "put_record" if arguments[:3] == HOLDERS and answer:
                self.nodes.shared(transaction.host, decode(arguments[3]))


def _size(argument: Any) -> int:
    return len(argument) if isinstance(argument, list | tuple) and not hasattr(argument, "room") else 0
