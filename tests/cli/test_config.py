"""The table of settings: sources, precedence, refusals (J7)."""

from __future__ import annotations

from dataclasses import fields, replace
from ipaddress import ip_address
from pathlib import Path

import pytest
from typer.main import get_command

from duetime import config
from duetime.cli.program import program
from duetime.cli.serve import node_options
from duetime.engine.options import MOST_CONCURRENCY, MOST_LOAD, ROLES, NodeOptions
from duetime.errors import ConfigError
from duetime.model import duration
from tests.cli.conftest import Duetime

pytestmark = pytest.mark.usefixtures("folder")


def test_flag_beats_variable_beats_file_beats_default() -> None:
    Path("duetime.toml").write_text('lease = "1s"\ngrace = "1s"\nlookahead = "1s"')
    settings = config.load({"lease": "3s", "app": None}, {"DUETIME_LEASE": "2s", "DUETIME_GRACE": "2s"})
    assert (settings.lease, settings.grace, settings.lookahead, settings.retention) == ("3s", "2s", "1s", "30d")
    assert settings.sources == {"lease": "--lease", "grace": "DUETIME_GRACE", "lookahead": "duetime.toml"}
    assert settings.given("lease")
    assert not settings.given("retention")


def test_the_file_is_that_of_the_flag_else_of_the_variable_else_duetime_toml() -> None:
    for name in ("duetime.toml", "variable.toml", "flag.toml"):
        Path(name).write_text(f'owner = 1\napp = "{name[:4]}:app"'.replace("owner = 1\n", ""))
    variable = {"DUETIME_CONFIG": "variable.toml"}
    assert config.load({}, {}).app == "duet:app"
    assert config.load({}, variable).app == "vari:app"
    assert config.load({}, variable, Path("flag.toml")).app == "flag:app"


def test_lists_and_numbers_may_be_toml_values() -> None:
    Path("duetime.toml").write_text('queues = ["a", "b"]\nroles = "worker"\nconcurrency = 7\nmax_load = 1.5')
    settings = config.load({}, {})
    assert (settings.queues, settings.roles, settings.concurrency, settings.max_load) == (("a", "b"), ("worker",), 7, 1.5)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('stoer = "x"', "duetime.toml: 'stoer' is no setting: did you mean store?"),
        ("[store]\nurl = 1", "store (from duetime.toml): must be text"),
        ("store =", "duetime.toml: is not TOML"),
        ("concurrency = true", "concurrency (from duetime.toml): True must be a whole number"),
        ("queues = [1]", "queues (from duetime.toml): must be names"),
        ("lease = 15", "lease (from duetime.toml): 15 is not a duration"),
    ],
)
def test_a_wrong_file_is_refused(content: str, told: str) -> None:
    """J7"""
    Path("duetime.toml").write_text(content)
    with pytest.raises(ConfigError) as refused:
        config.load({}, {})
    assert told in refused.value.message


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("DUETIME_STOER", "x", "did you mean DUETIME_STORE?"),
        ("DUETIME_ROLES", "planner,cook", "roles (from DUETIME_ROLES): 'cook' is not one of api, planner, worker"),
        ("DUETIME_ROLES", ",", "must name at least one"),
        ("DUETIME_CONCURRENCY", "0", "'0' must be a whole number from 1"),
        ("DUETIME_CONCURRENCY", "many", "'many' must be a whole number"),
        ("DUETIME_MAX_LOAD", "0", "'0' must be a number above 0"),
        ("DUETIME_MAX_LOAD", "nan", "'nan' must be a number above 0"),
        ("DUETIME_MAX_LOAD", "some", "'some' must be a number above 0"),
        ("DUETIME_LEASE", "1ms", "1ms is too short: use 500ms or more"),
        ("DUETIME_LEASE", "-5s", "is negative"),
        ("DUETIME_LOOKAHEAD", "10ms", "too short"),
        ("DUETIME_GRACE", "soon", "'soon' is not a duration"),
        ("DUETIME_RETENTION", "1s", "too short"),
        ("DUETIME_LOG_LEVEL", "loud", "'loud' is not one of debug, info, warning, error"),
        ("DUETIME_LOG_FORMAT", "xml", "'xml' is not one of text, json"),
        ("DUETIME_AUTH", "maybe", "'maybe' is not one of none, keys"),
        ("DUETIME_PUBLIC_URL", "https://user@duetime.example", "must be written like https://"),
        ("DUETIME_PROXIES", "10.0.0.1/8", "'10.0.0.1/8' is not a network"),
        ("DUETIME_RATE_LIMIT", "0/1s", "'0/1s' is no rate"),
        ("DUETIME_MAX_CONNECTIONS", "0", "'0' must be a whole number from 1"),
        ("DUETIME_OPEN_METRICS", "perhaps", "'perhaps' must be yes or no"),
        ("DUETIME_ALLOW_PORTS", "80,http", "'http' must be a port"),
        ("DUETIME_PER_HOST", "-1", "'-1' must be a whole number from 1"),
        ("DUETIME_APP", "tasks:", "'tasks:' must be written module:app, or module"),
        ("DUETIME_STORE", " ", "must be text and not empty"),
        ("DUETIME_CONFIG", "missing.toml", "missing.toml: cannot be read"),
    ],
)
def test_a_wrong_variable_is_refused(variable: str, value: str, told: str) -> None:
    """J7"""
    with pytest.raises(ConfigError) as refused:
        config.load({}, {variable: value})
    assert told in refused.value.message


