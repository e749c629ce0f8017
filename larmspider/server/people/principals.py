"""HOME/principals.toml: names that one person or group has in several sources.

same = [["user:anna@corp", "uid:1007", "sid:S-1-5-21-1-2-3-1105"]]
posix = true                    # uid and groups of a user:NAME, as this machine knows it

[within]                        # members of these groups are members of the first, too
"group:staff" = ["group:hr", "group:it"]

table.expanded({"user:anna@corp", "group:hr"})
"""

from __future__ import annotations

import asyncio
import grp
import logging
import os
import pwd
import threading
import time
import tomllib
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from larmspider.access.lists import AUTHENTICATED, EVERYONE
from larmspider.errors import ConfigError, HttpError
from larmspider.files import read_plain
from larmspider.web.people import DIRECTORY_AWAY
from larmspider.web.reader import KINDS, MAX_NAME, MAX_PRINCIPALS

logger = logging.getLogger(__name__)

FILE = "principals.toml"
MAX_BYTES, MAX_NAMES = 10_000_000, 100_000
MIN_UID = 1_000
"""Users of this machine with a smaller uid are not people: root, www-data."""
LOOKED_UP_SECS = 600.0
"""A uid and its groups are looked up again after this time."""
_MAX_LOOKED_UP = 10_000
LOOK_UP_SECS = 10.0
"""How long a request waits for this machine's names, which may come from an LDAP server."""
_LOOK_UPS = 4  # at a time


class Names(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    same: list[list[str]] = []
    within: dict[str, list[str]] = {}
    posix: bool = False


class PrincipalTable:
    """The file is read again when it changes. If it has a mistake, the last valid table stays in
    force, and the log names the mistake."""

    def __init__(self, home: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = home / FILE, clock
        self._seen: object = None
        self._same: dict[str, list[str]] = {}
        self._parents: dict[str, list[str]] = {}
        self._posix = False
        self._looked_up: dict[str, tuple[float, list[str]]] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_LOOK_UPS, "names")
        self.problem = ""

    def read(self) -> None:
        """Raises ConfigError."""
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        except FileNotFoundError:
            self._same, self._parents, self._posix = {}, {}, False
            self._seen, self.problem = None, ""
            return
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror or error}") from None
        if seen == self._seen:
            return
        self._seen = seen
        names = _read(self._path)
        same = _by_name(self._path, names.same)
        parents: dict[str, list[str]] = {}
        for group, members in names.within.items():
            for member in _checked(self._path, [*members, group])[:-1]:
                parents.setdefault(member, []).append(group)
        self._same, self._parents, self._posix = same, parents, names.posix
        self.problem = ""

    async def prepare(self, given: Collection[str]) -> None:
        """Look up what `expanded` needs of this machine, in a thread. Raises HttpError if that
        takes too long."""
        unknown = set[str]()
        self.expanded(given, unknown)
        if unknown:
            loop = asyncio.get_running_loop()
            looked_up = loop.run_in_executor(self._threads, self.expanded, given)
            try:
                await asyncio.wait_for(looked_up, LOOK_UP_SECS)
            except TimeoutError:
                logger.error("No names of this machine's users after %g s", LOOK_UP_SECS)
                raise HttpError(DIRECTORY_AWAY, 503) from None

    def expanded(self, given: Collection[str], unknown: set[str] | None = None) -> frozenset[str]:
        """``given`` with other names of the same person, and with groups of groups. Empty for more
        than MAX_PRINCIPALS: one that is left out could be one that is denied. This machine may take
        long to answer: with ``unknown`` it is not asked, and the users that it has to be asked
        about are added there."""
        try:
            self.read()
        except ConfigError as error:
            if self.problem != str(error):
                logger.error("%s; the last valid table stays in force", error)
            self.problem = str(error)
        found, waiting = set(given), list(given)
        while waiting:
            if len(found) > MAX_PRINCIPALS:
                logger.error("%s has more than %d principals", max(given), MAX_PRINCIPALS)
                return frozenset()
            one = waiting.pop()
            more = [*self._same.get(one, ()), *self._parents.get(one, ())]
            if self._posix and one.startswith("user:"):
                more += self._of_this_machine(one.removeprefix("user:"), unknown)
            waiting += set(more) - found
            found.update(more)
        return frozenset(found)

    def knows(self, principal: str) -> bool:
        """Whether the table has other names for it."""
        return len(self.expanded([principal])) > 1

    def _of_this_machine(self, name: str, unknown: set[str] | None) -> list[str]:
        now, kept = self._clock(), self._looked_up.get(name)
        if kept is not None and now < kept[0]:
            return kept[1]
        if unknown is not None:
            unknown.add(name)
            return [] if kept is None else kept[1]
        found: list[str] = []
        with suppress(KeyError, ValueError, OSError):  # no such user; NUL in the name
            user = pwd.getpwnam(name)
            if user.pw_uid >= MIN_UID:
                gids = os.getgrouplist(name, user.pw_gid)[:MAX_PRINCIPALS]
                found = [f"uid:{user.pw_uid}", *(f"gid:{gid}" for gid in gids)]
                found += _names_of(gids)
        with self._lock:
            while len(self._looked_up) >= _MAX_LOOKED_UP:
                del self._looked_up[next(iter(self._looked_up))]
            self._looked_up[name] = (now + LOOKED_UP_SECS, found)
        return found


def _names_of(gids: Iterable[int]) -> list[str]:
    names = []
    for gid in gids:
        with suppress(KeyError):
            names.append(f"group:{grp.getgrgid(gid).gr_name}")
    return names


def _read(path: Path) -> Names:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path}: expected at most {MAX_BYTES:,} bytes")
        table = tomllib.loads(read_plain(path).decode("utf-8-sig"))
        return msgspec.convert(table, Names)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{path}: {error}: expected same, a list of lists of names; within, lists of names by"
            " the name of a group; posix, true or false"
        ) from None


def _checked(path: Path, names: list[str]) -> list[str]:
    for one in names:
        kind, _, name = one.partition(":")
        if kind not in KINDS or not name or len(one) > MAX_NAME + 10 or not one.isprintable():
            raise ConfigError(
                f"{path}: {one[:80]!r}: expected a kind and a name, such as user:anna, group:hr,"
                " uid:1007, gid:100 or sid:S-1-5-21-1-2-3-1105"
            )
        if name in (EVERYONE, AUTHENTICATED):
            raise ConfigError(f"{path}: {one!r} is neither a person nor a group")
    return names


def _by_name(path: Path, same: list[list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for names in same:
        for one in _checked(path, names):
            if one in found:
                raise ConfigError(f"{path}: {one!r} is in two lists of same: expected it in one")
            found[one] = names
    if len(found) > MAX_NAMES:
        raise ConfigError(f"{path}: {len(found):,} names: expected at most {MAX_NAMES:,}")
    return found
