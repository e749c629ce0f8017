"""The people of a server: local users, a directory (LDAP), a provider (OpenID Connect).

people = ServerPeople(home, users, settings)
await people.check("anna", "correct horse battery", "192.0.2.1")    # Identity, or None
await people.reader("anna")                                         # what she would find
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from msgspec import Struct

from larmspider import plugin
from larmspider.errors import ConfigError, HttpError
from larmspider.server.audit import Audit
from larmspider.server.config.secrets import Secrets
from larmspider.server.config.server_settings import ServerSettings
from larmspider.server.kept_list import KeptList
from larmspider.server.people.principals import PrincipalTable
from larmspider.server.people.users import Users
from larmspider.web.auth import EDIT, Guard, Identity, Session
from larmspider.web.people import People, Way
from larmspider.web.reader import MAX_PRINCIPALS, Reader, all_of
from larmspider.web.tries import Tries, tried_too_often

logger = logging.getLogger(__name__)

AT_ONCE, MAX_WAITING = 2, 32
"""Passwords that are checked at a time, each in 19 MiB of memory; and passwords that wait."""
MAX_NAMES = 1_000
"""Names whose wrong passwords are counted."""
TRIES, TRIES_OF_ALL = 5, 50
"""Wrong passwords a minute for one name: from one address, and from all together."""
START = "/oidc/start"
DIRECTORY, PROVIDER = "ldap", "oidc"
"""Marks of the sessions of their people."""
RENEW_SECS = 600.0
"""The groups of people of the directory are looked up again after this time."""
SEEN_FILE = "people.json"
MAX_SEEN = 5_000
"""People of the provider whose last sign-in is kept, for "see as"."""
_EDITORS = ("/new", "/preview", "/manage/")
_EVERYBODYS = ("/logout", "/account")


class Directory(Protocol):
    """The plugin of LDAP. Methods are called in threads and raise HttpError while the server is
    away."""

    def check(self, name: str, password: str) -> tuple[str, frozenset[str]] | None:
        """The person's name and principals; None for a wrong name or password."""

    def look_up(self, name: str) -> tuple[str, frozenset[str]] | None:
        """The same without a password."""


class SeenPerson(Struct, frozen=True):
    name: str
    principals: list[str]
    last: float


