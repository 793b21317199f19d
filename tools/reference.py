"""Write docs/reference/ from the code: settings, commands, errors. With --check, write nothing and fail if
a page is out of date."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from duetime import config_compat, errors
from duetime.cli.program import COMMANDS, load_command, program, status_of
from duetime.config import FILE, FILE_VARIABLE, TABLE, VARIABLES_FILE, Setting
from tools.schedules_schema import schema_text

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
DOCUMENTS = ROOT / "src" / "duetime" / "cli" / "documents"
SCHEMA = "schedules.schema.json"
NOTE = "<!-- Written by tools/reference.py from the code. Change the code, then run `make docs`. -->\n"
TYPERS_OWN = ("help", "install_completion", "show_completion")


def settings_page() -> str:
    rows = [
        f"| `{one.name}` | {one.form} | {_code(one.shown_default)} | {_flag(one)} | `{one.variable}` | "
        f"{one.text} |"
        for one in TABLE.values()
    ]
    intro = f"""# Settings

A setting is given as a flag, as an environment variable, or in a file. Secrets have no flag: the
process list would show them. The first of these sources that has a value wins:

1. the flag on the command line
2. the variable `DUETIME_<NAME>`
3. the same variable in the file `{VARIABLES_FILE}` of the current folder (see `.env.example`).
   Duetime reads its own settings from it; it exports nothing to your program
4. the file: `--config FILE`, or the file named by `{FILE_VARIABLE}`, or `{FILE}` in the current folder
5. the default

`store` holds for your programs, too: `dt.App()` reads 2 to 5. A URL in the code,
`dt.App("sqlite:///my.db")`, wins in programs, and the log says so if the settings name another
store. The command line with `--app` reads 1 to 4 before the URL in the code, and says so.

An API key is sent only to a server that comes from the same source or a closer one (1 is the
closest, 3 and `{FILE}` are the most distant): a folder may come from anyone. A
`key_file` that a folder names must be inside of it.

Unknown names and invalid values are errors.
Durations have a unit: `500ms`, `15s`, `10m`, `1h30m` or `30d`. Lists are separated by commas; the file may
also use TOML lists.
`DUETIME_FAILPOINTS` is for tests of Duetime itself.

```toml
# {FILE}
store = "postgresql://scheduler@db.example.org/duetime"
app = "tasks:app"
queues = ["billing", "mail"]
concurrency = 20
```
"""
    table = ["| setting | form | default | flag | variable | |", "|---|---|---|---|---|---|", *rows]
    return "\n".join([intro, *table, "", *_foreign_names(), ""])


def _foreign_names() -> Iterator[str]:
    yield "## Names of another scheduler\n"
    yield (
        "Duetime also reads these variables, so that a deployment can keep its `.env`. Its own settings "
        "win.\n"
    )
    yield "| variable | setting | |\n|---|---|---|"
    for name, alias in config_compat.KNOWN.items():
        yield f"| `{name}` | `{alias.setting}` | {alias.text} |"
    names = ", ".join(f"`{name}`" for name in (config_compat.HOST, *config_compat.POSTGRES))
    yield f"| {names} | `store` | PostgreSQL, when `{config_compat.HOST}` is set and no `app` is named. |"
    for name, reason in config_compat.UNNEEDED.items():
        yield f"| `{name}` | | No effect: {reason}. |"


def cli_page() -> str:
    intro = """# Command line

With `--server`, the commands `job`, `schedule`, `apply`, `export`, `shadow`, `dead`, `queue`, `task`, `node`,
`why`, `stats`, `events`, `key`, `doctor` and `simulate` go to a service over HTTP. Their output is the same
as on a store: see [clients](../client.md).

Times are shown in the zone of this machine with their offset, ids in full. `--json` writes what the HTTP API
returns: instants in UTC, and stable field names. Colours appear only on a terminal, and not if `NO_COLOR` is
set. Errors are one line on stderr, `error: <message> [code]`; see [errors](errors.md) for the codes.
`duetime --install-completion` sets up your shell to complete commands, names of schedules, queues and tasks,
states and time zones. If the program is not on the path, use `python -m duetime`.

