"""Find banned calls: clocks, sleep and random numbers outside their three modules, and code made at run
time."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache


@dataclass(frozen=True, slots=True)
class Rule:
    """Dotted names that are banned with everything below them, except `excused` names and in
    `allowed_files`."""

    names: frozenset[str]
    remedy: str
    allowed_files: tuple[str, ...] = ()
    excused: frozenset[str] = frozenset()

    def forbids(self, name: str) -> bool:
        return _within(name, self.names) and not _within(name, self.excused)

    def applies_to(self, file: str) -> bool:
        return not any(fnmatch(file, pattern) for pattern in self.allowed_files)


TIME_AND_CHANCE_FILES = ("clock.py", "engine/node/loop.py", "model/ids.py", "testing/*")
RULES = (
    Rule(
        frozenset(
            {
                *(
                    f"time.{name}"
                    for name in (
                        "time",
                        "time_ns",
                        "monotonic",
                        "monotonic_ns",
                        "perf_counter",
                        "perf_counter_ns",
                    )
                ),
                *(
                    f"time.{name}"
                    for name in ("localtime", "gmtime", "ctime", "clock_gettime", "clock_gettime_ns")
                ),
                *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
                "datetime.date.today",
            }
        ),
        "ask the clock",
        TIME_AND_CHANCE_FILES,
    ),
    Rule(
        frozenset({"time.sleep", "asyncio.sleep"}),
        "wait through the clock or the loop",
        TIME_AND_CHANCE_FILES,
    ),
    Rule(
        frozenset({"random", "secrets", "uuid.uuid1", "uuid.uuid4", "os.urandom"}),
        "take ids from duetime.model.ids and chance from the clock",
        TIME_AND_CHANCE_FILES,
    ),
    Rule(
        frozenset({"importlib", "runpy", "__import__", "builtins.__import__"}),
        "name the module in an import statement",
        # `--app module:app`, app.discover("package") and an isolated task's process import modules of the
        # user.
        ("cli/*", "cli.py", "app/discovery.py", "invokers/child.py"),
        frozenset({"importlib.resources", "importlib.metadata"}),
    ),
    Rule(
        frozenset({"eval", "exec", "compile", "builtins.eval", "builtins.exec", "builtins.compile"}),
        "write the code down",
    ),
    Rule(
        frozenset(
            {
                "pickle",
                "marshal",
                "shelve",
                "dill",
                "cloudpickle",
                "yaml.load",
                "yaml.unsafe_load",
                "yaml.full_load",
            }
        ),
        "use duetime.model.codec: data must not be able to run",
    ),
)


@dataclass(frozen=True, slots=True)
class Finding:
    file: str
    line: int
    name: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} is banned here: {self.remedy}"


def findings(source: str, file: str) -> list[Finding]:
    """Every banned name in `source`; `file` is its path inside the package."""
    rules = [rule for rule in RULES if rule.applies_to(file)]
    mentioned = set(_mentions(list(ast.walk(ast.parse(source)))))
    return [
        Finding(file, line, name, rule.remedy)
        for line, name in sorted(mentioned)
        for rule in rules
        if rule.forbids(name)
    ]


@cache  # the same few thousand names are repeated often
def _within(name: str, names: frozenset[str]) -> bool:
    return any(name == outer or name.startswith(f"{outer}.") for outer in names)


def _mentions(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Full dotted names, independent of local aliases. A mention is enough: `pause = time.sleep` counts."""
    imported = dict(_imported_names(nodes))
    shadowed = {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    } | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                yield from ((node.lineno, alias.name) for alias in aliases)
            case ast.ImportFrom(module=str(module), names=aliases):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in aliases)
            case ast.Attribute():
                if name := _dotted(node, imported):
                    yield node.lineno, name
            case ast.Name(id=name) if name not in imported and name not in shadowed:
                yield node.lineno, name


def _imported_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """The full name of each imported local name."""
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield (alias.asname, alias.name) if alias.asname else ((alias.name.split(".")[0],) * 2)
            case ast.ImportFrom(module=str(module), names=aliases):
                yield from ((alias.asname or alias.name, f"{module}.{alias.name}") for alias in aliases)


def _dotted(node: ast.expr, imported: dict[str, str]) -> str | None:
    match node:
        case ast.Attribute(value=value, attr=attribute):
            owner = _dotted(value, imported)
            return f"{owner}.{attribute}" if owner else None
        case ast.Name(id=name):
            return imported.get(name)
    return None
