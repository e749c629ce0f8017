"""Tokens of the API and of operators: name, scope, user and end, kept as hashes in
HOME/tokens.json.

    store = TokenStore(home, users)
    token = store.make("backup", READ, user="anna")      # shown once
    store.find(token)                  # Identity("anna", "read", ...); None if wrong

A token belongs to a user, has at most this user's rights, and ends with the user. A token without
a user belongs to the server's own operator. A token is 24 random bytes, too many to try. A plain
SHA-256 is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from msgspec import Struct

from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.server.kept_list import KeptList
from larmspider.server.people.users import NAME, Users, narrowed
from larmspider.server.people.users import SCOPES as SCOPES_OF
from larmspider.web.auth import EDIT, OPERATE, PUSH, READ, SEARCH, Guard, Identity

FILE = "tokens.json"
FIRST_KEY = "first.key"
SCOPES = (READ, PUSH, SEARCH, EDIT, OPERATE)
MAX_TOKENS, MAX_DAYS = 1_000, 3_650


class TokenRecord(Struct, frozen=True):
    """``ends``: seconds since 1970, 0 for never. ``user`` "": the server's own operator."""

    name: str
    scope: str
    digest: str
    made: float
    ends: float = 0.0
    user: str = ""


class TokenStore:
    def __init__(
        self, home: Path, users: Users | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept, self._clock = KeptList(home / FILE, TokenRecord), clock
        self.users = Users(home, clock) if users is None else users

    def all(self) -> list[TokenRecord]:
        """The tokens that have not ended. Raises ConfigError for a damaged file."""
        return self._valid(self._kept.all())

    def _valid(self, records: list[TokenRecord]) -> list[TokenRecord]:
        now = self._clock()
        return [
            one
            for one in records
            if (not one.ends or now < one.ends) and (not one.user or self.users.find(one.user))
        ]

    def make(self, name: str, scope: str, days: int = 0, user: str = "") -> str:
        """A new token, which is shown once; ``days`` 0: without an end. Raises ConfigError."""
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"token name {name[:64]!r}: expected 1 to 64 letters, digits, '-', '_', '.', '@'"
            )
        if scope not in SCOPES:
            raise ConfigError(f"token scope {scope[:20]!r}: expected one of {', '.join(SCOPES)}")
        if not 0 <= days <= MAX_DAYS:
            raise ConfigError(f"token days {days}: expected 0 to {MAX_DAYS:,}; 0 is without an end")
        if user:
            owner = self.users.find(user)
            if owner is None:
                raise ConfigError(f"token user {user[:64]!r}: there is no such user")
            if scope not in SCOPES_OF[owner.role]:
                raise ConfigError(
                    f"token scope {scope!r}: {owner.name} is {owner.role}: expected one of"
                    f" {', '.join(SCOPES_OF[owner.role])}"
                )
            user = owner.name
        token, now = secrets.token_urlsafe(24), self._clock()
        ends = now + days * 86_400.0 if days else 0.0
        with self._kept.changing() as records:
            known = records[:] = self._valid(records)
            if any(one.name.lower() == name.lower() for one in known):
                raise ConfigError(f"token name {name!r}: there is one already")
            if len(known) >= MAX_TOKENS:
                raise ConfigError(
                    f"there are {len(known):,} tokens: expected at most {MAX_TOKENS:,}"
                )
            records.append(TokenRecord(name, scope, _digest(token), now, ends, user))
        return token

    def remove(self, name: str) -> None:
        """Raises ConfigError for a name that no token has."""
        with self._kept.changing() as records:
            known = self._valid(records)
            records[:] = [one for one in known if one.name != name]
            if len(records) == len(known):
                raise ConfigError(f"there is no token {name[:64]!r}")

    def remove_of(self, user: str) -> None:
        """Remove all tokens of a user, so that a later user of the same name does not get them."""
        with self._kept.changing() as records:
            records[:] = [one for one in records if one.user != user]

    def find(self, token: str) -> Identity | None:
        """The user and scope of a token; None for a wrong one."""
        digest, found = _digest(token), None
        for one in self._kept.all():
            if hmac.compare_digest(one.digest, digest):
                found = one
        return None if found is None else self.identity(found.name)

    def identity(self, name: str) -> Identity | None:
        """The user and scope of the token with a name; None if there is none."""
        found = next((one for one in self.all() if one.name == name), None)
        if found is None:
            return None
        mark = f"token:{found.name}:{found.digest[:16]}"  # a later token may have the same name
        if not found.user:
            return Identity(found.name, found.scope, mark=mark)
        user = self.users.find(found.user)
        owner = self.users.identity(found.user)
        scope = narrowed(found.scope, user.role) if user is not None else ""
        if owner is None or not scope:
            return None
        return Identity(owner.name, scope, owner.principals, mark)

    def can_operate(self) -> bool:
        """Whether an operator can sign in."""
        found = (self.identity(one.name) for one in self.all())
        return self.users.can_operate() or any(
            one is not None and one.scope == OPERATE for one in found
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def first_key(home: Path) -> str:
    """The one-time key of the first start, with which an operator makes the first user. The key
    stays the same until then."""
    path = home / FIRST_KEY
    try:
        if len(found := path.read_text("ascii").strip()) >= 24:
            return found
    except (OSError, ValueError):
        pass
    key = secrets.token_urlsafe(24)
    try:
        replace_file(path, key.encode() + b"\n", private=True)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    return key


class TokenGuard(Guard):
    """A guard over many tokens. ``fixed``: LARM_WEB_TOKEN, the operator's, "" for none."""

    def __init__(
        self,
        store: TokenStore,
        fixed: str = "",
        names: Collection[str] = (),
        **more: Any,
    ) -> None:
        super().__init__(fixed, names, **more)
        self._store = store

    def identify(self, token: str) -> Identity | None:
        return super().identify(token) or self._store.find(token)

    def is_valid(self, identity: Identity) -> bool:
        kind, _, rest = identity.mark.partition(":")
        match kind:
            case "token":
                return self._store.identity(rest.partition(":")[0]) == identity
            case "user":
                return self._store.users.identity(identity.name) == identity
        return True
