"""Steps of a schema: which of them only add (expand) and which remove what older versions use (contract).

A script that contracts says so in a comment, with the oldest schema that a program must know, and the first
release that does: `-- contract: from 2, needs 0.3.0`. All others expand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from duetime.errors import MigrationRefused, SchemaTooNew

_CONTRACT = re.compile(r"^-- contract: from (\d+), needs (\S+)$", re.MULTILINE)
_CHANGED = re.compile(
    r"^\s*(?:ALTER TABLE(?: IF EXISTS)?(?: ONLY)?|DROP TABLE(?: IF EXISTS)?"
    r"|CREATE (?:UNIQUE )?INDEX(?: IF NOT EXISTS)? \S+ ON(?: ONLY)?)\s+([\w.]+)",
    re.MULTILINE | re.IGNORECASE,
)
_MADE = re.compile(r"^\s*CREATE TABLE(?: IF NOT EXISTS)?\s+([\w.]+)", re.MULTILINE | re.IGNORECASE)
MAX_NAMED = 5


class SchemaState(NamedTuple):
    version: int  # 0: there is no schema
    compatible_from: int  # the oldest schema that a program must know to work on this one


class NodeVersion(NamedTuple):
    """Of a living node."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class MigrationStep:
    number: int
    title: str
    compatible_from: int
    needs: str | None  # of a step that contracts: the oldest version that nodes may have
    locks: tuple[str, ...]  # existing tables that it changes: it waits for their users, and they for it

    @property
    def phase(self) -> str:
        return "expand" if self.needs is None else "contract"


@dataclass(frozen=True, slots=True)
class Migration:
    """What was done, or in a dry run would be."""

    state: SchemaState  # before
    steps: tuple[MigrationStep, ...] = ()
    nodes: tuple[NodeVersion, ...] = ()  # of a dry run: those that live

    @property
    def before(self) -> int:
        return self.state.version

    @property
    def after(self) -> int:
        return self.before + len(self.steps)

    @property
    def old_nodes(self) -> list[NodeVersion]:
        """Which keep a step from being done."""
        return sorted({node for step in self.steps for node in too_old(step.needs, self.nodes)})


def steps_of(scripts: Sequence[str]) -> list[MigrationStep]:
    """In their order; the first has number 1."""
    found: list[MigrationStep] = []
    for number, text in enumerate(scripts, 1):
        contract = _CONTRACT.search(text)
        before = found[-1].compatible_from if found else 1
        made = set(_MADE.findall(text))
        found.append(
            MigrationStep(
                number,
                _title(text),
                int(contract[1]) if contract else before,
                contract[2] if contract else None,
                tuple(sorted(set(_CHANGED.findall(text)) - made)),
            )
        )
    return found


def migration_of(scripts: Sequence[str], state: SchemaState, nodes: Iterable[NodeVersion] = ()) -> Migration:
    if state.version >= len(scripts):
        return Migration(state, nodes=tuple(nodes))
    return Migration(state, tuple(steps_of(scripts)[state.version :]), tuple(nodes))


def refuse_incompatible(state: SchemaState, known: int, place: str) -> None:
    """A newer schema is fine as long as it only has more than this program knows."""
    if known < state.compatible_from:
        raise SchemaTooNew(
            f"{place} has schema {state.version}, for programs that know schema {state.compatible_from} or a "
            f"later one; this Duetime knows {known}: upgrade Duetime"
        )


def refuse_old_nodes(step: MigrationStep, nodes: Iterable[NodeVersion]) -> None:
    """What a contraction removes must not be in use."""
    old = too_old(step.needs, nodes)
    if old:
        names = ", ".join(f"{node.name} ({node.version})" for node in old[:MAX_NAMED])
        raise MigrationRefused(
            f"step {step.number} removes what versions before {step.needs} use, and {len(old)} such nodes "
            f"live: {names}; upgrade or stop them, then run `duetime migrate` again"
        )


def too_old(needs: str | None, nodes: Iterable[NodeVersion]) -> list[NodeVersion]:
    if needs is None:
        return []
    return [node for node in nodes if _numbers(node.version) < _numbers(needs)]


def _numbers(version: str) -> tuple[int, ...]:
    """`0.10.1` is later than `0.9`. What follows the third number does not count."""
    found = [int(part) for part in re.findall(r"\d+", version)[:3]]
    return tuple(found + [0] * (3 - len(found)))


def _title(text: str) -> str:
    """The first sentence of its comment."""
    for line in text.splitlines():
        said = line.removeprefix("--").strip()
        if line.startswith("--") and said and not _CONTRACT.match(line):
            return said.partition(". ")[0].rstrip(".")
    return "no description"
