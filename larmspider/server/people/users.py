"""The users of a server, their roles and passwords, in HOME/users.json.

    users = Users(home)
    users.add("anna", READER, "correct horse battery")      # ConfigError
    users.identity("anna"), users.is_right("anna", "...")

Passwords are kept as argon2id hashes (RFC 9106).
"""

from __future__ import annotations

import re
import secrets
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import argon2
from msgspec import Struct
from msgspec.structs import replace

from larmspider.errors import ConfigError
from larmspider.server.kept_list import KeptList
from larmspider.web.auth import EDIT, OPERATE, OPERATOR, PUSH, READ, SEARCH, Identity
from larmspider.web.reader import EDITOR, OPERATOR_ROLE, READER, ROLES

FILE = "users.json"
MAX_USERS = 10_000
MIN_PASSWORD, MAX_PASSWORD = 10, 200
"""Characters."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
SCOPES = {
    OPERATOR_ROLE: (OPERATE, EDIT, READ, PUSH, SEARCH),
    EDITOR: (EDIT, PUSH, SEARCH),
    READER: (SEARCH,),
}
"""The scopes that a role has. The first one has all that the role may."""
_HASHER = argon2.PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
"""OWASP's advice: 19 MiB and some 20 ms for a password."""
_NOBODYS = _HASHER.hash("")
"""Checked for an unknown name, so that the answer takes as long as for a known one."""


class User(Struct, frozen=True):
    """``digest`` is "" for a user without a password. ``stamp`` changes with role and password, and
    ends the sessions."""

    name: str
    role: str
    digest: str
    made: float
    stamp: str


class Users:
    def __init__(self, home: Path, clock: Callable[[], float] = time.time) -> None:
        self._kept, self._clock = KeptList(home / FILE, User), clock

    def all(self) -> list[User]:
        """Raises ConfigError for a file that is damaged."""
        return self._kept.all()

    def find(self, name: str) -> User | None:
        """The user of a name, ignoring case."""
        return next((one for one in self.all() if one.name.lower() == name.lower()), None)

    def add(self, name: str, role: str, password: str) -> None:
        """Add a user. A user with an empty ``password`` can use tokens only. Raises ConfigError."""
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"user name {name[:64]!r}: expected 1 to 64 letters, digits, '-', '_', '.', '@'"
            )
        if name.lower() == OPERATOR.name:
            raise ConfigError(
                f"user name {name!r}: expected another one: {name} is the user of LARM_WEB_TOKEN,"
                " and of commands on the server's machine"
            )
        digest = _digest(name, password) if password else ""
        user = User(name, _role(role), digest, self._clock(), _stamp())
        with self._kept.changing() as users:
            if any(one.name.lower() == name.lower() for one in users):
                raise ConfigError(f"user name {name!r}: there is one already")
            if len(users) >= MAX_USERS:
                raise ConfigError(f"there are {len(users):,} users: expected at most {MAX_USERS:,}")
            users.append(user)

    def set_role(self, name: str, role: str) -> None:
        """Ends the user's sessions. Raises ConfigError."""
        with self._kept.changing() as users:
            at = _place(users, name)
            self._refuse_last(users, at, _role(role))
            users[at] = replace(users[at], role=role, stamp=_stamp())

    def set_password(self, name: str, password: str) -> None:
        """Ends the user's sessions. Raises ConfigError."""
        digest = _digest(name, password)
        with self._kept.changing() as users:
            at = _place(users, name)
            users[at] = replace(users[at], digest=digest, stamp=_stamp())

    def remove(self, name: str, before: Callable[[str], object] = lambda _: None) -> None:
        """``before`` is called with the name before the user is gone: a kill then leaves a user
        without tokens, and no tokens without a user. Raises ConfigError."""
        with self._kept.changing() as users:
            at = _place(users, name)
            self._refuse_last(users, at, "")
            before(users[at].name)
            del users[at]

    @staticmethod
    def _refuse_last(users: list[User], at: int, role: str) -> None:
        """The last operator stays one, or no user could change this again."""
        operators = [one for one in users if one.role == OPERATOR_ROLE]
        if operators == [users[at]] and role != OPERATOR_ROLE:
            raise ConfigError(f"{users[at].name} is the last operator: make another one first")

    def identity(self, name: str) -> Identity | None:
        """The scope and principals of a user; None for an unknown name."""
        user = self.find(name)
        if user is None:
            return None
        principals = frozenset({f"user:{user.name}"})
        return Identity(user.name, SCOPES[user.role][0], principals, f"user:{user.stamp}")

    def is_right(self, name: str, password: str) -> bool:
        """Whether this is the user's password; takes some 20 ms, for an unknown name too."""
        user = self.find(name)
        digest = user.digest if user is not None else ""
        try:
            right = _HASHER.verify(digest or _NOBODYS, _normal(password))
        except argon2.exceptions.VerificationError:
            return False
        return right and bool(digest)

    def can_operate(self) -> bool:
        """Whether an operator can sign in by a password."""
        return any(one.role == OPERATOR_ROLE and one.digest for one in self.all())


def narrowed(scope: str, role: str) -> str:
    """The scope that a token still has, given the role of its user ("" without a role): a role may
    have been reduced since the token was made."""
    if scope in SCOPES[role]:
        return scope
    return "" if scope == PUSH else SCOPES[role][0] if scope == OPERATE else SEARCH


def new_password() -> str:
    """A random password of 80 bits, to be shown to a person."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))


def _role(role: str) -> str:
    if role not in ROLES:
        raise ConfigError(f"role {role[:20]!r}: expected one of {', '.join(ROLES)}")
    return role


def _stamp() -> str:
    return secrets.token_hex(8)


def _place(users: list[User], name: str) -> int:
    for at, one in enumerate(users):
        if one.name == name:
            return at
    raise ConfigError(f"there is no user {name[:64]!r}")


def _normal(password: str) -> str:
    return unicodedata.normalize("NFC", password[:MAX_PASSWORD])


def _digest(name: str, password: str) -> str:
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD or password.lower() == name.lower():
        raise ConfigError(
            f"password: expected {MIN_PASSWORD} to {MAX_PASSWORD} characters, and not the name"
        )
    try:
        return _HASHER.hash(_normal(password))
    except UnicodeEncodeError:
        raise ConfigError("password: expected text that UTF-8 can hold") from None
