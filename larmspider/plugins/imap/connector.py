"""The connector of ``imaps://mail.example/INBOX/17-4.eml`` (fetch/source_handler.py).

A mailbox is a folder. Its messages are files named for UIDVALIDITY and UID, which a server never
gives to another message. No message becomes a read one. A mailbox's access list (RFC 4314) is the
list of its messages; without access lists, they are only for the person of the account.
"""

from __future__ import annotations

import calendar
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import quote, unquote, urlsplit

import imapclient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError

from larmspider import stats
from larmspider.access.connected import AwayError
from larmspider.access.lists import (
    AUTHENTICATED,
    EVERYONE,
    OPERATORS_ONLY,
    AccessList,
    UnreadableError,
)
from larmspider.access.rights import Checked, Rights
from larmspider.fetch import errors
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import Sites
from larmspider.fetch.source_handler import (
    Answer,
    Found,
    Row,
    answer_of,
    folder_page,
    refuse_denied,
    refuse_denied_peer,
)
from larmspider.formatting import printable
from larmspider.urls.file_urls import FROM

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PART = 1_000
"""Messages in one list."""
PIECE = 1 << 20  # bytes of a message in one request
SELECTED_SECS = 30.0  # a mailbox is opened again: it may be another one of the same name
MAX_NUMBER = 2**32 - 1
REFUSED_SECS = 600.0  # a refused account is not tried again: servers lock accounts that fail often
_LOST = (IMAPClientAbortError, OSError, EOFError)
_AWAY = (
    errors.SignInRefused,
    errors.Refused,
    errors.Unresolved,
    errors.ConnectionLost,
    errors.TimedOut,
    errors.TlsFailed,
    errors.DeniedAddress,
)
_PASSING = ("[UNAVAILABLE]", "[INUSE]", "[LIMIT]", "[SERVERBUG]", "TOO MANY")
"""Words of a server that refuses an account for a while (RFC 5530)."""
_GONE = re.compile(r"\[NONEXISTENT\]|^[^\[]*\b(?:does not|doesn't) exist\b", re.IGNORECASE)
"""A mailbox that is not there: by its response code (RFC 5530), or in the words of a server that
gives no code."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NAMES = {"anyone": EVERYONE, "authenticated": AUTHENTICATED}
T = TypeVar("T")


class Place(NamedTuple):
    """``message`` is (UIDVALIDITY, UID); None for a mailbox. ``names`` lead to the mailbox."""

    server: str
    port: int
    names: tuple[str, ...]
    message: tuple[int, int] | None

    @property
    def url(self) -> str:
        host = f"[{self.server}]" if ":" in self.server else self.server
        port = "" if self.port == 993 else f":{self.port}"
        inside = "".join(f"{quote(name, safe='')}/" for name in self.names)
        return f"imaps://{host}{port}/{inside}"


class _Selected(NamedTuple):
    """The open mailbox. ``end``: the UID of its next message. ``access``: its list, or why it
    cannot be read."""

    name: str
    validity: int
    end: int
    access: AccessList | str
    until: float


@dataclass(slots=True)
class _Session:
    client: Any
    delimiter: str
    user: str
    selected: _Selected | None = None


class ImapConnector:
    """LARM_CONNECTORS["imaps"]. One connection a server, which one thread uses at a time."""

    def __init__(self, sites: Sites, limits: Limits, deny: DenyAddresses | None = None) -> None:
        self.sites, self.limits = sites, limits
        self._deny = deny or DenyAddresses(())
        self.known: dict[Any, AccessList] | None = None
        self._sessions: dict[tuple[str, int], _Session] = {}
        self._refused: dict[tuple[str, int], tuple[float, str]] = {}
        self._locks: dict[tuple[str, int], threading.Lock] = {}

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Raises ConfigError."""
        return cls(
            Sites.from_settings(settings),
            Limits.from_settings(settings),
            DenyAddresses.from_settings(settings),
        )

    def why_not(self, seed: str) -> str:
        """Why a seed cannot be crawled, "" if it can."""
        if place_of(seed) is None:
            return "expected a mailbox, as imaps://mail.example/INBOX/"
        site = self.sites.for_url(seed)
        credentials = None if site is None else site.options.credentials
        if credentials is None or credentials.method != "basic":
            return 'its mailboxes need auth = "basic", user and password in LARM_SITES_FILE'
        return ""

    def read(self, url: str, asked: dict[str, str], blobs: Path | None = None) -> Answer:
        """Raises the errors of fetch/errors.py."""
        place = place_of(url)
        if place is None:
            return Answer(404)
        if place.names and place.names[0] != "INBOX" and place.names[0].upper() == "INBOX":
            return Answer(301, {"Location": _inbox_of(place, url)})
        try:
            if place.message is None:
                return self._again(place, lambda session: self._list(session, place, url))
            return self._again(place, lambda one: self._message(one, place, url, asked, blobs))
        except IMAPClientError as error:
            if _GONE.search(str(error)):
                return Answer(404)
            raise errors.BadResponse(f"{place.server}: {_words(error)}") from None

    def _list(self, session: _Session, place: Place, url: str) -> Answer:
        client, rows, deleted = session.client, list[Row](), 0
        query, own = url.partition("?")[2], session.delimiter.join(place.names)
        mine = client.list_folders("", own) if own else []
        if own and not mine:
            return Answer(404)
        first = unquote(query.removeprefix(FROM)) if query else ""
        start = int(first) if first.isdecimal() else 0
        for flags, _, name in client.list_folders("", f"{own}{session.delimiter}%" if own else "%"):
            if not query and b"\\Nonexistent" not in flags:
                names = tuple(str(name).split(session.delimiter))
                rows.append(Row(place._replace(names=names).url, printable(names[-1]), 0.0, 0))
        more = ""
        if any(b"\\Noselect" not in flags for flags, _, _ in mine):  # others only hold mailboxes
            session.selected = None  # new messages
            _, validity, end, *_ = self._select(session, own)
            deleted = 0 if query else len(client.search("DELETED"))
            uids = _uids(client, start, end)
            more = str(uids[PART]) if len(uids) > PART else ""
            found = client.fetch(uids[:PART], ["RFC822.SIZE", "INTERNALDATE"]) if uids else {}
            for uid in uids[:PART]:
                if uid in found:
                    name = f"{validity}-{uid}.eml"
                    when = _seconds(found[uid])
                    rows.append(Row(place.url + name, name, when, found[uid][b"RFC822.SIZE"]))
        answer = folder_page(printable(unquote(place.url)), rows, more)
        if deleted:
            answer.body += f"\nLeft out: {deleted} deleted".encode()
            answer.counts = {stats.SOURCE_LEFT_OUT.format(why="deleted"): deleted}
        return answer

    def _message(
        self,
        session: _Session,
        place: Place,
        url: str,
        asked: dict[str, str],
        blobs: Path | None,
    ) -> Answer:
        assert place.message is not None
        validity, uid = place.message
        client = session.client
        selected = self._select(session, session.delimiter.join(place.names))
        if selected.validity != validity:
            return Answer(404)
        found = client.fetch([uid], ["RFC822.SIZE", "INTERNALDATE", "FLAGS"]).get(uid)
        if found is None or b"\\Deleted" in found.get(b"FLAGS", ()):
            return Answer(404)

        def pieces(most: int) -> Iterator[bytes]:
            at = 0
            while not most or at <= most:
                length = min(PIECE, most + 1 - at) if most else PIECE
                got = client.fetch([uid], [f"BODY.PEEK[]<{at}.{length}>"]).get(uid, {})
                data = (
                    next((one for key, one in got.items() if key.startswith(b"BODY")), b"") or b""
                )
                yield data
                at += len(data)
                if len(data) < length:
                    return

        mail = Found(found[b"RFC822.SIZE"], int(_seconds(found)) * 1_000_000_000, pieces)
        answer = answer_of(mail, url, asked, self.limits, blobs)
        answer.headers["Content-Type"] = "message/rfc822"
        access = selected.access
        answer.rights = access if isinstance(access, str) else Rights(access)
        return answer

    def _select(self, session: _Session, own: str) -> _Selected:
        """Open a mailbox. To open a large one for each message would take most of the time."""
        found = session.selected
        if found is None or found.name != own or time.monotonic() > found.until:
            session.selected = None
            told = session.client.select_folder(own, readonly=True)
            validity, end = told.get(b"UIDVALIDITY", 0), told.get(b"UIDNEXT", MAX_NUMBER + 1)
            access: AccessList | str
            try:
                access = self._list_of(session, own)
            except UnreadableError as error:
                access = str(error)
            found = _Selected(own, validity, end, access, time.monotonic() + SELECTED_SECS)
            session.selected = found
        return found

    # rights

    def _list_of(self, session: _Session, own: str) -> AccessList:
        """The access list of a mailbox. Raises UnreadableError."""
        owner = f"user:{session.user}"
        if not session.client.has_capability("ACL"):
            return AccessList.simple([owner])
        try:
            found = session.client.getacl(own)
        except IMAPClientError as error:
            raise UnreadableError(f"the server does not tell the list of {own}") from error
        principals = set[str]()
        for name, rights in found:
            text, given = _text(name), "r" in _text(rights)
            if not given:
                continue
            if text.startswith("-"):
                raise UnreadableError(f"the list of {own} denies, which no simple list can do")
            principals.add(owner if text == "owner" else _principal(text))
        return AccessList.simple(sorted(principals))

    def root_of(self, name: str) -> str | None:
        place = place_of(name)
        return None if place is None else place._replace(names=(), message=None).url

    def is_mounted(self, root: str) -> bool:
        place = place_of(root)
        try:
            return place is not None and bool(self._again(place, lambda one: one.client.noop()))
        except (IMAPClientError, *_AWAY):
            return False

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        """A mailbox is entered by its own list alone."""
        return []

    def files(self, folder: str, names: list[str]) -> Iterator[Checked]:
        """Raises AwayError."""
        place = place_of(folder)
        try:
            if place is None:
                raise UnreadableError("it lies in no mailbox")
            found = self._again(
                place, lambda one: self._list_of(one, one.delimiter.join(place.names))
            )
            yield from (Checked(name, found) for name in names)
        except UnreadableError as error:
            yield from (Checked(name, OPERATORS_ONLY, str(error)) for name in names)
        except (IMAPClientError, *_AWAY) as error:
            raise AwayError(_words(error)) from None

    # the connection

    def _again(self, place: Place, call: Callable[[_Session], T]) -> T:
        """A connection that ended is made once more."""
        key = place.server, place.port
        with self._locks.setdefault(key, threading.Lock()):
            for last in (False, True):
                session = self._sessions.get(key)
                if session is None:
                    session = self._sessions[key] = self._signed_in(place)
                try:
                    return call(session)
                except _LOST as error:
                    del self._sessions[key]
                    with suppress(Exception):
                        session.client.shutdown()
                    if last:
                        raise errors.ConnectionLost(f"{place.server}: {_words(error)}") from None
        raise AssertionError

    def _signed_in(self, place: Place) -> _Session:
        key = place.server, place.port
        until, why = self._refused.get(key, (0.0, ""))
        if time.monotonic() < until:
            raise errors.SignInRefused(why)
        site = self.sites.for_url(place.url)
        credentials = None if site is None else site.options.credentials
        if credentials is None or credentials.user is None or credentials.password is None:
            raise errors.SignInRefused(f"{place.server}: the sites file has no account for it")
        ca_file = None if site is None else site.options.ca_file
        refuse_denied(self._deny, place.server, place.port)
        try:
            client = imapclient.IMAPClient(
                place.server, place.port, ssl_context=ssl.create_default_context(cafile=ca_file),
                timeout=imapclient.SocketTimeout(self.limits.connect_secs, self.limits.total_secs),
            )  # fmt: skip
        except ssl.SSLError as error:
            raise errors.TlsFailed(f"{place.server}: {_words(error)}") from None
        except socket.gaierror:
            raise errors.Unresolved(f"{place.server} has no address") from None
        except TimeoutError:
            raise errors.TimedOut(f"{place.server}:{place.port} does not answer") from None
        except (IMAPClientError, *_LOST) as error:
            raise errors.Refused(f"{place.server}:{place.port}: {_words(error)}") from None
        try:
            refuse_denied_peer(self._deny, client.socket())
        except (OSError, errors.DeniedAddress) as error:
            with suppress(Exception):
                client.shutdown()
            if isinstance(error, OSError):
                raise errors.ConnectionLost(f"{place.server}: {_words(error)}") from None
            raise
        client.normalise_times = False
        user = credentials.user.reveal()
        try:
            client.login(user, credentials.password.reveal())
            found = client.list_folders("", "")
        except (IMAPClientError, *_LOST) as error:
            with suppress(Exception):
                client.shutdown()
            words = _words(error).upper()
            is_lost = isinstance(error.__context__, IMAPClientAbortError)
            is_refused = isinstance(error, LoginError) and not is_lost
            if not is_refused or any(one in words for one in _PASSING):
                raise errors.ConnectionLost(f"{place.server}: {_words(error)}") from None
            is_old = "[EXPIRED]" in words
            why = "the password has expired" if is_old else "the name or the password is wrong"
            self._refused[key] = time.monotonic() + REFUSED_SECS, f"{place.server}: {why}"
            raise errors.SignInRefused(f"{place.server}: {why}") from None
        delimiter = _text(found[0][1]) if found and found[0][1] else "/"
        return _Session(client, delimiter, user)

    def close(self) -> None:
        """End the connections."""
        for session in self._sessions.values():
            with suppress(Exception):
                session.client.shutdown()
        self._sessions.clear()


