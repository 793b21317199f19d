"""The table of settings: sources, precedence, errors."""

from __future__ import annotations

from dataclasses import fields, replace
from ipaddress import ip_address
from pathlib import Path

import pytest
from typer.main import get_command

from duetime import config, config_sources, config_values
from duetime.archives.formats import FORMATS
from duetime.cli.commands.serve import node_options
from duetime.cli.program import load_command, program
from duetime.engine.node.options import MAX_CONCURRENCY, MAX_LOAD, ROLES, NodeOptions
from duetime.errors import ConfigError
from duetime.model import duration
from tests.cli.conftest import Duetime

pytestmark = pytest.mark.usefixtures("folder")


def test_flag_beats_variable_beats_file_beats_default() -> None:
    Path("duetime.toml").write_text('lease = "1s"\ngrace = "1s"\nlookahead = "1s"')
    settings = config_sources.load(
        {"lease": "3s", "app": None}, {"DUETIME_LEASE": "2s", "DUETIME_GRACE": "2s"}
    )
    assert (settings.lease, settings.grace, settings.lookahead, settings.retention) == (
        "3s",
        "2s",
        "1s",
        "30d",
    )
    assert settings.sources == {"lease": "--lease", "grace": "DUETIME_GRACE", "lookahead": "duetime.toml"}
    assert settings.given("lease")
    assert not settings.given("retention")


def test_variables_of_a_dotenv_file_rank_between_environment_and_toml() -> None:
    Path("duetime.toml").write_text('lease = "1s"\ngrace = "1s"\nlookahead = "1s"')
    Path(".env").write_text("""
# settings of the service
DUETIME_LEASE=2s
export DUETIME_GRACE = '3s'  # quoted
DUETIME_QUEUES="mail, with # inside"
DUETIME_APP=tasks#1:app # a comment
a line that is not an assignment
OTHER=1
LOCK_TTL=9000
POSTGRES_DB=
""")
    settings = config_sources.load({}, {"DUETIME_LEASE": "4s"})
    assert (settings.lease, settings.grace, settings.lookahead) == ("4s", "3s", "1s")
    assert (settings.queues, settings.app) == (("mail", "with # inside"), "tasks#1:app")
    assert settings.sources["grace"] == "DUETIME_GRACE in .env"
    Path("duetime.toml").unlink()
    Path(".env").write_text("PORT=3000\nPOSTGRES_HOST=db\nDUETIME_CONFIG=other.toml")
    Path("other.toml").write_text('lease = "7s"')
    settings = config_sources.load({}, {})
    assert (settings.port, settings.store, settings.lease) == (
        3000, "postgresql://scheduler@db:5432/scheduler", "7s"
    )  # fmt: skip
    Path(".env").write_text("DUETIME_LEESE=2s")
    with pytest.raises(ConfigError, match="DUETIME_LEESE: unknown variable: did you mean DUETIME_LEASE"):
        config_sources.load({}, {})


def test_config_file_comes_from_flag_then_variable_then_duetime_toml() -> None:
    for name in ("duetime.toml", "variable.toml", "flag.toml"):
        Path(name).write_text(f'owner = 1\napp = "{name[:4]}:app"'.replace("owner = 1\n", ""))
    variable = {"DUETIME_CONFIG": "variable.toml"}
    assert config_sources.load({}, {}).app == "duet:app"
    assert config_sources.load({}, variable).app == "vari:app"
    assert config_sources.load({}, variable, Path("flag.toml")).app == "flag:app"


