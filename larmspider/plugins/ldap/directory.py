"""A directory of people: passwords are checked by a bind as the person, groups by a search.

    directory = LdapDirectory(settings.ldap, "the password of ldap.user")
    directory.check("anna", "correct horse battery")    # name and principals; None if wrong
    directory.look_up("anna")                           # without a password, for "see as"

Each call opens its own connection. Referrals are never followed.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import ldap3
from ldap3.core.exceptions import LDAPException, LDAPSASLPrepError
from ldap3.protocol.formatters.formatters import format_sid
from ldap3.utils.conv import escape_filter_chars

from larmspider.errors import ConfigError, HttpError
from larmspider.formatting import printable
from larmspider.server.config.sign_in_settings import Ldap
from larmspider.web.people import DIRECTORY_AWAY
from larmspider.web.reader import MAX_PRINCIPALS, checked_groups, checked_name

logger = logging.getLogger(__name__)

IN_CHAIN = "1.2.840.113556.1.4.1941"
"""LDAP_MATCHING_RULE_IN_CHAIN: groups of groups in one search."""
ACTIVE_DIRECTORY = "1.2.840.113556.1.4.800"
"""The capability of servers that have IN_CHAIN and tokenGroups."""
MAX_DEPTH = 20
"""Groups within groups that are walked."""
DNS_AT_ONCE = 50
"""Groups whose own groups one search finds."""
TOTAL = 4
"""All requests of a sign-in together take at most this many times ldap.seconds."""
PAGE = 500
_REFUSED = (19, 32, 48, 49, 50, 53)
"""Results of a bind that are the person's own fault, such as 49, a wrong password."""
Entry = tuple[str, Mapping[str, list[bytes]]]


