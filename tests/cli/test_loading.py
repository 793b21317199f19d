"""Find the user's App: module:app, a module, a package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duetime.cli.loading import load_app
from duetime.errors import ConfigError
from tests.cli.conftest import Duetime

APP = 'import duetime as dt\napp = dt.App("memory://")\n'
TASK = "from {} import app\n@app.task('t')\ndef t() -> None: ...\n"


@pytest.fixture(autouse=True)
def own_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(**files: str) -> None:
    for name, content in files.items():
        path = Path(
            f"{name.replace('__', '/', 1)}.py"
            if not name.endswith("__init__")
            else f"{name.removesuffix('__init__')}/__init__.py"
        )
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)


@pytest.mark.parametrize(
    "reference",
    ["plain:app", "plain", "shop.app:app", "shop.app", "shop.tasks", "shop", "shop.app:holder.app"],
)
def test_app_is_found_by_each_kind_of_reference(reference: str) -> None:
    write(
        plain=f"{APP}same = app\n",
        shop__init__="",
        shop__app=f"{APP}class holder:\n    app = app\n",
        shop__tasks=TASK.format("shop.app"),
    )
    assert load_app(reference).store.capabilities.durable is False


def test_package_reference_imports_its_tasks() -> None:
    write(shop__init__="", shop__app=APP, shop__tasks=TASK.format("shop.app"))
    assert list(load_app("shop").tasks) == ["t"]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("empty", "there is no App in empty "),
        ("bare", "there is no App in bare, bare.tasks "),
        ("two", "two has several Apps: name one of two:app, two:second"),
        ("empty:app", "empty.py) has no 'app'"),
        ("empty.py", "'empty.py' is a file: write its module, 'empty'"),
        ("./bare/tasks.py:app", "is a file: write its module, 'bare.tasks'"),
        ("nowhere", "no module 'nowhere'"),
        ("wrong", "importing wrong failed: SyntaxError"),
    ],
)
def test_wrong_app_reference_has_a_clear_error(reference: str, message: str) -> None:
    write(
        empty="",
        bare__init__="",
        bare__tasks="",
        two=f"{APP}second = dt.App('memory://')\n",
        wrong="def broken(:\n",
    )
    with pytest.raises(ConfigError) as refused:
        load_app(reference)
    assert message in refused.value.message


def test_backup_copy_and_adopt_use_the_store_of_the_app(duetime: Duetime) -> None:
    write(own='import duetime as dt\napp = dt.App("sqlite:///own.db")\n')
    duetime("migrate")  # the default store, which has no job
    duetime("--app", "own", "job", "submit", "hello", "--delay", "1h")
    assert duetime("--app", "own", "backup", "monday.db").status == 0
    assert duetime("--app", "own", "copy", "--to", "sqlite:///copied.db").status == 0
    for made in ("monday.db", "copied.db"):
        duetime("adopt", "--store", f"sqlite:///{made}")
        assert len(duetime("job", "list", "--json", "--store", f"sqlite:///{made}").json) == 1
    duetime("restore", "--to", "sqlite:///own.db")
    assert duetime("--app", "own", "adopt").out.endswith("adopted: nodes can start\n")


def test_store_without_a_url_must_be_named(duetime: Duetime) -> None:
    write(
        bare="import duetime as dt\nfrom duetime.stores.memory import MemoryStore\napp = dt.App(MemoryStore())\n"
    )
    wrong = duetime("--app", "bare", "backup", "monday.db")
    assert (wrong.status, "the store of bare has no URL: name the store with --store" in wrong.err) == (
        2,
        True,
    )


@pytest.mark.parametrize("given", ["flag", "variable"])
def test_store_of_the_command_line_replaces_that_of_the_code_and_says_so(
    given: str,
    duetime: Duetime,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(named='import duetime as dt\napp = dt.App("sqlite:///mine.db")\n')
    flags = ("--store", "sqlite:///other.db") if given == "flag" else ()
    if given == "variable":
        monkeypatch.setenv("DUETIME_STORE", "sqlite:///other.db")
    ran = duetime("--app", "named:app", *flags, "job", "submit", "work")
    assert ran.status == 0
    source = "--store" if given == "flag" else "DUETIME_STORE"
    assert caplog.messages == [
        f"the store is sqlite:///other.db ({source}), not sqlite:///mine.db of named:app"
    ]
    assert [path.name for path in folder.glob("*.db")] == ["other.db"]


def test_app_without_url_uses_the_store_of_its_command(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(free="import duetime as dt\napp = dt.App()\n")
    monkeypatch.setenv("DUETIME_STORE", "sqlite:///variable.db")
    for flags in ((), ("--store", "sqlite:///flag.db")):
        assert duetime("--app", "free:app", *flags, "job", "submit", "work").status == 0
    assert caplog.messages == []
    assert sorted(path.name for path in folder.glob("*.db")) == ["flag.db", "variable.db"]
