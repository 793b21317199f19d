"""Which store an App uses: the one in its code, or the one that the settings name."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

import duetime as dt
from duetime.app import store_choice
from duetime.testing import virtual


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("DUETIME_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    store_choice._warn_once.cache_clear()
    return tmp_path


def submit_one(app: dt.App) -> None:
    app.sync.submit("work", delay="1h")
    app.sync.close()


def test_app_without_url_uses_the_default_file(folder: Path) -> None:
    submit_one(dt.App())
    assert (folder / "duetime.db").exists()


@pytest.mark.parametrize("source", ["variable", ".env", "duetime.toml", "DUETIME_CONFIG"])
def test_app_without_url_uses_the_store_of_the_settings(
    source: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match source:
        case "variable":
            (folder / "duetime.toml").write_text('store = "sqlite:///wrong.db"')
            monkeypatch.setenv("DUETIME_STORE", "sqlite:///right.db")
        case ".env":
            (folder / "duetime.toml").write_text('store = "sqlite:///wrong.db"')
            (folder / ".env").write_text("DUETIME_STORE=sqlite:///right.db\n")
        case "DUETIME_CONFIG":
            (folder / "other.toml").write_text('store = "sqlite:///right.db"')
            monkeypatch.setenv("DUETIME_CONFIG", "other.toml")
        case _:
            (folder / source).write_text('store = "sqlite:///right.db"')
    submit_one(dt.App())
    assert [path.name for path in folder.glob("*.db")] == ["right.db"]


def test_wrong_store_setting_is_an_error_that_names_its_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETIME_STORE", " ")
    with pytest.raises(dt.DuetimeError, match="DUETIME_STORE"):
        dt.App()
    monkeypatch.delenv("DUETIME_STORE")
    (folder / "duetime.toml").write_text("store = [")
    with pytest.raises(dt.DuetimeError, match="TOML"):
        dt.App()


def test_settings_of_nodes_do_not_stop_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes sets such variables in every pod next to a service named duetime."""
    monkeypatch.setenv("DUETIME_PORT", "tcp://10.0.0.1:8080")
    monkeypatch.setenv("DUETIME_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("DUETIME_STORE", "memory://")
    assert dt.App().store_url == "memory://"


@pytest.mark.parametrize("face", ["async", "sync"])
async def test_url_in_the_code_wins_with_one_warning(
    face: str, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DUETIME_STORE", "postgresql://me:secret@db.invalid/jobs")
    with caplog.at_level(logging.WARNING, "duetime"):
        for _ in range(2):
            app = dt.App("sqlite:///mine.db")
            if face == "sync":
                app.sync.open()
                app.sync.close()
            else:
                async with app:
                    pass
    assert (folder / "mine.db").exists()
    (said,) = caplog.messages
    assert "sqlite:///mine.db" in said
    assert "postgresql://me:***@db.invalid/jobs (from DUETIME_STORE)" in said
    assert "secret" not in said


@pytest.mark.parametrize("named", ["sqlite:///mine.db", None])
async def test_no_warning_if_code_and_settings_agree(
    named: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if named is not None:
        monkeypatch.setenv("DUETIME_STORE", named)
    async with dt.App("sqlite:///mine.db"), dt.App():
        pass
    assert caplog.messages == []


async def test_kit_stays_in_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DUETIME_STORE", "sqlite:///production.db")
    for app in (dt.App(), dt.App("sqlite:///mine.db")):
        with virtual(app):
            await app.submit("work", delay="1h")
    assert list(folder.glob("*.db")) == []
    assert not [said for said in caplog.messages if "the store is" in said]
