"""The result of an import: entries of a file of schedules, and all that could not be moved as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duetime.cli.documents.entry import Entry, read_entry
from duetime.cli.documents.writing import Written, document
from duetime.cli.format import now_here
from duetime.errors import InvalidInput
from duetime.model.instant import to_micros

MAX_NAME = 100


@dataclass(slots=True)
class Import:
    shadow: bool = False
    entries: list[Written] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # about all entries, or about what has no entry
    _names: set[str] = field(default_factory=set)

    def add(self, entry: Mapping[str, Any], source: str, *differences: str) -> None:
        """`source` is the original. An entry that `duetime apply` would refuse becomes a remark."""
        named = {**entry, "name": self._unique(entry["name"]), **({"shadow": True} if self.shadow else {})}
        try:
            found = read_entry(named)
        except InvalidInput as problem:
            self.skip(source, problem.message)
            return
        if _is_over(found):
            self.skip(source, "it fires no more")
            return
        self._names.add(named["name"])
        self.entries.append(Written(named, [source, *(f"differs: {one}" for one in differences)]))

    def skip(self, source: str, reason: str) -> None:
        self.remark(f"not imported: {source}: {reason}")

    def remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)

    def differences(self) -> list[str]:
        """What a person must know, one line each."""
        own = [
            f"{one.entry['name']}: {comment}"
            for one in self.entries
            for comment in one.comments
            if comment.startswith("differs: ")
        ]
        return [*self.remarks, *own]

    def text(self, managed_by: str | None) -> str:
        return document(self.entries, managed_by, self.remarks)

    def _unique(self, name: str) -> str:
        """A name that no other entry has; made of characters that need no quotes."""
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:MAX_NAME] or "job"
        number = 1
        while (found := plain if number == 1 else f"{plain}-{number}") in self._names:
            number += 1
        return found


def _is_over(entry: Entry) -> bool:
    """`duetime apply` refuses a schedule that never fires."""
    end = entry.options.get("end_at")
    following = entry.when.next_us(to_micros(now_here()))
    return following is None or (end is not None and following > to_micros(end))
