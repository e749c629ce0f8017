"""An access list: a source's own entries, in the source's own order.

    hr = AccessList.simple(["group:hr", "user:anna"])
    hr == AccessList.unpack(hr.pack())

A list is judged by the rules of its kind (judge.py). "Deny before allow" would be wrong for both
kinds of files. POSIX admits a person who has one group that may read and another that may not. NT
lets an explicit allow win over an inherited deny.

A reader is a set of principals: ``user:anna``, ``group:hr``, ``everyone``, ``authenticated``, and
numbers as the sources have them, ``uid:1007``, ``gid:100``, ``sid:S-1-5-21-...``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self, TypeAlias

import msgpack

from larmspider.errors import ConfigError

EVERYONE, AUTHENTICATED = "everyone", "authenticated"
ANYBODY = frozenset({EVERYONE})
"""The principals of a reader whom no source knows."""
SIMPLE, POSIX, NT = "simple", "posix", "nt"
KINDS = (SIMPLE, POSIX, NT)
MAX_ENTRIES = 10_000
"""Entries of a list. Linux has room for 8,191 in an attribute, Windows for 1,820 in a list."""
MAX_PRINCIPAL = 255
"""Characters."""

Reader: TypeAlias = frozenset[str]
Entry: TypeAlias = tuple[str | int, ...]

_NAMED = ("user:", "group:", "uid:", "gid:", "sid:")
_NUMBERED = re.compile(
    r"[ug]id:(?:0|[1-9][0-9]{0,9})|sid:S-1-(?:0x[0-9A-Fa-f]+|[0-9]+)(?:-[0-9]{1,10}){1,15}"
)


@dataclass(frozen=True)
class AccessList:
    """``entries`` by ``kind``:

    simple  (principal,): each of them may read
    posix   ("owner" | "user" | "owning-group" | "group" | "mask" | "other", number, bits)
    nt      ("owner", sid), ("null",) for a list that admits everybody, then for each entry
            ("allow" | "deny", sid, flags, rights)
    """

    kind: str
    entries: tuple[Entry, ...] = ()

    @classmethod
    def simple(cls, principals: Iterable[str]) -> Self:
        """Raises ConfigError for text that is not a principal."""
        return cls(SIMPLE, tuple((principal_of(one),) for one in dict.fromkeys(principals)))

    @cached_property
    def digest(self) -> bytes:
        return blake2b(self.pack(), digest_size=16).digest()

    @property
    def principals(self) -> list[str]:
        """The principals of a simple list."""
        return [str(one) for (one,) in self.entries] if self.kind == SIMPLE else []

    @property
    def is_for_everyone(self) -> bool:
        return (EVERYONE,) in self.entries

    def pack(self) -> bytes:
        packed: bytes = msgpack.packb((self.kind, self.entries), unicode_errors="replace")
        return packed

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Raises ValueError."""
        kind, entries = msgpack.unpackb(packed)
        if kind not in KINDS:
            raise ValueError(f"unknown kind of access list {kind!r:.50}")
        return cls(kind, tuple(map(tuple, entries)))


OPERATORS_ONLY = AccessList(SIMPLE)
"""The list of a document whose rights cannot be read. Operators see the document."""


class UnreadableError(ValueError):
    """The rights of a document cannot be read. The message is one line for a person."""


def principal_of(text: Any) -> str:
    """The form of a principal in which principals are compared. Raises ConfigError."""
    found = text.strip() if isinstance(text, str) else ""
    named = any(found.startswith(begin) and len(found) > len(begin) for begin in _NAMED)
    if found.startswith(("uid:", "gid:", "sid:")):
        named = _NUMBERED.fullmatch(found) is not None
    if not (named or found in (EVERYONE, AUTHENTICATED)) or len(found) > MAX_PRINCIPAL:
        raise ConfigError(
            f"{text!r:.80} is not a principal: expected everyone, authenticated, user:NAME,"
            f" group:NAME, uid:NUMBER, gid:NUMBER or sid:SID of at most {MAX_PRINCIPAL} characters"
        )
    return found
