"""Looking for a post whose creation is in doubt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from momentum.platform import OutcomeUnknown, TryLater
from momentum.platforms.linkedin import LinkedIn
from tests.momentum.platforms.fixtures import CountingMeter, Sandbox, post_of

TEXT = "We did it! (finally) #launch_day @[Acme](urn:li:organization:9)\n\nSee https://x.org/a_b#c"


async def test_post_whose_answer_was_lost_is_found(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, started = await sandbox.access(organization=77), datetime.now(UTC)
    for number in range(60):  # more than one page
        await linkedin.publish(access, post_of(f"Other {number}"), [], CountingMeter())
        if number == 3:
            await sandbox.faults("reset_after")
            with pytest.raises(OutcomeUnknown):
                await linkedin.publish(access, post_of(TEXT), [], CountingMeter())
    meter = CountingMeter()
    found = await linkedin.find(access, post_of(TEXT), started, meter)
    [post] = [post for post in await sandbox.posts() if post["text"].startswith("We did")]
    assert found is not None
    assert found.id == post["id"]
    assert found.url == f"{sandbox.url}/feed/update/{found.id}/"
    assert meter.requests == 2


async def test_post_that_was_not_created_is_not_found(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, started = await sandbox.access(organization=77), datetime.now(UTC)
    await linkedin.publish(access, post_of("Another text"), [], CountingMeter())
    assert await linkedin.find(access, post_of(TEXT), started, CountingMeter()) is None


async def test_older_post_with_the_same_text_is_not_it(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access(organization=77)
    await linkedin.publish(access, post_of(TEXT), [], CountingMeter())
    later = datetime.now(UTC) + timedelta(minutes=5)
    assert await linkedin.find(access, post_of(TEXT), later, CountingMeter()) is None


async def test_member_cannot_look(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        await linkedin.find(await sandbox.access(), post_of(TEXT), datetime.now(UTC), CountingMeter())
    assert caught.value.code == "not_readable"


async def test_missing_right_to_read_is_not_taken_for_absence(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access(organization=77)
    without_scope = replace(access, scopes=("w_organization_social",))
    with pytest.raises(OutcomeUnknown):
        await linkedin.find(without_scope, post_of(TEXT), datetime.now(UTC), CountingMeter())
    await sandbox.faults("forbidden", "posts.find")
    with pytest.raises(OutcomeUnknown) as caught:
        await linkedin.find(access, post_of(TEXT), datetime.now(UTC), CountingMeter())
    assert (caught.value.code, caught.value.status) == ("not_readable", 403)


async def test_post_without_text_cannot_be_compared(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access(organization=77)
    with pytest.raises(OutcomeUnknown) as caught:
        await linkedin.find(access, post_of(" "), datetime.now(UTC), CountingMeter())
    assert caught.value.code == "not_comparable"


async def test_failed_look_up_is_tried_later(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.faults("error_before", "posts.find", status=503)
    access = await sandbox.access(organization=77)
    with pytest.raises(TryLater):
        await linkedin.find(access, post_of(TEXT), datetime.now(UTC), CountingMeter())


async def test_search_that_ends_early_is_not_taken_for_absence(
    sandbox: Sandbox, linkedin: LinkedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("momentum.platforms.linkedin.posts.PAGE", 2)
    monkeypatch.setattr("momentum.platforms.linkedin.posts.MAX_POSTS", 4)
    access, started = await sandbox.access(organization=77), datetime.now(UTC)
    for number in range(5):
        await linkedin.publish(access, post_of(f"Other {number}"), [], CountingMeter())
    with pytest.raises(OutcomeUnknown) as caught:
        await linkedin.find(access, post_of(TEXT), started, CountingMeter())
    assert caught.value.code == "too_many"


def test_only_organizations_can_be_read(sandbox: Sandbox) -> None:
    assert LinkedIn(sandbox.settings(organizations=True)).can_find
    assert not LinkedIn(sandbox.settings(organizations=False)).can_find
