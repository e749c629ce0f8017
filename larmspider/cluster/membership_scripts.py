"""The scripts that Redis runs for membership.py: lua/NAME.lua behind lua/membership.lua.

scripts = MembershipScripts(connection)
scripts.run("beat", keys, arguments)
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

NAMES = ("join", "beat", "release", "bury", "leave", "idle", "finish", "expire")


def _source(name: str) -> str:
    return files("larmspider.cluster").joinpath("lua", f"{name}.lua").read_text("utf-8")


class MembershipScripts:
    """``connection`` is a redis.Redis or RedisCluster, that decodes or not. Redis is told a script
    once, and again after it was restarted."""

    def __init__(self, connection: Any) -> None:
        common = _source("membership")
        self._scripts = {
            name: connection.register_script(f"{common}\n{_source(name)}") for name in NAMES
        }

    def run(self, name: str, keys: Sequence[str], arguments: Sequence[str | int]) -> list[Any]:
        """What the script returns, as text. Raises redis.RedisError."""
        said = self._scripts[name](keys=list(keys), args=list(arguments))
        return [_text(part) for part in said]


def _text(part: Any) -> Any:
    if isinstance(part, bytes):
        return part.decode()
    return [_text(inner) for inner in part] if isinstance(part, list) else part
