"""The nodes page of a fleet with a broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.servers.brokers import RedisServer
from tests.ui.screens import Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow
ROLES = ("--roles", "api,planner,dispatcher")  # without a worker, messages stay in the broker


async def test_nodes_page_shows_roles_broker_depth_and_leases(page: Page, tmp_path: Path) -> None:
    with RedisServer() as redis, Site(tmp_path, "--queue", redis.url, *ROLES) as site:
        for _ in range(3):
            site.submit("greet", queue="billing", priority=9)
        screen = Screen(page, site)
        await screen.open("/nodes")
        node = page.get_by_role("table", name="Nodes").get_by_role("row").last
        await expect(node).to_contain_text("planner, dispatcher")
        await expect(node).to_contain_text(f"redis://worker:***@127.0.0.1:{redis.port}")
        leases = page.get_by_role("table", name="Leases")
        await expect(leases).to_contain_text("64 schedule segments: 0\u201363")
        await expect(leases).to_contain_text("64 dispatch segments: 0\u201363")
        await expect(leases.get_by_role("row")).to_have_count(4)  # the head, the leader, and one of each kind
        broker = page.get_by_role("region", name="Broker")
        await expect(broker).to_contain_text("answers")
        depth = broker.get_by_role("table", name="Messages in the broker").get_by_role("row").last
        await expect(depth).to_contain_text("billing9")
        redis.stop()
        await screen.open("/nodes")
        await expect(broker).to_contain_text(
            "does not answer: workers claim jobs from the store until it does"
        )
        await expect(node).to_contain_text("planner, dispatcher")


async def test_nodes_page_without_a_broker_shows_none(page: Page, site: Site) -> None:
    screen = Screen(page, site)
    await screen.open("/nodes")
    await expect(page.get_by_role("table", name="Leases")).to_contain_text("64 schedule segments")
    await expect(page.get_by_role("columnheader", name="Broker")).to_have_count(0)
    await expect(page.get_by_role("region", name="Broker")).to_have_count(0)
