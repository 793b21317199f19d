"""Wall clock, sleep, random numbers and code made at run time stay in their files, and the checker finds
violations."""

from __future__ import annotations

from pathlib import Path

import pytest

import duetime
from tests.layers.banned import findings

PACKAGE = Path(duetime.__file__).parent


@pytest.mark.slow
def test_source_uses_no_banned_call() -> None:
    found = [
        finding
        for path in PACKAGE.rglob("*.py")
        for finding in findings(path.read_text("utf-8"), path.relative_to(PACKAGE).as_posix())
    ]
    assert not found, "\n" + "\n".join(map(str, found))


@pytest.mark.parametrize(
    "planted",
    [
        "import time\ntime.time()",
        "import time as t\nt.sleep(1)",
        "from time import monotonic_ns as tick\ntick()",
        "import datetime\ndatetime.datetime.now()",
        "import datetime as dt\nmoment = dt.datetime.now(dt.UTC)",
        "from datetime import datetime\nread = datetime.utcnow",
        "import asyncio\nasync def rest():\n    await asyncio.sleep(1)",
        "from asyncio import sleep",
        "import random",
        "from random import choice",
        "from uuid import uuid4",
        "import uuid\nfield(default_factory=uuid.uuid4)",
        "import secrets",
        "import os\nos.urandom(16)",
        "from importlib import import_module",
        "import importlib.util",
        "__import__('os')",
        "eval('1')",
        "import builtins\nbuiltins.exec('1')",
        "def load():\n    import pickle",
        "import yaml\nyaml.load(text)",
    ],
)
def test_banned_call_is_reported(planted: str) -> None:
    assert findings(planted, "engine/planner.py")


@pytest.mark.parametrize(
    "innocent",
    [
        "secrets = read()\nprint(secrets)",
        "from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC)",
        "from uuid import UUID, uuid5",
        "from importlib.resources import files",
        "import importlib.metadata",
        "import asyncio\nasyncio.timeout(1)",
        "class Clock:\n    def time(self): ...\nClock().time()",
        "import re\nre.compile('a')",
        "import yaml\nyaml.safe_load(text)",
        "self.random.choice([1])",
        "def compile(text): ...\ncompile('* * * * *')",
    ],
)
def test_similar_allowed_code_is_not_reported(innocent: str) -> None:
    assert findings(innocent, "engine/planner.py") == []


@pytest.mark.parametrize(
    ("file", "source", "allowed"),
    [
        ("clock.py", "import time\ntime.time_ns()", True),
        ("engine/clock.py", "import time\ntime.time_ns()", False),
        ("engine/node/loop.py", "import asyncio\nasyncio.sleep(1)", True),
        ("model/ids.py", "import os\nos.urandom(10)", True),
        ("testing/simulation.py", "import random", True),
        ("testing/simulation.py", "import pickle", False),
        ("cli/serve.py", "import importlib\nimportlib.import_module(name)", True),
        ("cli/serve.py", "eval('1')", False),
        ("app/discovery.py", "import importlib\nimportlib.import_module(name)", True),
        ("app/app.py", "import importlib\nimportlib.import_module(name)", False),
    ],
)
def test_banned_call_is_allowed_in_its_own_file(file: str, source: str, allowed: bool) -> None:
    assert (findings(source, file) == []) is allowed
