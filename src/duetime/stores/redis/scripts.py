"""The Lua functions of the store, from the `.lua` files beside this one: one verb each, together a library
that the server keeps.

The files in COMMON come first: what all verbs share. Every verb ends by writing the lists of jobs that it
changed. Its first line has its flags: without `allow-oom` the server refuses the call, before it does
anything, while its memory is full. The name of the library has its digest: versions of Duetime that run at
the same time have each their own."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

COMMON = ("keys", "lists", "rows", "other_rows")
NAME = "LIBRARY_NAME"  # stands for the name of the library in its text
_KEY = re.compile(r"^local ([A-Z_]+) = (P \.\. '.*?')", re.MULTILINE)
_VERB = """
do
    local function verb(KEYS, ARGV)
{body}
    end
    redis.register_function{{
        function_name = '{NAME}_{name}',
        callback = function(keys, arguments)
            begin(keys[1])
            listed, unlisted = {{}}, {{}}
            local reply = verb(keys, arguments)
            write_lists()
            return reply
        end,
        flags = {{{flags}}},
    }}
end
"""


def _load() -> tuple[str, bytes]:
    """The name of the library and its text."""
    folder = files("duetime.stores.redis").joinpath("lua")
    texts = {
        entry.name.removesuffix(".lua"): entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".lua")
    }
    common = "\n".join(_with_begin(texts.pop(name)) for name in COMMON)
    verbs = "".join(_verb(name, text) for name, text in texts.items())
    text = f"#!lua name={NAME}\n{common}\n{verbs}"
    library = f"duetime_{sha256(text.encode()).hexdigest()[:16]}"
    return library, text.replace(NAME, library).encode()


def _with_begin(text: str) -> str:
    """Keys become variables that `begin` sets: making forty names costs more than most verbs."""
    keys = _KEY.findall(text)
    if not keys:
        return text
    names = ", ".join(name for name, _ in keys)
    values = "\n".join(f"    {name} = {value}" for name, value in keys)
    return f"""local call, pack, unpack_struct, P, {names}
local function begin(prefix)
    call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
    if P == prefix then return end
    P = prefix
{values}
end
{_KEY.sub("", text)}"""


def _verb(name: str, text: str) -> str:
    first, _, body = text.partition("\n")
    if not first.startswith("#!lua"):
        raise ValueError(f"{name}.lua: the first line must be #!lua")
    flags = ", ".join(f"'{flag}'" for flag in first.partition("flags=")[2].split(",") if flag)
    return _VERB.format(NAME=NAME, name=name, body=body, flags=flags)


LIBRARY, TEXT = _load()
