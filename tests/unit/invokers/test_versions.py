"""Payload versions: old payloads are brought up, newer ones are refused with a clear error and kept."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidInput, InvalidPayload
from duetime.model.codec import encode
from tests.unit.invokers.attempts import context, handler


async def work(customer: str, month: int) -> list[Any]:
    return [customer, month]


def upgrade(version: int, payload: dict[str, Any]) -> dict[str, Any]:
    if version == 1:
        payload = {"customer": payload["name"], "month": "2"}
    return {**payload, "month": int(payload["month"])}


async def run(payload: dict[str, Any], stored: int | None, **options: Any) -> Any:
    policies = None if stored is None else {"version": stored}
    return await handler(work, **options).invoke(context(policies=policies), encode(payload))


async def test_each_version_is_brought_up_to_today_s() -> None:
    options = {"version": 3, "upgrade": upgrade}
    assert await run({"name": "c"}, None, **options) == ["c", 2]
    assert await run({"customer": "c", "month": "4"}, 2, **options) == ["c", 4]
    assert await run({"customer": "c", "month": 5}, 3, **options) == ["c", 5]


async def test_without_a_way_up_the_payload_must_fit_as_it_is() -> None:
    assert await run({"customer": "c", "month": 5}, 1, version=2) == ["c", 5]
    with pytest.raises(InvalidPayload, match="month: expected `int`, got `str`"):
        await run({"customer": "c", "month": "5"}, 1, version=2)


@pytest.mark.parametrize("version", [1, 2])
async def test_payload_of_a_newer_version_is_rejected(version: int) -> None:
    with pytest.raises(
        InvalidPayload,
        match=f"newer code stored this as version 3, but this node knows 'work' only up to {version}",
    ):
        await run({"customer": "c", "month": 5}, 3, version=version)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda version, payload: payload["missing"], "from version 1 failed: KeyError"),
        (lambda version, payload: None, "must return the new payload"),
        (lambda version, payload: {"customer": 1, "month": 2}, "customer: expected `str`"),
    ],
)
async def test_an_upgrade_that_goes_wrong_is_told_and_the_payload_kept(broken: Any, message: str) -> None:
    with pytest.raises(InvalidPayload, match=message):
        await run({"name": "c"}, 1, version=2, upgrade=broken)


@pytest.mark.parametrize(
    "options", [{"version": 0}, {"version": True}, {"version": "2"}, {"upgrade": upgrade}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"version|upgrade"):
        handler(work, **options)
