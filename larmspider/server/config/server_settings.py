"""server.toml: what holds for all crawls of a home.

parallel = 4
time_zone = "Europe/Berlin"

[secrets]                       # environment variables that crawls may use, and where they go
WIKI_PASSWORD = ["wiki.example"]

Tables about signing in are in sign_in_settings.py.
"""

from __future__ import annotations

import os
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from larmspider.errors import ConfigError
from larmspider.files import read_plain
from larmspider.server.config.crawl_schema import fields_of
from larmspider.server.config.schedule import zone_of
from larmspider.server.config.sign_in_settings import Ldap, Oidc, Roles, Sessions

FILE = "server.toml"
_NODE = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
MAX_BYTES = 1_000_000


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


class Node(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A scrapyd node. ``directory`` holds the LARM_DIR of each crawl there; ``secret`` names the
    password of ``user``."""

    url: Annotated[str, Meta(pattern="^https?://[^/]+/?$")]
    directory: Annotated[str, Meta(pattern="^/")]
    user: str = ""
    secret: str = ""


class ServerSettings(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    parallel: Annotated[
        int, Meta(ge=0, le=256, description="Crawls that run at a time; 0 is the number of cores")
    ] = 0
    time_zone: Annotated[str, Meta(description="The time zone of schedules that name none")] = "UTC"
    min_free_bytes: Annotated[
        int, Meta(ge=0, le=1 << 50, description="Free disk below which crawls pause")
    ] = 1_000_000_000
    kept_runs: Annotated[
        int, Meta(ge=1, le=10_000, description="Runs of a crawl in its history, with their logs")
    ] = 50
    log_bytes: Annotated[
        int,
        Meta(ge=10_000, le=1 << 40, description="Bytes of the log of a run; older lines go"),
    ] = 20_000_000
    push_bytes: Annotated[
        int, Meta(ge=1_000, le=48_000_000, description="Bytes of a pushed document")
    ] = 16_000_000
    push_per_minute: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Documents that a token may push in a minute")
    ] = 60_000
    push_waiting_bytes: Annotated[
        int,
        Meta(ge=1_000_000, le=1 << 40, description="Pushed bytes of a collection that may wait"),
    ] = 1_000_000_000
    search_per_minute: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Searches and pages that a token, or an address, may ask the API for in a"
            " minute",
        ),
    ] = 300
    notify: Annotated[
        str,
        Meta(
            description="Command or webhook for notices about conditions that need a person",
            max_length=2_083,
        ),
    ] = ""
    nodes: Annotated[
        dict[str, Node],
        Meta(description="scrapyd nodes: url, directory, user and secret of each"),
    ] = {}
    secrets: Annotated[
        dict[str, list[str]],
        Meta(description="Environment variables that crawls may use, and hosts that get them"),
    ] = {}

    sessions: Sessions = Sessions()
    roles: Roles = Roles()
    oidc: Oidc | None = None
    ldap: Ldap | None = None

    @property
    def at_once(self) -> int:
        """Crawls that run at a time."""
        return self.parallel or cores()

    @classmethod
    def read(cls, home: Path) -> ServerSettings:
        """The settings of a home; the defaults without a file. Raises ConfigError."""
        path = home / FILE
        try:
            if path.stat().st_size > MAX_BYTES:
                raise ConfigError(f"{path}: expected at most {MAX_BYTES:,} bytes")
            table = tomllib.loads(read_plain(path).decode("utf-8-sig"))
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigError(f"{path}: is not TOML: {error}") from None
        _check(path, cls, table)
        found = msgspec.convert(table, cls)
        for part in (found.roles, found.oidc, found.ldap):
            try:
                if part is not None:
                    part.check()
            except ConfigError as error:
                raise ConfigError(f"{path}: {error}") from None
        for name in found.nodes:
            if not _NODE.fullmatch(name):
                raise ConfigError(
                    f"{path}: nodes.{name[:60]}: expected a name of a to z, 0 to 9, '.', '_', '-'"
                )
        try:
            zone_of(found.time_zone)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        return found


_TABLES: dict[str, type[Struct]] = {
    "sessions": Sessions, "roles": Roles, "oidc": Oidc, "ldap": Ldap
}  # fmt: skip


def _check(path: Path, kind: type[Struct], table: dict[str, object], front: str = "") -> None:
    """Raises ConfigError for the first key or value that is not accepted."""
    fields = fields_of(kind)
    for name, value in table.items():
        if name not in fields:
            near = get_close_matches(name, fields, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ConfigError(
                f"{path}: {front}{name[:60]} is not a key: {meant}Expected {', '.join(fields)}"
            )
        if not front and name in _TABLES:
            if not isinstance(value, dict):
                raise ConfigError(f"{path}: {name} = {str(value)[:60]}: expected a table [{name}]")
            _check(path, _TABLES[name], value, f"{name}.")
            continue
        try:
            msgspec.convert(value, fields[name].type, strict=True)
        except msgspec.ValidationError:
            raise ConfigError(
                f"{path}: {front}{name} = {str(value)[:60]}: expected {fields[name].expected}"
            ) from None
    for name, field in fields.items():
        if field.required and name not in table:
            raise ConfigError(f"{path}: {front}{name} is missing: {field.text}")