def test_config_file_may_use_toml_lists_and_numbers() -> None:
    Path("duetime.toml").write_text('queues = ["a", "b"]\nroles = "worker"\nconcurrency = 7\nmax_load = 1.5')
    settings = config_sources.load({}, {})
    assert (settings.queues, settings.roles, settings.concurrency, settings.max_load) == (
        ("a", "b"),
        ("worker",),
        7,
        1.5,
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('stoer = "x"', "duetime.toml: 'stoer' is not a setting: did you mean store?"),
        ("[store]\nurl = 1", "store (from duetime.toml): must be text"),
        ("store =", "duetime.toml: is not valid TOML"),
        ("concurrency = true", "concurrency (from duetime.toml): True must be a whole number"),
        ("queues = [1]", "queues (from duetime.toml): must be names"),
        ("lease = 15", "lease (from duetime.toml): 15 is not a duration"),
    ],
)
def test_invalid_config_file_is_refused(content: str, message: str) -> None:
    Path("duetime.toml").write_text(content)
    with pytest.raises(ConfigError) as refused:
        config_sources.load({}, {})
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("DUETIME_STOER", "x", "did you mean DUETIME_STORE?"),
        (
            "DUETIME_ROLES",
            "planner,cook",
            "roles (from DUETIME_ROLES): 'cook' is not one of api, planner, dispatcher, worker",
        ),
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
        ("DUETIME_RATE_LIMIT", "0/1s", "'0/1s' is not a rate"),
        ("DUETIME_MAX_CONNECTIONS", "0", "'0' must be a whole number from 1"),
        ("DUETIME_OPEN_METRICS", "perhaps", "'perhaps' must be yes or no"),
        ("DUETIME_ALLOW_PORTS", "80,http", "'http' must be a port"),
        ("DUETIME_PER_HOST", "-1", "'-1' must be a whole number from 1"),
        ("DUETIME_APP", "tasks:", "'tasks:' must be written module:app, or module"),
        ("DUETIME_STORE", " ", "must be text that is not empty"),
        ("DUETIME_CONFIG", "missing.toml", "missing.toml: cannot be read"),
    ],
)
def test_invalid_variable_is_refused(variable: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config_sources.load({}, {variable: value})
    assert message in refused.value.message


def test_loopback_targets_are_allowed_only_in_local_mode() -> None:
    """Otherwise a remote caller could reach services of this machine."""
    here = config.Settings(allow=("10.1.0.0/16",), allow_ports=(9000,), plain_http=False)
    assert (here.local, here.keys) == (True, False)
    for other in (
        replace(here, auth="keys"),
        replace(here, host="0.0.0.0"),
        replace(here, roles=("worker",)),
    ):
        assert not other.local
        assert other.egress().refusal("a", 9000, ip_address("127.0.0.1")) == "loopback"
        assert other.egress().refusal("a", 9000, ip_address("10.1.2.3")) is None
    egress = here.egress()
    assert egress.refusal("a", 9000, ip_address("127.0.0.1")) is None
    assert (
        egress.refusal("a", 9000, ip_address("8.8.8.8")),
        egress.refusal("a", 9001, ip_address("8.8.8.8")),
    ) == (None, "port 9001")
    assert (egress.plain_http, config.Settings().egress().plain_http) == (False, True)
    assert config_sources.load(
        {}, {"DUETIME_PLAIN_HTTP": "no", "DUETIME_ALLOW_PORTS": "9000, 9001"}
    ).allow_ports == (
        9000,
        9001,
    )


def test_known_variables_that_are_not_settings_are_accepted() -> None:
    assert (
        config_sources.load({}, {"DUETIME_FAILPOINTS": "x", "DUETIME_STORE": "", "PATH": "/bin"})
        == config.Settings()
    )


def test_setting_defaults_equal_engine_defaults() -> None:
    engine = NodeOptions("n", "v")
    given = node_options(config.Settings())
    assert given.pop("watchdog_url") is None  # becomes `ping`
    assert given.pop("archive_format") == FORMATS[0]  # part of `archive`
    assert config.ARCHIVE_FORMATS == FORMATS
    for name, value in given.items():
        wanted = duration.parse(value, name) if isinstance(value, str) else value
        assert getattr(engine, name) == wanted, name
    assert ("api", *ROLES) == config.ROLES
    assert (config_values.MAX_CONCURRENCY, config_values.MAX_LOAD) == (MAX_CONCURRENCY, MAX_LOAD)
    derived = {"name", "version", "broker", "ping", "permissions", "threads"}  # of other settings, or the app
    assert {one.name for one in fields(NodeOptions)} - derived == set(given)


def test_every_setting_is_a_flag_of_serve() -> None:
    root, serve = get_command(program), load_command("serve")
    flags = {flag for option in serve.params for flag in option.opts} | {
        "--server",
        "--key-file",
    }  # of commands, not of nodes
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
def test_passwords_in_store_urls_are_hidden(url: str, shown: str) -> None:
    assert config.hide_password(url) == shown


def test_commands_report_an_unknown_variable(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUETIME_LEESE", "1s")
    done = duetime("job", "list")
    assert (done.status, done.err) == (
        2,
        "error: DUETIME_LEESE: unknown variable: did you mean DUETIME_LEASE? [config_invalid]\n",
    )
    assert duetime("--help").status == 0
