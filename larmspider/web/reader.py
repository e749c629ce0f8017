"""The sender of a request: the name, the role and the principals of a person.

    Reader("anna", READER, frozenset({"everyone", "authenticated", "user:anna", "group:hr"}))

Principals decide which documents are seen. Each is `everyone`, `authenticated`, or a kind and a
name: `user:anna`, `group:hr`, `uid:1007`, `gid:100`, `sid:S-1-5-21-1-2-3-1105`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from larmspider.access.lists import AUTHENTICATED, EVERYONE
from larmspider.errors import ConfigError

OPERATOR_ROLE, EDITOR, READER = "operator", "editor", "reader"
ROLES = (OPERATOR_ROLE, EDITOR, READER)
KINDS = ("user", "group", "uid", "gid", "sid")
MAX_PRINCIPALS = 2_000
"""Principals of one person. A query costs about 3 microseconds for each."""
MAX_NAME = 256
"""Characters of a name; the longest names of Active Directory have 256."""


@dataclass(frozen=True, slots=True)
class Reader:
    """``name`` is "" for a person who has not signed in. An `operator` sees everything."""

    name: str = ""
    role: str = READER
    principals: frozenset[str] = frozenset({EVERYONE})

    @property
    def groups(self) -> list[str]:
        """The names of the groups, sorted."""
        found = (one.partition("group:") for one in self.principals)
        return sorted(name for front, kind, name in found if kind and not front)


def checked_name(text: str, what: str) -> str:
    """A name from a source of people, in Unicode's normal form C. Raises ConfigError for a name
    that could pass for another one: control characters, marks of direction, blank ends."""
    name = unicodedata.normalize("NFC", text)
    hidden = any(unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") for one in name)
    if not name or len(name) > MAX_NAME or hidden or name != name.strip():
        shown = ascii(name[:40])
        raise ConfigError(f"{what} {shown}: expected 1 to {MAX_NAME} characters, all visible")
    return name


def checked_groups(names: Iterable[str], whose: str) -> frozenset[str]:
    """Principals of groups. Raises ConfigError for too many: to leave some out could show what
    one of them is denied."""
    found = list(names)
    if len(found) > MAX_PRINCIPALS:
        raise ConfigError(
            f"{whose} is in {len(found):,} groups: expected at most {MAX_PRINCIPALS:,}; let the"
            " source of people name only the groups that the search needs"
        )
    return frozenset(f"group:{checked_name(name, 'group')}" for name in found)


def all_of(principals: Collection[str], *, signed_in: bool) -> frozenset[str]:
    """The principals with `everyone` and, if ``signed_in``, `authenticated`."""
    return frozenset({*principals, EVERYONE, *([AUTHENTICATED] if signed_in else [])})