class _Tls(ldap3.Tls):  # type: ignore[misc]
    """Python checks certificate and name. ldap3 checks the name by ssl.match_hostname, which Python
    3.12 does not have."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        connection.socket = self._context.wrap_socket(
            connection.socket, server_hostname=connection.server.host
        )


class LdapDirectory:
    def __init__(self, settings: Ldap, password: str) -> None:
        self.settings, self._password = settings, password
        parts = urlsplit(settings.url)
        tls = None
        if parts.scheme == "ldaps" or settings.start_tls:
            try:
                tls = _Tls(ssl.create_default_context(cafile=settings.ca_file or None))
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(f"ldap.ca_file {settings.ca_file}: {error}") from None
        self._starts_tls = parts.scheme == "ldap" and settings.start_tls
        self._tls = tls
        self._is_active_directory: bool | None = None

    def check(self, name: str, password: str) -> tuple[str, frozenset[str]] | None:
        """The person's name and principals; None for a wrong name or password. Raises
        HttpError."""
        if not name or not password:  # a bind without a password is anonymous, and succeeds
            return None
        if any("\ud800" <= one <= "\udfff" for one in name + password):
            return None
        with self._bound() as search:
            entry = search.person(name)
            if entry is None or not self._is_right(entry[0], password):
                return None
            return self._person(search, entry)

    def look_up(self, name: str) -> tuple[str, frozenset[str]] | None:
        """The person's name and principals. Raises HttpError."""
        with self._bound() as search:
            entry = search.person(name, named=True)
            return None if entry is None else self._person(search, entry)

    def _is_right(self, dn: str, password: str) -> bool:
        with self._connection(dn, password) as connection:
            try:
                connection.bind()
            except LDAPSASLPrepError:  # a password with control characters
                return False
            code: int = connection.result["result"]
        if code and code not in _REFUSED:
            self._fail(f"a bind as {printable(dn)} ends with {connection.result['description']}")
        return code == 0

    @contextmanager
    def _bound(self) -> Iterator[_Search]:
        """Searches as the account of the settings."""
        with self._connection(self.settings.user, self._password) as connection:
            if not connection.bind():
                found = connection.result["description"]
                self._fail(f"the account {self.settings.user or 'anonymous'} is refused: {found}")
            yield _Search(self, connection)

    @contextmanager
    def _connection(self, user: str, password: str) -> Iterator[Any]:
        parts, seconds = urlsplit(self.settings.url), self.settings.seconds
        server = ldap3.Server(  # a new one: ldap3 takes one that was away for away for 5 minutes
            parts.hostname or "",
            port=parts.port or (636 if parts.scheme == "ldaps" else 389),
            use_ssl=parts.scheme == "ldaps",
            tls=self._tls,
            get_info=ldap3.NONE,
            connect_timeout=seconds,
        )
        connection = ldap3.Connection(
            server,
            user=user or None,
            password=password or None,
            authentication=ldap3.SIMPLE if user else ldap3.ANONYMOUS,
            receive_timeout=seconds,
            auto_referrals=False,
            read_only=True,
            raise_exceptions=False,
        )
        try:
            connection.open(read_server_info=False)
            if self._starts_tls:
                connection.start_tls(read_server_info=False)
            yield connection
        except (LDAPException, OSError) as error:
            self._fail(printable(str(error)[:300]))
        finally:
            with suppress(LDAPException, OSError):
                connection.unbind()
            if connection.socket is not None:  # unbind() leaves one that could not be opened
                connection.socket.close()

    def _fail(self, why: str) -> None:
        """Raises HttpError; the log says why."""
        logger.error("%s: %s", self.settings.url, why)
        raise HttpError(DIRECTORY_AWAY, 503)

    def is_active_directory(self, connection: Any) -> bool:
        if self._is_active_directory is None:
            connection.search(
                "", "(objectClass=*)", ldap3.BASE, attributes=["supportedCapabilities"]
            )
            found = [one["raw_attributes"] for one in connection.response or ()]
            values = found[0].get("supportedCapabilities", []) if found else []
            self._is_active_directory = ACTIVE_DIRECTORY.encode() in values
        return self._is_active_directory

    def _person(self, search: _Search, entry: Entry) -> tuple[str, frozenset[str]]:
        dn, values = entry
        name = _text(values, self.settings.name_attribute)
        try:
            name = checked_name(name, "name")
            groups = search.groups(dn, name)
            found = [_text(one, self.settings.group_attribute) for _, one in groups]
            principals = set(checked_groups(filter(None, found), name))
        except ConfigError as error:
            raise HttpError(f"{error}.", 403) from None
        principals |= {f"user:{name}", *_numbers(values, "uid:", "uidNumber"), *_sids(values)}
        for one in (values, *(one for _, one in groups)):
            principals |= {*_numbers(one, "gid:", "gidNumber"), *_sids(one)}
        principals |= search.token_groups(dn)
        return name, frozenset(principals)


