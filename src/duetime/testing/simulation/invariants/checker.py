"""All invariants together: told of every transaction of the store and of its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duetime.model.instant import Micros
from duetime.model.job import CancelReply
from duetime.store import MarkReply
from duetime.testing.simulation.invariants.fires import FireInvariants
from duetime.testing.simulation.invariants.jobs import JobInvariants
from duetime.testing.simulation.invariants.nodes import NodeInvariants
from duetime.testing.simulation.invariants.transaction import Transaction
from duetime.testing.simulation.invariants.verdict import Verdict
from duetime.testing.simulation.journal import SimulatedStore
from duetime.testing.simulation.processes import Host
from duetime.testing.simulation.recorder import Recorder


class Checker:
    def __init__(self, verdict: Verdict, recorder: Recorder, clock: Callable[[], Micros]) -> None:
        self.verdict = verdict
        self.recorder = recorder
        self.nodes = NodeInvariants(verdict)
        self.fires = FireInvariants(verdict)
        self.jobs = JobInvariants(verdict, recorder, self.nodes, self.fires)
        self._clock = clock
        self.jobs.transaction = Transaction("none", None, (), 0, clock)

    def begin(self, verb: str, host: Host | None, arguments: tuple[Any, ...]) -> Transaction:
        transaction = Transaction(verb, host, arguments, self._clock(), self._clock)
        self.jobs.transaction = transaction
        return transaction

    def end(self, transaction: Transaction, store: SimulatedStore, answer: Any) -> None:
        verb, arguments, now = transaction.verb, transaction.arguments, transaction.now
        match verb:
            case "claim" | "settle" | "add_jobs":
                self.recorder.note(f"{transaction.host.name if transaction.host else '-'} {verb} {len(answer)} of {_size(arguments[0])}")
            case "add_unique" | "save" | "mark" | "commit" | "set_queue":
                self._end_of_tool_verb(transaction, answer)
            case "time" | "next_due" | "queues" | "due_schedules" | "nodes" | "orphans" | "get_job" | "list_jobs" | "hint" | "held":
                return
            case "cancel_job":
                if answer is CancelReply.REQUESTED:
                    self.jobs.cancel_was_requested(arguments[1])
            case "begin":
                self.jobs.announced(arguments[0], arguments[1], answer)
            case "put_schedule" | "pause_schedule" | "resume_schedule" | "remove_schedule" | "fire":
                self._end_of_schedule_verb(transaction, store, answer)
            case _:
                self._end_of_node_verb(transaction, answer, now)

    def _end_of_tool_verb(self, transaction: Transaction, answer: Any) -> None:
        arguments, tools = transaction.arguments, self.jobs.tools
        self.recorder.note(f"{transaction.host.name if transaction.host else '-'} {transaction.verb} {answer}")
        refused = answer is False or answer is MarkReply.REFUSED or (transaction.verb == "save" and answer)
        self.recorder.events[f"{transaction.verb} {'refused' if refused else 'done'}"] += 1
        match transaction.verb:
            case "save":
                tools.saved(arguments[0], answer)
            case "mark" if answer is MarkReply.TAKEN:
                tools.marked(*arguments)
            case "commit" if answer:
                tools.committed(arguments[0])
            case "set_queue":
                tools.said(arguments[0])

    def _end_of_schedule_verb(self, transaction: Transaction, store: SimulatedStore, answer: Any) -> None:
        verb, arguments, now = transaction.verb, transaction.arguments, transaction.now
        if verb == "fire":
            self.recorder.note(f"fire {answer} of {len(arguments[0])}")
            self.fires.fired(arguments[0], answer)
            return
        self.recorder.note(f"{verb} {answer.draft.name if answer else 'refused'} version {answer.version if answer else '-'}")
        ahead = [] if answer is None else store.ahead(answer.id, now)
        match verb:
            case "put_schedule":
                self.fires.put(arguments[0], answer, ahead, now)
            case "pause_schedule":
                self.fires.paused(answer, ahead, now)
            case "resume_schedule":
                self.fires.resumed(answer, now)
            case _:
                self.fires.removed(answer, ahead, now)

    def _end_of_node_verb(self, transaction: Transaction, answer: Any, now: Micros) -> None:
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
            case "bury" if answer:
                self.recorder.note(f"buried {answer}")
                self.nodes.buried(answer, now)
            case "take_leases":
                self.nodes.took(arguments[0], answer)
            case "drop_leases":
                self.nodes.dropped(*arguments)


def _size(argument: Any) -> int:
    return len(argument) if isinstance(argument, list | tuple) and not hasattr(argument, "room") else 0