Name your App as `module:app`. The module alone is enough if it holds a single App; so is a package whose
module `app` or `tasks` holds it.

| exit status | |
|---|---|
| 0 | done |
| 1 | refused, not found or not reachable; `doctor`: a warning; `broker`: the broker is down; \
`job submit --wait`: the job did not succeed |
| 2 | wrong use: unknown option, invalid value, invalid setting |
| 3 | `apply --plan`: something would change |
| 130 | interrupted with Ctrl-C |
| 141 | the reader of the output closed the pipe, as `head` does |
"""
    return "\n".join([intro, *_commands(get_command(program), "duetime")])


def _commands(command: Any, path: str) -> Iterator[str]:
    root = path == "duetime"
    subcommands = (
        {name: load_command(name) for name in COMMANDS} if root else getattr(command, "commands", {})
    )
    if root or not subcommands:
        yield _command(command, path)
    for name, inner in sorted(subcommands.items()):
        yield from _commands(inner, f"{path} {name}")


def _command(command: Any, path: str) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join([path, *(_argument(one) for one in arguments)])
    options = [
        one for one in command.params if one.param_type_name == "option" and one.name not in TYPERS_OWN
    ]
    rows = [f"| `{_argument(one)}` | {_cell(one.help)} |" for one in arguments]
    rows += [f"| `{_flags(one)}` | {_cell(one.help)} |" for one in options]
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
    shown = ["```sh", *examples, "```", ""] if examples else []
    return "\n".join(
        [
            f"## {path}",
            "",
            f"`{usage}`",
            "",
            " ".join(command.help.split()),
            "",
            "| | |",
            "|---|---|",
            *rows,
            "",
            *shown,
        ]
    )


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name).strip("[]")
    return name if argument.required else f"[{name}]"


def _flags(option: Any) -> str:
    names = ", ".join(option.opts)
    return names if option.is_flag or option.metavar is None else f"{names} {option.metavar}"


def _flag(setting: Setting) -> str:
    return "" if setting.secret else _code(setting.flag)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def errors_page() -> str:
    intro = """# Errors

Every error that Duetime raises on purpose is a `DuetimeError` with a `message` and a stable `code`. The exit
status is the one of the command line.

| error | is a | code | exit status | |
|---|---|---|---|---|
"""
    return intro + "\n".join(_error_rows()) + "\n"


def _error_rows() -> Iterator[str]:
    for line in (errors.__doc__ or "").splitlines():
        name, _, rest = line.lstrip("├└│─ ").partition(" ")
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, errors.DuetimeError):
            meaning = rest.partition(kind.code)[2].strip() if kind.code in rest else ""
            parents = ", ".join(f"`{parent.__name__}`" for parent in kind.__bases__)
            yield f"| `{name}` | {parents} | `{kind.code}` | {status_of(_made(kind))} | {_cell(meaning)} |"


def _made(kind: type[errors.DuetimeError]) -> errors.DuetimeError:
    return kind("field", "") if issubclass(kind, errors.InvalidInput) else kind("")


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
}


def out_of_date() -> dict[Path, str]:
    """What each file that differs should hold. The schema is also part of the package."""
    texts = {FOLDER / name: NOTE + page() for name, page in PAGES.items()}
    texts |= dict.fromkeys((FOLDER / SCHEMA, DOCUMENTS / SCHEMA), schema_text())
    return {
        file: text for file, text in texts.items() if not file.is_file() or file.read_text("utf-8") != text
    }


def main() -> None:
    stale = out_of_date()
    if "--check" in sys.argv:
        names = ", ".join(file.name for file in stale)
        sys.exit(f"out of date: {names}: run `make docs`" if stale else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, text in stale.items():
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
