"""The Lua scripts of the backend: lua/*.lua, called by their digest.

    call(APPLY, [owner, entries], [token, field, step, commands])   ->  a command for RedisLink

Each changes the keys of one hash slot, wholly or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files
from typing import TypeAlias

Argument: TypeAlias = bytes | str | int
Command: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """``digest`` is what EVALSHA wants."""

    text: bytes
    digest: str


def _read(name: str) -> Script:
    text = files("larmspider.cluster").joinpath("lua", f"{name}.lua").read_bytes()
    return Script(text, sha1(text, usedforsecurity=False).hexdigest())


COMMIT = _read("commit")
APPLY = _read("apply")
CARRIED_OUT = _read("carried_out")
OWN = _read("own")
SCRIPTS = (COMMIT, APPLY, CARRIED_OUT, OWN)


def call(script: Script, keys: Sequence[bytes], arguments: Sequence[Argument]) -> Command:
    """The command that runs it."""
    return ("EVALSHA", script.digest, len(keys), *keys, *arguments)
