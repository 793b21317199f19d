"""Lists, search, calendar, hints and CSV."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from momentum.database import tables
from momentum.ids import new_id
from momentum.model import Account, PostState
from momentum.posts.local_time import resolve
from momentum.posts.log import safe_cell
from tests.momentum.api.scene import Client, soon
from tests.momentum.media import samples

DAY = 86_400


async def add_posts(client: Client, rows: list[dict[str, Any]]) -> None:
    """Rows without jobs: for lists."""
    now = datetime.now(UTC)
    common = {
        "tenant": client.tenant,
        "state": "scheduled",
        "version": 1,
        "text": "text",
        "content": {"media": [], "article": None, "visibility": "PUBLIC"},
        "labels": [],
        "zone": "UTC",
        "created_at": now,
        "updated_at": now,
        "published_at": None,
    }
    async with client.service.momentum.database.transaction() as connection:
        for start in range(0, len(rows), 1_000):
            chunk = [{"id": new_id("post"), **common, **row} for row in rows[start : start + 1_000]]
            await connection.execute(insert(tables.posts), chunk)


async def calendar(client: Client, **query: Any) -> Any:
    return (await client.call("GET", "/calendar", params=query))["days"]


async def test_list_is_paged_filtered_and_searched(client: Client) -> None:
    one, two = await client.stored_account(), await client.stored_account(platform="mastodon")
    base = datetime(2027, 5, 1, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"account_id": one.id, "scheduled_at": base + timedelta(hours=number // 2), "text": f"Post {number}"}
        for number in range(9)
    ]
    rows.append({"account_id": two.id, "scheduled_at": None, "state": "draft", "text": "50% *off* Größe"})
    rows[3]["labels"] = ["launch", "ümlaut"]
    await add_posts(client, rows)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": 4} | ({"cursor": cursor} if cursor else {})
        page = await client.call("GET", "/posts", params=query)
        seen += [post["text"] for post in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(row["text"] for row in rows)
    assert (seen[0], seen[-1]) == ("Post 8", "50% *off* Größe")

    async def texts(**query: Any) -> list[str]:
        return [post["text"] for post in (await client.call("GET", "/posts", params=query))["items"]]

    assert await texts(q="0% *") == ["50% *off* Größe"]
    assert await texts(q="POST 3") == ["Post 3"]
    assert await texts(label="ümlaut") == await texts(label="launch") == ["Post 3"]
    assert await texts(label="laun") == []
    assert await texts(state="draft") == await texts(platform="mastodon") == ["50% *off* Größe"]
    assert len(await texts(account=one.id)) == 9
    day = {"from": "2027-05-01T01:00:00Z", "to": "2027-05-01T02:00:00Z"}
    assert sorted(await texts(**day)) == ["Post 2", "Post 3"]
    await client.call("GET", "/posts", 422, params={"from": "2027-05-01T01:00:00"})
    await client.call("GET", "/posts", 422, params={"cursor": "nonsense"})


@pytest.mark.parametrize("text", [f"{2**63}/post_1", f"-{2**70}/post_1", "1/\0", "1"])
async def test_forged_cursor_is_refused(client: Client, text: str) -> None:
    cursor = urlsafe_b64encode(text.encode()).decode().rstrip("=")
    for path in ("/posts", "/log"):
        answer = await client.get(path, 200 if text == "1" else 422, cursor=cursor)
        assert text == "1" or [one["code"] for one in answer["problems"]] == ["cursor_invalid"]


@pytest.mark.parametrize(
    ("first", "last", "field"),
    [
        ("0001-01-01", "0001-01-02", "from"),
        ("9999-12-30", "9999-12-31", "to"),
    ],
)
async def test_calendar_has_an_end(client: Client, first: str, last: str, field: str) -> None:
    for zone in ("Asia/Tokyo", "UTC", "Etc/GMT+12"):
        answer = await client.get("/calendar", 422, **{"from": first, "to": last}, zone=zone)
        assert [(one["field"], one["code"]) for one in answer["problems"]] == [(field, "range_invalid")]
        for day in ("0001-01-02", "9999-12-30"):
            [found] = await calendar(client, **{"from": day, "to": day}, zone=zone, per_hour=1)
            assert found["date"] == day


@pytest.mark.parametrize(
    "given",
    [
        {"scheduled_at": "0001-01-01T00:00:00+14:00"},
        {"scheduled_at": "9999-12-31T23:59:59-12:00"},
        {"local_time": "0001-01-01T00:00", "zone": "Asia/Tokyo"},
        {"local_time": "9999-12-31T23:59", "zone": "Etc/GMT+12"},
    ],
)
async def test_time_outside_of_the_calendar_is_refused(client: Client, given: dict[str, str]) -> None:
    account = await client.stored_account()
    answer = await client.post("/posts", {"account_id": account.id, "text": "x", **given}, 422)
    assert [(one["field"], one["code"]) for one in answer["problems"]] == [
        (next(iter(given)), "time_invalid")
    ]


async def test_calendar_counts_days_of_the_zone(client: Client) -> None:
    account = await client.stored_account()
    picture = await client.upload(samples.image())
    instants = ["2027-03-27T22:59:00", "2027-03-27T23:00:00", "2027-03-28T21:59:00", "2027-03-28T22:00:00"]
    for text in instants:
        body = {
            "account_id": account.id,
            "text": f"\n  {text} {'long ' * 30}\nsecond line",
            "scheduled_at": f"{text}Z",
            "media": [{"media_id": picture["id"]}],
        }
        await client.post("/posts", body, 201)
    span = {"from": "2027-03-27", "to": "2027-03-29", "zone": "Europe/Berlin"}
    days = await calendar(client, **span)
    # 28 March has 23 hours: from 23:00 to 22:00 UTC.
    assert [(day["date"], day["count"]) for day in days] == [
        ("2027-03-27", 1),
        ("2027-03-28", 2),
        ("2027-03-29", 1),
    ]
    assert days[1]["states"] == {"scheduled": 2}
    slim = days[1]["posts"][0]
    assert slim["title"].startswith("2027-03-27T23:00:00 long")
    assert len(slim["title"]) == 80
    assert (slim["media_kind"], slim["platform"], slim["version"]) == ("image", "linkedin", 1)
    assert len((await calendar(client, **span, per_day=1))[1]["posts"]) == 1
    assert [day["count"] for day in await calendar(client, **span, state="failed")] == [0, 0, 0]
    assert [day["count"] for day in await calendar(client, **span, account="acc_1")] == [0, 0, 0]
    await client.call("GET", "/calendar", 422, params={"from": "2027-01-01", "to": "2027-12-31"})
    await client.call("GET", "/calendar", 422, params={"from": "2027-01-02", "to": "2027-01-01"})


async def test_calendar_counts_hours_of_the_zone(client: Client) -> None:
    account = await client.stored_account()
    instants = [
        datetime(2027, 10, 31, hour, minute, tzinfo=UTC) for hour in (0, 1, 2) for minute in (5, 10, 15, 20)
    ]  # in Berlin: 02:05 twice, and 03:05
    await add_posts(client, [{"account_id": account.id, "scheduled_at": at} for at in instants])
    span = {"from": "2027-10-30", "to": "2027-10-31", "zone": "Europe/Berlin"}
    _, day = await calendar(client, **span, per_hour=3)
    assert (day["count"], day["hours"]) == (12, {"2": 8, "3": 4})
    shown = [datetime.fromisoformat(post["scheduled_at"]) for post in day["posts"]]
    assert shown == [*instants[:3], *instants[8:11]]
    late = datetime(2027, 10, 31, 22, 30, tzinfo=UTC)  # 23:30, in the 25th hour of this day
    await add_posts(client, [{"account_id": account.id, "scheduled_at": late}])
    autumn = await calendar(client, **{**span, "to": "2027-11-01"})
    assert [(one["count"], one["hours"]) for one in autumn] == [(0, {}), (13, {}), (0, {})]
    spring = {"from": "2027-03-28", "to": "2027-03-28", "zone": "Europe/Berlin"}
    at = datetime(2027, 3, 28, 1, 5, tzinfo=UTC)  # 03:05; there is no 02:05
    await add_posts(client, [{"account_id": account.id, "scheduled_at": at}])
    assert (await calendar(client, **spring, per_hour=3))[0]["hours"] == {"3": 1}
    await client.call("GET", "/calendar", 422, params={**span, "to": "2027-11-08", "per_hour": 3})


async def test_calendar_of_ten_thousand_posts(client: Client, record_property: Any) -> None:
    """The time is reported, not asserted: other programs share this machine."""
    accounts = [await client.stored_account() for _ in range(50)]
    base = datetime(2027, 7, 1, tzinfo=UTC)
    rows = [
        {
            "account_id": accounts[number % 50].id,
            "scheduled_at": base + timedelta(seconds=number * 31 * DAY // 10_000),
            "text": f"Post {number} " + "words " * 100,
            "state": list(PostState)[number % 9].value,
        }
        for number in range(10_000)
    ]
    await add_posts(client, rows)
    span = {"from": "2027-07-01", "to": "2027-07-31", "zone": "Europe/Berlin"}
    times, days = [], []
    for _ in range(7):
        began = time.perf_counter()
        days = await calendar(client, **span)
        times.append((time.perf_counter() - began) * 1_000)
    assert sum(day["count"] for day in days) > 9_900
    assert all(len(day["posts"]) == 6 for day in days)
    median = sorted(times)[3]
    record_property("calendar_ms", median)
    print(f"calendar of 10,000 posts on {client.service.database_kind}: median {median:.1f} ms of {times}")  # noqa: T201


async def test_hints_come_from_own_posts_only(client: Client, other_client: Client) -> None:
    account = await client.stored_account()
    assert (await client.get("/hints"))["hints"] == []
    monday = datetime(2026, 11, 2, 8, 5, tzinfo=UTC)
    weeks = [{"published_at": monday - timedelta(days=7 * week)} for week in range(8)]
    rows = [{"account_id": account.id, "state": "published", "scheduled_at": monday, **one} for one in weeks]
    await add_posts(client, rows)
    few = await client.get("/hints")
    assert (few["hints"], few["posts"]) == ([], 8)
    assert "need 10" in few["reason"]
    await add_posts(client, rows[:3])
    found = await client.get("/hints", zone="Europe/Berlin")
    assert found["hints"][0] == {"weekday": 0, "hour": 10, "posts": 7}  # in summer; nine in winter
    assert found["reason"] is None
    assert (await client.get("/hints", account="acc_1"))["hints"] == []
    assert (await other_client.get("/hints"))["posts"] == 0


CSV = """account,text,scheduled_at,zone,media,article_url,labels
{account},"First, with a comma
and a line",2027-06-01 09:00,Europe/Berlin,,,launch; summer
{urn},Second,2027-06-02T09:00:00Z,,chart.png,,
{account},A draft,,,,https://example.org/read,
"""


async def import_csv(client: Client, text: str, expect: int = 200, **query: str) -> Any:
    headers = {"content-type": "text/csv"}
    return await client.call(
        "POST", "/posts/import", expect, data=text.encode(), params=query, headers=headers
    )


async def test_csv_is_imported_all_or_none(client: Client) -> None:
    account = await client.stored_account()
    text = CSV.format(account=account.id, urn=account.author.urn)
    missing = await import_csv(client, text)
    assert missing["created"] == 0
    assert [row["ok"] for row in missing["rows"]] == [True, False, True]
    assert [one["field"] for one in missing["rows"][1]["problems"]] == ["media"]
    assert [row["line"] for row in missing["rows"]] == [3, 4, 5]
    assert (await client.get("/posts"))["items"] == []
    picture = await client.upload(samples.image(), "chart.png")
    dry = await import_csv(client, text, dry_run="1")
    assert ([row["ok"] for row in dry["rows"]], dry["created"]) == ([True] * 3, 0)
    assert (await client.get("/posts"))["items"] == []
    done = await import_csv(client, "\ufeff" + text.replace("\n", "\r\n"))
    assert done["created"] == 3
    first, second, draft = [await client.get(f"/posts/{row['post_id']}") for row in done["rows"]]
    assert first["scheduled_at"] == "2027-06-01T07:00:00.000Z"
    assert (first["labels"], "\n" in first["text"]) == (["launch", "summer"], True)
    assert second["media"][0]["media_id"] == picture["id"]
    assert (draft["state"], draft["article"]["title"]) == ("draft", "example.org")


async def test_csv_in_part_stores_the_valid_rows(client: Client) -> None:
    account = await client.stored_account()
    text = f"account;text;scheduled_at\n{account.id};good;\n{account.id};{'x' * 3001};\nwho;bad;tomorrow\n"
    done = await import_csv(client, text, partial="1")
    assert (done["created"], [row["ok"] for row in done["rows"]]) == (1, [True, False, False])
    codes = [[one["code"] for one in row["problems"]] for row in done["rows"]]
    assert codes == [[], ["text_too_long"], ["account_unknown", "time_invalid"]]
    assert len((await client.get("/posts"))["items"]) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "csv_columns"),
        ("account,words\n", "csv_columns"),
        ('account,text\na,"open', "csv_invalid"),
        ("account,text\na,b,c\n", "csv_invalid"),
        ("account,text\n" + "a,b\n" * 1_001, "csv_too_long"),
    ],
)
async def test_file_that_is_not_csv_is_refused(client: Client, text: str, code: str) -> None:
    answer = await import_csv(client, text, 422)
    assert [(one["field"], one["code"]) for one in answer["problems"]] == [("body", code)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        (-5, "-5"),
        (None, ""),
        ("plain", "plain"),
    ],
)
def test_cell_is_never_a_formula(value: object, expected: str) -> None:
    assert safe_cell(value) == expected


@pytest.mark.parametrize(
    ("local", "zone", "expected"),
    [
        ("2027-03-28T02:00", "Europe/Berlin", "2027-03-28T01:00:00+00:00"),
        ("2027-03-28T02:59", "Europe/Berlin", "2027-03-28T01:00:00+00:00"),
        ("2027-10-31T02:00", "Europe/Berlin", "2027-10-31T00:00:00+00:00"),
        ("2027-10-03T02:15", "Australia/Lord_Howe", "2027-10-02T15:30:00+00:00"),  # a gap of half an hour
        ("2011-12-30T12:00", "Pacific/Apia", "2011-12-30T10:00:00+00:00"),  # a day that did not exist
    ],
)
def test_skipped_time_is_the_end_of_the_gap(local: str, zone: str, expected: str) -> None:
    assert resolve(local, zone).instant.isoformat() == expected


async def test_account_of_posts_is_shown_with_its_platform(client: Client) -> None:
    account: Account = await client.stored_account(platform="linkedin")
    post = await client.post(
        "/posts", {"account_id": account.id, "text": "x", "scheduled_at": soon(DAY)}, 201
    )
    (listed,) = (await client.get("/posts"))["items"]
    assert listed == post
    assert post["platform"] == "linkedin"