class ServerPeople(People):
    """``directory`` and ``provider`` are plugins, or None."""

    start = "/"

    def __init__(
        self,
        home: Path,
        users: Users,
        settings: ServerSettings,
        directory: Directory | None = None,
        provider: Any = None,
    ) -> None:
        self.users, self.table = users, PrincipalTable(home)
        self.roles = settings.roles
        self.directory, self.provider = directory, provider
        self._seen = KeptList(home / SEEN_FILE, SeenPerson)
        self._audit = Audit(home)
        self._tries: OrderedDict[str, Tries] = OrderedDict()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._is_outside = True

    @classmethod
    def open(cls, home: Path, users: Users, settings: ServerSettings) -> Self:
        """Open the people of a server, with the plugins that the settings name. Raises
        ConfigError."""
        secrets = Secrets(home, settings.secrets)
        directory = provider = None
        if settings.ldap is not None:
            ldap = settings.ldap
            password = secret_for("ldap.password", ldap.password, ldap.host, secrets)
            directory = plugin.load("ldap.directory").LdapDirectory(ldap, password)
        if settings.oidc is not None:
            oidc = settings.oidc
            secret = secret_for("oidc.client_secret", oidc.client_secret, oidc.host, secrets)
            provider = plugin.load("oidc.provider").OidcProvider(oidc, secret)
        found = cls(home, users, settings, directory, provider)
        found.table.read()
        return found

    @property
    def inside(self) -> Self:
        """The people for the pages of a crawl below the server, which only operators read."""
        found = copy.copy(self)
        found._is_outside = False
        return found

    @property
    def has_passwords(self) -> bool:
        return self.directory is not None or any(one.digest for one in self.users.all())

    @property
    def ways(self) -> Sequence[Way]:
        return () if self.provider is None else (Way(self.provider.name, START),)

    @property
    def can_operate(self) -> bool:
        """Whether the provider or the directory may know an operator."""
        return bool(self.roles.operator) and bool(self.directory or self.provider)

    async def prepare(self, principals: Collection[str]) -> None:
        await self.table.prepare(principals)

    def expanded(self, principals: Collection[str]) -> frozenset[str]:
        return self.table.expanded(principals, set())

    def allows(self, scope: str, path: str) -> bool:
        if path in _EVERYBODYS:
            return True
        if not self._is_outside:
            return False
        if path.startswith("/crawls/"):  # the crawl's own guard decides
            return True
        return scope == EDIT and (path == "/" or path.startswith(_EDITORS))

    async def check(self, name: str, password: str, address: str) -> Identity | None:
        if not name or not password:  # an LDAP server takes an empty password for no sign-in
            return None
        tries = self._tries_of(name)
        if self._waiting >= MAX_WAITING:
            raise HttpError("Too many requests are waiting; try again in a moment.", 503)
        self._waiting += 1
        try:
            async with self._turns:
                if secs := tries.wait(address):
                    raise tried_too_often(secs)
                found = await asyncio.to_thread(self._identity, name, password)
        finally:
            self._waiting -= 1
        known = name if found is not None or self.users.find(name) is not None else "-"
        self._note(known, address, "wrong" if found is None else "done")
        if found is None and (secs := tries.failed(address, password)):
            raise tried_too_often(secs)
        return found

    def _note(self, who: str, address: str, result: str) -> None:
        """``who`` is "-" for an unknown name: it may be a password in the wrong field."""
        try:
            self._audit.note(who, address, "sign in", "by password", result)
        except OSError as error:
            raise HttpError(f"The audit log cannot be written: {error.strerror}.", 500) from None

    def _tries_of(self, name: str) -> Tries:
        key = name.lower()[:100]
        found = self._tries.setdefault(key, Tries(TRIES, TRIES_OF_ALL))
        self._tries.move_to_end(key)
        while len(self._tries) > MAX_NAMES:
            self._tries.popitem(last=False)
        return found

    def _identity(self, name: str, password: str) -> Identity | None:
        if self.users.find(name) is not None or self.directory is None:
            right = self.users.is_right(name, password)
            return self.users.identity(name) if right else None
        found = self.directory.check(name, password)
        return None if found is None else self.identity_of(*found, DIRECTORY)

    def identity_of(self, name: str, principals: frozenset[str], mark: str = PROVIDER) -> Identity:
        """A person whom the directory or provider has signed in. Call it in a thread, or after
        `prepare`. Raises ConfigError."""
        expanded = self.table.expanded(principals)
        if not expanded:
            raise ConfigError(
                f"{name} has more than {MAX_PRINCIPALS:,} groups and other names: expected at most"
                " that many"
            )
        return Identity(name, self.roles.scope_of(expanded), principals, mark)

    async def renew(self, guard: Guard) -> None:
        """Look up again the people whom the directory has signed in. Their groups and roles are
        updated, and the sessions of people who have left end. While the directory is away nothing
        changes."""
        if self.directory is None:
            return
        for name in guard.names(DIRECTORY):
            try:
                found = await asyncio.to_thread(self.directory.look_up, name)
                if found is not None:
                    await self.prepare(found[1])
                identity = None if found is None else self.identity_of(*found, DIRECTORY)
            except HttpError as error:
                if error.status == 503:
                    return
                identity = None
            except ConfigError:
                identity = None
            guard.renew(name, DIRECTORY, identity)

    def note_seen(self, identity: Identity) -> None:
        """Keep the principals of a person whom the provider has signed in. Raises ConfigError."""
        with self._seen.changing() as known:
            known[:] = [one for one in known if one.name != identity.name][-MAX_SEEN + 1 :]
            known.append(SeenPerson(identity.name, sorted(identity.principals), time.time()))

    async def reader(self, name: str) -> tuple[Reader, str]:
        """A person, by the sources that know this name, and the source in words. Raises HttpError,
        ConfigError."""
        return await asyncio.to_thread(self._reader, name)

    def _reader(self, name: str) -> tuple[Reader, str]:
        identity, source = self.users.identity(name), "a user of this server"
        if identity is None and self.directory is not None:
            found = self.directory.look_up(name)
            identity = None if found is None else self.identity_of(*found)
            source = "the directory knows this person"
        if identity is None:
            seen = next((one for one in self._seen.all() if one.name == name), None)
            if seen is not None:
                identity = self.identity_of(name, frozenset(seen.principals))
                source = "as of the last sign-in by the provider"
        if identity is not None:
            principals = all_of(self.table.expanded(identity.principals), signed_in=True)
            return Reader(identity.name, identity.role, principals), source
        own = f"user:{name}"
        named = self.table.expanded([own]) if self.table.knows(own) else frozenset[str]()
        source = "principals.toml names this person" if named else "no source knows this person"
        return Reader(name, principals=all_of(named, signed_in=True)), source

    async def signed_out(self, session: Session, origin: str) -> str:
        if self.provider is None or session.provider is None:
            return ""
        return str(await self.provider.end_url(session.provider.token, origin))


def secret_for(key: str, name: str, host: str, secrets: Secrets) -> str:
    """A secret that may go to this host; "" without a name. Raises ConfigError."""
    if not name:
        return ""
    found = secrets.of(name)
    if not found.may_go_to(host):
        raise ConfigError(
            f"{key}: {name} does not go to {host}: its own line names {' '.join(found.hosts)}"
        )
    return found.secret.reveal()
