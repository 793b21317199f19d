"""The conformance suite finds every mutant, on every store. `make mutants` runs this; `make test` does not."""

from __future__ import annotations

import pytest

from tests.mutants.mutants import ConformanceTest, Edits
from tests.mutants.stores import MutableStore

pytestmark = pytest.mark.server


async def finds(mutable: MutableStore, test: ConformanceTest) -> bool:
    """Whether the test fails. Errors are none: a statement that is no SQL any more shows nothing."""
    store = await mutable.empty()
    try:
        await test(store)
    except (AssertionError, ValueError):  # ValueError: not as many jobs as expected
        return True
    finally:
        await store.close()
    return False


async def test_mutant_is_found(
    mutable: MutableStore, tests: tuple[ConformanceTest, ...], edits: Edits
) -> None:
    for test in tests:
        assert not await finds(mutable, test), f"{test} fails without the mutant, too"
    with mutable.edited(edits):
        assert any([await finds(mutable, test) for test in tests]), "the conformance suite does not find it"