def test_what_holds_follows_from_where_it_listens_and_whom_it_asks() -> None:
    """S2, S31: this machine may be called only where nobody from elsewhere can ask for it."""
    here = config.Settings(allow=("10.1.0.0/16",), allow_ports=(9000,), plain_http=False)
    assert (here.local, here.keys) == (True, False)
    for other in (replace(here, auth="keys"), replace(here, host="0.0.0.0"), replace(here, roles=("worker",))):
        assert not other.local
        assert other.egress().refusal("a", 9000, ip_address("127.0.0.1")) == "loopback"
        assert other.egress().refusal("a", 9000, ip_address("10.1.2.3")) is None
    egress = here.egress()
    assert egress.refusal("a", 9000, ip_address("127.0.0.1")) is None
    assert (egress.refusal("a", 9000, ip_address("8.8.8.8")), egress.refusal("a", 9001, ip_address("8.8.8.8"))) == (None, "port 9001")
    assert (egress.plain_http, config.Settings().egress().plain_http) == (False, True)
    assert config.load({}, {"DUETIME_PLAIN_HTTP": "no", "DUETIME_ALLOW_PORTS": "9000, 9001"}).allow_ports == (9000, 9001)


def test_known_variables_that_are_no_settings_pass() -> None:
    assert config.load({}, {"DUETIME_FAILPOINTS": "x", "DUETIME_STORE": "", "PATH": "/bin"}) == config.Settings()


def test_defaults_are_those_of_the_engine() -> None:
    engine = NodeOptions("n", "v")
    for name, value in node_options(config.Settings()).items():
        wanted = duration.parse(value, name) if isinstance(value, str) else value
        assert getattr(engine, name) == wanted, name
    assert ("api", *ROLES) == config.ROLES
    assert (config.MOST_CONCURRENCY, config.MOST_LOAD) == (MOST_CONCURRENCY, MOST_LOAD)
    assert {one.name for one in fields(NodeOptions)} - {"name", "version"} == set(node_options(config.Settings()))


def test_every_setting_is_a_flag_of_serve() -> None:
    root = get_command(program)
    serve = root.commands["serve"]  # type: ignore[attr-defined]  # the root is a group
    flags = {flag for option in serve.params for flag in option.opts} | {"--server", "--key-file"}  # of commands, not of nodes
    assert {"--server", "--key-file"} <= {flag for option in root.params for flag in option.opts}
    assert {setting.flag for setting in config.TABLE.values() if not setting.secret} <= flags
    assert not {setting.flag for setting in config.TABLE.values() if setting.secret} & flags


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgresql://anna:s3cret@db:5432/x", "postgresql://anna:***@db:5432/x"),
        ("postgresql://anna@db/x?sslmode=verify-full", "postgresql://anna@db/x?sslmode=verify-full"),
        ("postgresql://db/x?user=anna&password=s3cret", "postgresql://db/x?user=anna&password=***"),
        ("postgresql://anna:s3@cret@db/x", "postgresql://anna:***@db/x"),
    ],
)
def test_passwords_are_hidden(url: str, shown: str) -> None:
    """S38"""
    assert config.hide_password(url) == shown


def test_the_command_line_says_so(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUETIME_LEESE", "1s")
    done = duetime("job", "list")
    assert (done.status, done.err) == (
        2,
        "error: DUETIME_LEESE: no setting has this variable: did you mean DUETIME_LEASE? [config_invalid]\n",
    )
    assert duetime("--help").status == 0
