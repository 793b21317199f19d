"""What limits are measured by: how many run of each gate and queue, and until when their starts are paid for."""

from __future__ import annotations

from typing import TypeVar

from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.lease import NodeId
from duetime.model.limit import Bound, Queue, Rate

UNLIMITED = 1 << 62
Key = TypeVar("Key")


class Quotas:
    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}  # every queue a job was ever stored under or that was set
        self._of_gate: dict[str, int] = {}
        self._of_node: dict[tuple[str, NodeId], int] = {}  # of a gate, by the node that has them
        self._of_queue: dict[str, int] = {}
        self._gate_spent: dict[str, Micros] = {}
        self._queue_spent: dict[str, Micros] = {}

    def know(self, queue: str) -> None:
        if queue not in self.queues:
            self.queues[queue] = Queue(queue)

    # -- what runs ----------------------------------------------------------------------------------------------------
    def begin(self, draft: JobDraft, node: NodeId) -> None:
        self._of_queue[draft.queue] = self._of_queue.get(draft.queue, 0) + 1
        if draft.gate is not None:
            self._of_gate[draft.gate] = self._of_gate.get(draft.gate, 0) + 1
            self._of_node[draft.gate, node] = self._of_node.get((draft.gate, node), 0) + 1

    def hand_over(self, draft: JobDraft, node: NodeId) -> None:
        """It runs on, and no node has it."""
        if draft.gate is not None:
            _take_one(self._of_node, (draft.gate, node))

    def end(self, draft: JobDraft, node: NodeId | None) -> None:
        self._of_queue[draft.queue] -= 1
        if draft.gate is not None:
            _take_one(self._of_gate, draft.gate)
        if draft.gate is not None and node is not None:
            _take_one(self._of_node, (draft.gate, node))

    # -- gates --------------------------------------------------------------------------------------------------------
    def full(self, gate: str, bound: Bound | None, node: NodeId, due: bool) -> bool:
        """For this node. What is not due yet is not taken ahead."""
        if bound is None or bound.most is None:
            return False
        running = self._of_gate.get(gate, 0)
        alone = bound.ahead > 0 and due and running == self._of_node.get((gate, node), 0)
        return running >= bound.most + (bound.ahead if alone else 0)

    def spend(self, gate: str, bound: Bound | None, now: Micros) -> None:
        if bound is not None and bound.rate is not None:
            self._gate_spent[gate] = bound.rate.spend(self._gate_spent.get(gate, 0), now, 1)

    def rests_until(self, gate: str, bound: Bound | None, now: Micros) -> Micros | None:
        """When the gate's rate allows the next start; None when it does now."""
        return None if bound is None else _rests_until(bound.rate, self._gate_spent.get(gate, 0), now)

    # -- queues -------------------------------------------------------------------------------------------------------
    def paused(self, queue: str) -> bool:
        return queue in self.queues and self.queues[queue].paused

    def room_in(self, queue: str, now: Micros) -> int:
        """How many of this queue may start now."""
        said = self.queues.get(queue)
        if said is None or said.paused:
            return 0
        places = UNLIMITED if said.most is None else said.most - self._of_queue.get(queue, 0)
        starts = UNLIMITED if said.rate is None else said.rate.allowed(self._queue_spent.get(queue, 0), now)
        return max(0, min(places, starts))

    def limited(self, queue: str) -> bool:
        said = self.queues.get(queue)
        return said is not None and (said.most is not None or said.rate is not None)

    def spend_in(self, queue: str, starts: int, now: Micros) -> None:
        rate = self.queues[queue].rate
        if rate is not None and starts:
            self._queue_spent[queue] = rate.spend(self._queue_spent.get(queue, 0), now, starts)

    def queue_rests_until(self, queue: str, now: Micros) -> Micros | None:
        said = self.queues.get(queue)
        return None if said is None else _rests_until(said.rate, self._queue_spent.get(queue, 0), now)

    def forget_idle(self, now: Micros) -> None:
        """What was spent long ago limits nobody: `spend` begins at now then."""
        self._gate_spent = {gate: until for gate, until in self._gate_spent.items() if until > now}


def _take_one(counts: dict[Key, int], key: Key) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _rests_until(rate: Rate | None, spent_until: Micros, now: Micros) -> Micros | None:
    return None if rate is None or rate.allowed(spent_until, now) else rate.free_at(spent_until)
