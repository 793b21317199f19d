"""Writes docs/reference/ from the code: settings, commands, errors. With --check it writes nothing and fails when a page is out of date."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from duetime import config_seeds, errors
from duetime.cli.failure import status_of
from duetime.cli.program import program
from duetime.config import FILE, FILE_VARIABLE, TABLE, Setting

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written by tools/reference.py from the code. Change the code, then run `make docs`. -->\n"
TYPERS_OWN = ("help", "install_completion", "show_completion")


def settings_page() -> str:
    rows = [
        f"| `{one.name}` | {one.form} | {_code(one.shown_default)} | {_flag(one)} | `{one.variable}` | {one.text} |"
        for one in TABLE.values()
    ]
    intro = f"""# Settings

Every setting can be given as a flag, as a variable of the environment, or in a TOML file; secrets have no flag, because every process
of the machine could read it. What stands earlier in this list wins:

1. the flag on the command line
2. the variable `DUETIME_<NAME>`
3. the file: `--config FILE`, else the file named by `{FILE_VARIABLE}`, else `{FILE}` in the current folder, if there is one
4. the default

A name that is no setting, in the file or as a `DUETIME_` variable, is refused, and so is a value that cannot be meant.
Times are written like `500ms`, `15s`, `10m`, `1h30m` or `30d`; lists with commas, in the file also as TOML lists.
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
    yield "These variables are understood, too, so that a deployment can keep its `.env`; whatever is said to Duetime itself wins.\n"
    yield "| variable | setting | |\n|---|---|---|"
    for name, seed in config_seeds.KNOWN.items():
        yield f"| `{name}` | `{seed.setting}` | {seed.text} |"
    names = ", ".join(f"`{name}`" for name in (config_seeds.HOST, *config_seeds.POSTGRES))
    yield f"| {names} | `store` | PostgreSQL, when `{config_seeds.HOST}` is set and no `app` is named. |"
    for name, reason in config_seeds.UNNEEDED.items():
        yield f"| `{name}` | | No effect: {reason}. |"


def cli_page() -> str:
    intro = """# Command line

With `--server` the commands `job`, `schedule`, `dead`, `queue`, `node`, `why`, `stats` and `events` go to a service over HTTP and say the
same as on a store: see [clients](../client.md).

Times are shown in the zone of this machine with their offset, ids in full. `--json` writes the same for programs, as the HTTP API shows
it: instants in UTC, fields that stay. Colours appear only on a terminal, and not when `NO_COLOR` is set. Errors are one line on stderr,
`error: <message> [code]`; the codes are in [errors](errors.md). `duetime --install-completion` teaches the shell to complete commands,
names of schedules, queues and tasks, states and zones. Where the script is not on the path, `python -m duetime` is the same.

Your App is named `module:app`; or by its module alone, when that holds one App only; or by a package whose module `app` or `tasks` has it.

| exit status | |
|---|---|
| 0 | done |
| 1 | refused, not found, not reachable; `doctor`: something needs attention; `job submit --wait`: the job did not succeed |
| 2 | the command was written wrongly: unknown option, unreadable value, wrong setting |
| 130 | interrupted with Ctrl-C |
| 141 | whoever read the output has closed the pipe, as `head` does |
"""
    return "\n".join([intro, *_commands(get_command(program), "duetime")])


def _commands(command: Any, path: str) -> Iterator[str]:
    subcommands = getattr(command, "commands", {})
    if not subcommands or path == "duetime":
        yield _command(command, path)
    for name, inner in sorted(subcommands.items()):
        yield from _commands(inner, f"{path} {name}")


def _command(command: Any, path: str) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join([path, *(_argument(one) for one in arguments)])
    options = [one for one in command.params if one.param_type_name == "option" and one.name not in TYPERS_OWN]
    rows = [f"| `{_argument(one)}` | {_cell(one.help)} |" for one in arguments]
    rows += [f"| `{_flags(one)}` | {_cell(one.help)} |" for one in options]
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
    shown = ["```sh", *examples, "```", ""] if examples else []
    return "\n".join([f"## {path}", "", f"`{usage}`", "", " ".join(command.help.split()), "", "| | |", "|---|---|", *rows, "", *shown])


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

Everything Duetime raises on purpose is a `DuetimeError` with a `message` and a stable `code`. The exit status is that of the command line.

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
    if kind is errors.TargetNotAllowed:
        return errors.TargetNotAllowed()
    return kind("field", "") if issubclass(kind, errors.InvalidInput) else kind("")


PAGES: dict[str, Callable[[], str]] = {"settings.md": settings_page, "cli.md": cli_page, "errors.md": errors_page}


def out_of_date() -> list[str]:
    return [name for name, page in PAGES.items() if not (FOLDER / name).is_file() or (FOLDER / name).read_text("utf-8") != NOTE + page()]


def main() -> None:
    stale = out_of_date()
    if "--check" in sys.argv:
        sys.exit(f"out of date: {', '.join(stale)}: run `make docs`" if stale else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(NOTE + PAGES[name](), "utf-8")


if __name__ == "__main__":
    main()
