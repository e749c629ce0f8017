"""Tokens of the API and of operators: name, scope and end, kept as hashes in HOME/tokens.json.

    store = TokenStore(home)
    token = store.make("backup", READ, ends=0.0)      # shown once
    store.find(token)                                 # Identity("backup", "read"); None if wrong

A token is 24 random bytes, too many to try. A plain SHA-256 is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.web.auth import OPERATE, OPERATOR, PUSH, READ, Guard, Identity

FILE = "tokens.json"
FIRST_KEY = "first.key"
SCOPES = (READ, PUSH, OPERATE)
MAX_TOKENS, MAX_DAYS = 1_000, 3_650
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


class TokenRecord(Struct, frozen=True):
    """``ends``: seconds since 1970, 0 for never."""

    name: str
    scope: str
    digest: str
    made: float
    ends: float = 0.0


class TokenStore:
    def __init__(self, home: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = home / FILE, clock
        self._seen: object = None
        self._records: list[TokenRecord] = []

    def all(self) -> list[TokenRecord]:
        """Those that have not ended. Raises ConfigError for a file that is damaged."""
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen != self._seen:
                kind = list[TokenRecord]
                self._records = msgspec.json.decode(self._path.read_bytes(), type=kind)
                self._seen = seen
        except FileNotFoundError:
            self._records, self._seen = [], None
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"{self._path} cannot be read: {error}") from None
        now = self._clock()
        return [one for one in self._records if not one.ends or now < one.ends]

    def make(self, name: str, scope: str, days: int = 0) -> str:
        """A new token, which is shown once; ``days`` 0: without an end. Raises ConfigError."""
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"token name {name[:64]!r}: expected 1 to 64 letters, digits, '-', '_', '.', '@'"
            )
        if scope not in SCOPES:
            raise ConfigError(f"token scope {scope[:20]!r}: expected one of {', '.join(SCOPES)}")
        if not 0 <= days <= MAX_DAYS:
            raise ConfigError(f"token days {days}: expected 0 to {MAX_DAYS:,}; 0 is without an end")
        known = self.all()
        if any(one.name.lower() == name.lower() for one in known):
            raise ConfigError(f"token name {name!r}: there is one already")
        if len(known) >= MAX_TOKENS:
            raise ConfigError(f"there are {len(known):,} tokens: expected at most {MAX_TOKENS:,}")
        token, now = secrets.token_urlsafe(24), self._clock()
        ends = now + days * 86_400.0 if days else 0.0
        self._write([*known, TokenRecord(name, scope, _digest(token), now, ends)])
        return token

    def remove(self, name: str) -> None:
        """Raises ConfigError for a name that no token has."""
        known = self.all()
        rest = [one for one in known if one.name != name]
        if len(rest) == len(known):
            raise ConfigError(f"there is no token {name[:64]!r}")
        self._write(rest)

    def find(self, token: str) -> Identity | None:
        """The name and scope of a token; None for a wrong one."""
        digest, found = _digest(token), None
        for one in self.all():
            if hmac.compare_digest(one.digest, digest):
                found = Identity(one.name, one.scope)
        return found

    def can_operate(self) -> bool:
        """Whether anybody can sign in."""
        return any(one.scope == OPERATE for one in self.all())

    def _write(self, records: list[TokenRecord]) -> None:
        content = msgspec.json.encode(records)
        try:
            replace_file(self._path, content, private=True)
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror or error}") from None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def first_key(home: Path) -> str:
    """The one-time key of the first start, with which an operator makes the first token. The key
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

    def is_valid(self, who: str) -> bool:
        return who == OPERATOR.name or any(
            one.name == who and one.scope == OPERATE for one in self._store.all()
        )
