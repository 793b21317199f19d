"""Which steps expand and which contract, what they lock, and which nodes are too old for them."""

from __future__ import annotations

import pytest

from duetime.errors import MigrationRefused, SchemaTooNew
from duetime.model.migration import (
    NodeVersion,
    SchemaState,
    migration_of,
    refuse_incompatible,
    refuse_old_nodes,
    steps_of,
)

SCRIPTS = [
    "-- The whole schema.\nCREATE TABLE jobs (id int);\nCREATE INDEX jobs_id ON jobs (id);\n",
    "-- A column. It is empty.\nALTER TABLE jobs ADD COLUMN later int;\nCREATE TABLE other (id int);\n",
    "-- contract: from 2, needs 0.10.0\n-- Drop it.\nALTER TABLE jobs DROP COLUMN id;\n",
]


def test_steps_say_what_they_do() -> None:
    found = [(step.phase, step.compatible_from, step.locks, step.title) for step in steps_of(SCRIPTS)]
    assert found == [
        ("expand", 1, (), "The whole schema"),
        ("expand", 1, ("jobs",), "A column"),
        ("contract", 2, ("jobs",), "Drop it"),
    ]


def test_plan_has_the_steps_that_are_left() -> None:
    plan = migration_of(SCRIPTS, SchemaState(1, 1), [NodeVersion("a", "0.9.3"), NodeVersion("b", "0.10.0")])
    assert [step.number for step in plan.steps] == [2, 3]
    assert plan.old_nodes == [NodeVersion("a", "0.9.3")]


def test_contraction_is_refused_while_an_old_node_lives() -> None:
    expand, contract = steps_of(SCRIPTS)[1:]
    old = [NodeVersion("a", "0.9.3")]
    refuse_old_nodes(expand, old)
    refuse_old_nodes(contract, [NodeVersion("b", "0.10.0"), NodeVersion("c", "1.0")])
    with pytest.raises(MigrationRefused, match=r"a \(0\.9\.3\)"):
        refuse_old_nodes(contract, old)


def test_program_works_on_a_newer_schema_that_only_has_more() -> None:
    refuse_incompatible(SchemaState(7, 3), 3, "the database")
    with pytest.raises(SchemaTooNew, match="schema 3 or a later one; this Duetime knows 2"):
        refuse_incompatible(SchemaState(7, 3), 2, "the database")
