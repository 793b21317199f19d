"""YAML text as values and the lines they stand on.

Scalars follow JSON: `yes`, `on`, `12:30` and `2030-01-01` are text. Only true, false, null and numbers are
not. JSON files are YAML, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from duetime.errors import ConfigError, InvalidDocument

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

MAX_VALUES = 1_000_000  # also bounds what aliases of aliases expand to
MAX_DEPTH = 100
PACKAGE = "pip install 'duetime[yaml]'"
TAG = "tag:yaml.org,2002:"
# By tag: the text of such a scalar, and the characters with which it can begin.
_SCALARS = {
    "null": (r"null|~|", ["n", "~", ""]),
    "bool": (r"true|false", ["t", "f"]),
    "int": (r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    "float": (
        r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)",
        list("-0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document of a file."""

    file: str
    value: Any
    lines: dict[Path, int]

    def place(self, *path: str | int) -> str:
        """File and line of a value, or of the closest value around it that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.file}:{self.lines.get(path, 1)}"


def documents_in(text: str, file: str) -> Iterator[Document]:
    yaml = yaml_package()
    try:
        for node in yaml.compose_all(text, Loader=_loader()):
            if node is not None:
                reader = _NodeReader(file)
                yield Document(file, reader.value(node, ()), reader.lines)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = 1 if mark is None else mark.line + 1
        raise InvalidDocument(f"{file}:{line}: is not YAML: {problem.problem or problem.context}") from None
    except (yaml.YAMLError, RecursionError) as problem:
        reason = str(problem).split("\n", maxsplit=1)[0]
        raise InvalidDocument(f"{file}:1: cannot be read: {reason}") from None


def yaml_package() -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise ConfigError(f"files of schedules need the package 'yaml': {PACKAGE}") from None
    return yaml


@cache
def _loader() -> Any:
    yaml = yaml_package()

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # untyped without yaml
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # replaces the rules of YAML 1.1

    return _with_rules(Loader)


@cache
def dumper() -> Any:
    """Quotes text that our rules or those of YAML 1.1 would read as something else."""
    yaml = yaml_package()

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # untyped without yaml
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return _with_rules(Dumper)


def _with_rules(kind: Any) -> Any:
    for tag, (pattern, first) in _SCALARS.items():
        kind.add_implicit_resolver(TAG + tag, re.compile(f"(?:{pattern})$"), first)
    return kind


@dataclass(slots=True)
class _NodeReader:
    file: str
    lines: dict[Path, int] = field(default_factory=dict)
    left: int = MAX_VALUES

    def value(self, node: Node, path: Path) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._count(node, path)
        match node.id, node.tag.removeprefix(TAG):  # type: ignore[attr-defined]  # every node has an id
            case "sequence", "seq":
                return [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
            case "mapping", "map":
                return self._mapping(node, path)  # type: ignore[arg-type]  # as its id says
            case "scalar", "str":
                return node.value
            case "scalar", "null":
                return None
            case "scalar", "bool":
                return node.value == "true"
            case "scalar", "int" | "float" as kind if re.fullmatch(_SCALARS[kind][0], node.value):
                return self._number(node, int if kind == "int" else float)
        raise self._error(node, f"the tag {node.tag} is not known here: leave it out")

    def _number(self, node: Node, kind: Callable[[str], float]) -> float:
        try:
            found = kind(node.value)
        except ValueError:  # Python limits the digits
            found = math.inf
        if math.isinf(found):
            raise self._error(node, "is a number with too many digits: write it as text, in quotes")
        return found

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        own: set[str] = set()
        for key, member in self._merged_last(node):
            name = key.value
            if key.id != "scalar" or not isinstance(name, str):
                raise self._error(key, "a name must be text")
            if key.tag == f"{TAG}merge":
                self._merge(member, path, found)
                continue
            if name in own:
                raise self._error(key, f"{name!r} is there twice: remove one")
            own.add(name)
            self.lines[*path, name] = key.start_mark.line + 1
            found[name] = self.value(member, (*path, name))
        return found

    @staticmethod
    def _merged_last(node: MappingNode) -> list[tuple[Any, Any]]:
        """`<<` does not replace what the mapping itself says."""
        return sorted(node.value, key=lambda pair: pair[0].tag == f"{TAG}merge")

    def _merge(self, node: Any, path: Path, found: dict[str, Any]) -> None:
        for source in node.value if node.id == "sequence" else [node]:
            if source.id != "mapping":
                raise self._error(source, "<< takes a mapping, such as <<: *defaults")
            self._count(source, path)
            for name, value in self._mapping(source, path).items():
                self._count(source, path)
                found.setdefault(name, value)

    def _count(self, node: Node, path: Path) -> None:
        self.left -= 1
        if self.left < 0 or len(path) > MAX_DEPTH:
            raise self._error(node, "has too many or too deeply nested values: split the file")

    def _error(self, node: Node, reason: str) -> InvalidDocument:
        return InvalidDocument(f"{self.file}:{node.start_mark.line + 1}: {reason}")