class _Search:
    """The searches of one sign-in, which have one deadline."""

    def __init__(self, directory: LdapDirectory, connection: Any) -> None:
        self._directory, self._connection = directory, connection
        self._settings = directory.settings
        self._ends = time.monotonic() + TOTAL * self._settings.seconds

    def person(self, name: str, *, named: bool = False) -> Entry | None:
        """The entry of a name; None for none, or several. ``named``: of the name that the directory
        gave, too, where people type another one."""
        if len(name) > 256:
            return None
        query = self._settings.filter.replace("{name}", escape_filter_chars(name))
        if named:
            anybody = self._settings.filter.replace("{name}", "*")
            own = f"({self._settings.name_attribute}={escape_filter_chars(name)})"
            query = f"(|{query}(&{anybody}{own}))"
        names = [self._settings.name_attribute, "uidNumber", "gidNumber", "objectSid"]
        found = self._entries(self._settings.base, query, names, most=2)
        if len(found) > 1:
            logger.warning("%s: several people match %s", self._settings.url, printable(name))
        if len(found) != 1 or not _text(found[0][1], self._settings.name_attribute):
            return None
        return found[0]

    def groups(self, dn: str, name: str) -> list[Entry]:
        """The groups of a person, with the groups of groups. Raises HttpError for too many."""
        nested = self._settings.nested
        if nested == "auto":
            is_ad = self._directory.is_active_directory(self._connection)
            nested = "chain" if is_ad else "walk"
        if nested == "chain":
            return self._groups(f"(member:{IN_CHAIN}:={escape_filter_chars(dn)})")
        member = f"(memberUid={escape_filter_chars(name)})"
        found = {one[0].lower(): one for one in self._groups(f"(|{_having([dn])}{member})")}
        waiting = list(found.values())
        for _ in range(MAX_DEPTH if nested == "walk" else 0):
            if not waiting:
                break
            more: dict[str, Entry] = {}
            for at in range(0, len(waiting), DNS_AT_ONCE):
                dns = [one[0] for one in waiting[at : at + DNS_AT_ONCE]]
                more |= {one[0].lower(): one for one in self._groups(f"(|{_having(dns)})")}
            waiting = [one for key, one in more.items() if key not in found]
            found |= more
            _refuse_many(len(found))
        return list(found.values())

    def token_groups(self, dn: str) -> set[str]:
        """The SIDs of all groups, as Active Directory counts them, the primary one included."""
        if not self._directory.is_active_directory(self._connection):
            return set()
        self._connection.search(dn, "(objectClass=*)", ldap3.BASE, attributes=["tokenGroups"])
        return {
            sid
            for one in self._connection.response or ()
            for sid in _sids(one.get("raw_attributes", {}), "tokenGroups")
        }

    def _groups(self, query: str) -> list[Entry]:
        names = [self._settings.group_attribute, "gidNumber", "objectSid"]
        base = self._settings.group_base or self._settings.base
        found = self._entries(base, query, names, most=MAX_PRINCIPALS + 1)
        _refuse_many(len(found))
        return found

    def _entries(self, base: str, query: str, names: list[str], most: int) -> list[Entry]:
        found: list[Entry] = []
        cookie: bytes | None = None
        while True:
            if time.monotonic() > self._ends:
                self._directory._fail(f"took longer than {TOTAL * self._settings.seconds:g} s")
            self._connection.search(
                base, query, ldap3.SUBTREE, attributes=names, paged_size=PAGE, paged_cookie=cookie
            )
            result = self._connection.result
            if result["result"] not in (0, 4, 32):  # 4: more than its limit; 32: no such tree
                self._directory._fail(
                    f"a search ends with {result['description']}"
                    + (": name the server that it refers to" if result["result"] == 10 else "")
                )
            found += [
                (one["dn"], one["raw_attributes"])
                for one in self._connection.response or ()
                if one["type"] == "searchResEntry"
            ]
            controls = result.get("controls", {}).get("1.2.840.113556.1.4.319", {})
            cookie = controls.get("value", {}).get("cookie")
            if result["result"] == 4 and len(found) < most:
                self._directory._fail(f"gives only {len(found)} entries: raise its size limit")
            if not cookie or len(found) >= most:
                return found


def _refuse_many(number: int) -> None:
    if number > MAX_PRINCIPALS:
        raise HttpError(
            f"A person is in more than {MAX_PRINCIPALS:,} groups: expected at most that many; set"
            " ldap.group_base to the tree of the groups that the search needs.", 403
        )  # fmt: skip


def _having(dns: list[str]) -> str:
    return "".join(
        f"(member={dn})(uniqueMember={dn})" for dn in (escape_filter_chars(one) for one in dns)
    )


def _text(values: Mapping[str, list[bytes]], name: str) -> str:
    found = values.get(name) or [b""]
    return found[0].decode("utf-8", "replace")


def _numbers(values: Mapping[str, list[bytes]], front: str, name: str) -> set[str]:
    """Without 0: it is root, who may read each file."""
    found = {int(one) for one in values.get(name, ()) if one.isdigit() and len(one) <= 10}
    return {f"{front}{one}" for one in found if one}


def _sids(values: Mapping[str, list[bytes]], name: str = "objectSid") -> set[str]:
    found = {format_sid(one) for one in values.get(name, ())}
    return {f"sid:{one}" for one in found if isinstance(one, str)}
