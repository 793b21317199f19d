"""The test kit and `connection=`: after a rollback there is no job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import duetime as dt
from duetime import testing

app = dt.App("postgresql://nowhere/jobs")


@app.task("ship")
def ship(order: int) -> int:
    return order


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path}/orders.db")
    yield engine
    engine.dispose()


def orders() -> list[int]:
    return [job.arguments["order"] for job in testing.submitted(app, ship)]


def test_recording_does_not_count_a_job_of_a_session_that_is_rolled_back(engine: Engine) -> None:
    with testing.recording(app), Session(engine) as session:
        app.sync.submit(ship, order=1, connection=session)
        session.rollback()
        assert orders() == []
        app.sync.submit(ship, order=2, connection=session)
        session.commit()
        session.execute(text("SELECT 1"))
        session.rollback()  # of another transaction
        assert orders() == [2]
        app.sync.submit(ship, order=3, connection=session)
        assert orders() == [2, 3]
        session.close()
        assert orders() == [2]


def test_savepoint_that_is_rolled_back_takes_only_its_own_jobs(engine: Engine) -> None:
    with testing.recording(app), engine.begin() as connection:
        app.sync.submit(ship, order=1, connection=connection)
        with connection.begin_nested() as outer:
            app.sync.submit(ship, order=2, connection=connection)
            with connection.begin_nested():
                app.sync.submit_many([dt.NewJob(ship, {"order": 3})], connection=connection)
            assert orders() == [1, 2, 3]
            outer.rollback()
        assert orders() == [1]


async def test_async_session_is_watched_too(postgres_url: str) -> None:
    engine = create_async_engine(postgres_url.replace("postgresql:", "postgresql+asyncpg:"))
    with testing.recording(app):
        async with AsyncSession(engine) as session:
            await ship.submit(order=1, connection=session)
            await session.rollback()
            lost = await ship.submit(order=2, connection=session)
        async with AsyncSession(engine) as session, session.begin():
            await ship.submit(order=3, connection=session)
        async with engine.connect() as connection:
            await ship.submit(order=4, connection=connection)
            await connection.commit()
        assert orders() == [3, 4]
        with pytest.raises(dt.JobNotFound):
            await lost.refresh()
    await engine.dispose()


async def test_job_that_was_rolled_back_does_not_run_in_virtual_time(engine: Engine) -> None:
    async with testing.virtual(app) as time:
        with Session(engine) as session:
            await ship.submit(order=1, delay="1h", connection=session)
            session.rollback()
            kept = await ship.submit(order=2, delay="1h", connection=session)
            session.commit()
        await time.advance("2h")
        assert (await kept.refresh()).result == 2
        assert [job.payload for job in await app.jobs()] == [{"order": 2}]