def place_of(url: str) -> Place | None:
    """None for a URL of no mailbox and no message."""
    parts = urlsplit(url.partition("?")[0])
    try:
        server, port = parts.hostname, parts.port or 993
        *names, last = [unquote(name, errors="strict") for name in parts.path.split("/")[1:]]
        message = None
        if last:
            validity, _, uid = last.removesuffix(".eml").partition("-")
            message = int(validity), int(uid)
            if not all(0 < number <= MAX_NUMBER for number in message):
                return None
    except ValueError:
        return None
    unfit = any(not name or _CONTROL.search(name) for name in names)
    if parts.scheme != "imaps" or not server or unfit or (message and not names):
        return None
    return Place(server, port, tuple(names), message)


def _uids(client: Any, start: int, end: int) -> list[int]:
    """The UIDs of the messages from ``start`` on, more than PART if there are more. Each request
    looks through twice the range of the last one: some mailboxes have large gaps."""
    found, width, start = list[int](), 10 * PART, max(start, 1)
    while start < end and len(found) <= PART:
        last = min(start + width, end) - 1
        found += sorted(client.search(["UID", f"{start}:{last}", "UNDELETED"]))
        start, width = last + 1, 2 * width
    return found


def _inbox_of(place: Place, url: str) -> str:
    """The URL with the name of the INBOX in capitals: letter case does not matter there alone."""
    base = place._replace(names=()).url
    return f"{base}INBOX{url[len(base) + 5 :]}"


def _principal(text: str) -> str:
    """Identifiers of RFC 4314, with groups as Dovecot and Cyrus write them."""
    for begin in ("$", "group=", "group:"):
        if text.startswith(begin):
            return f"group:{text.removeprefix(begin)}"
    return _NAMES.get(text) or f"user:{text.removeprefix('user=')}"


def _seconds(found: Any) -> float:
    when = found.get(b"INTERNALDATE")
    return float(calendar.timegm(when.utctimetuple())) if when is not None else 0.0


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _words(error: Exception) -> str:
    words = " ".join(str(error).split()).removeprefix("b'").removesuffix("'")
    return words or type(error).__name__
