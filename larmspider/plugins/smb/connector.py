"""The connector of ``smb://server:port/share/folder/file`` (fetch/source_handler.py).

A file comes with its times, its size and its access list in one request. A folder lists files and
folders, without hidden, system and offline entries and without links to other folders; it says how
many it leaves out. A share that is away fails as a whole, so that none of its files counts as gone.
"""

from __future__ import annotations

import bisect
import re
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import quote, unquote, urlsplit

from larmspider import options, stats
from larmspider.access.connected import AwayError
from larmspider.access.lists import OPERATORS_ONLY, AccessList, UnreadableError
from larmspider.access.nt import of_bytes
from larmspider.access.rights import Checked, Rights, mark_of
from larmspider.errors import ConfigError
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
    headers_of,
    is_as_it_was,
    refuse_denied,
    refuse_denied_peer,
)
from larmspider.formatting import printable
from larmspider.plugins.smb import messages as smb
from larmspider.plugins.smb.link import Account, Link, LostError, SignInError, StatusError
from larmspider.plugins.smb.messages import Entry, Opened, Reply
from larmspider.plugins.smb.shares import Referral, list_of_share, referral
from larmspider.redaction import redacted
from larmspider.urls.file_urls import FROM

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from smbprotocol.tree import TreeConnect

PART = 10_000
"""Entries of a folder in one list."""
LARGEST = 1_000_000
"""Entries of a folder that are listed at all, and entries of large folders that are kept."""
MAX_DEPTH = 200
"""Nested folders."""
MAX_REFERRALS = 8
"""DFS links that are followed in a row."""
REFUSED_SECS = 600.0  # a refused account is not tried again: servers lock accounts that fail often
LIST_SECS = 600.0  # the access list of a share is read again
LISTING_SECS = 600.0  # the parts of a large folder are made from one reading
NUMBERS = 10_000  # folders whose numbers on their volume are remembered

_FIRST_BYTES = 65_536  # first bytes of a file, read by the request that opens it
HIDDEN, SYSTEM, FOLDER, REPARSE, OFFLINE = 0x2, 0x4, 0x10, 0x400, 0x1000
_IN_AN_ARCHIVE = OFFLINE | 0x40000 | 0x400000  # recalled when it is opened, or read
_NAME_SURROGATE = 0x20000000  # reparse points that stand for another file or folder
_UNFIT = re.compile(r'[\x00-\x1f"*/:<>?\\|]')

ACCESS_DENIED, IS_A_FOLDER, NO_FOLDER, END_OF_FILE = 0xC0000022, 0xC00000BA, 0xC0000103, 0xC0000011
NO_MORE_FILES, NO_SUCH_FILE, NOT_COVERED = 0x80000006, 0xC000000F, 0xC0000257
_DENIED = frozenset({ACCESS_DENIED, 0xC0000061, 0xC000028B})
_GONE = frozenset({0xC0000034, 0xC000003A, NO_SUCH_FILE, 0xC0000033, 0xC0000039, 0xC000003B,
                   0xC0000056, NO_FOLDER})  # fmt: skip
_LOCKED = frozenset({0xC0000043, 0xC0000054})
_NO_SHARE = frozenset({0xC00000CC, 0xC00000BE, 0xC000026E, 0xC0000013, 0xC0000225})
_EXPIRED = frozenset({0xC0000203, 0xC000035C})
_TREE_GONE = 0xC00000C9
_OVERLOADED = frozenset({0xC000009A, 0xC0000205, 0xC00000D0, 0xC00000CE})
LEADS_NOWHERE = 0xC000026D
RING = -1  # no server sends it
T = TypeVar("T")


class _LinkError(Exception):
    """A path lies over a DFS link, which is known from now on."""


class Place(NamedTuple):
    """A URL, read. ``port`` is part of the server that signs in; ``names`` lead from the share."""

    server: str
    port: int
    share: str
    names: tuple[str, ...] = ()
    is_folder: bool = False

    @property
    def path(self) -> str:
        return "\\".join(self.names)

    @property
    def root(self) -> str:
        host = f"[{self.server}]" if ":" in self.server else self.server
        port = "" if self.port == 445 else f":{self.port}"
        return f"smb://{host}{port}/{_escaped(self.share)}/"

    @property
    def url(self) -> str:
        inside = "/".join(map(_escaped, self.names))
        return self.root + inside + ("/" if self.is_folder and inside else "")


class Spot(NamedTuple):
    """The real place of a URL: a tree, the path in it, and the shares on the way. ``root``: the
    folder of the tree to which a DFS link leads, "" for all of it."""

    link: Link
    tree: TreeConnect
    share: str
    path: str
    shares: tuple[str, ...]
    is_target: bool = False
    root: str = ""

    @property
    def full(self) -> str:
        """The path as a request names it: with server and share on a DFS share."""
        if not self.tree.is_dfs_share:
            return self.path
        return "\\".join(filter(None, (self.link.server, self.share, self.path)))


class _Listing(NamedTuple):
    """``read``: when, by the monotonic clock; ``changed``: the time of the folder."""

    read: float
    changed: int
    entries: list[Entry]
    left_out: Counter[str]


class SmbConnector:
    """LARM_CONNECTORS["smb"]."""

    def __init__(
        self,
        sites: Sites,
        limits: Limits,
        shares: dict[str, AccessList] | None = None,
        deny: DenyAddresses | None = None,
    ) -> None:
        """``shares``: access lists of shares that the server does not tell, by URL."""
        self._deny = deny or DenyAddresses(())
        self.sites, self.limits = sites, limits
        self.known: dict[Any, AccessList] | None = None
        self._shares = {_share_key(url): one for url, one in (shares or {}).items()}
        self._listings: dict[str, _Listing] = {}
        self._numbers: dict[tuple[str, str], tuple[float, int]] = {}
        self._referrals: list[Referral] = []
        self._lists: dict[str, tuple[float, AccessList | str]] = {}
        self._keeping = threading.Lock()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Raises ConfigError."""
        name, shares = "LARM_SMB_SHARE_ACCESS", dict[str, AccessList]()
        for url, principals in options.mapping(settings, name).items():
            if not isinstance(principals, list) or (place := place_of(url)) is None:
                raise ConfigError(
                    f'{name}: {url:.80}: expected shares with principals, as {{"smb://nas/share/":'
                    ' ["authenticated"]}'
                )
            shares[place.root] = AccessList.simple(principals)
        return cls(
            Sites.from_settings(settings),
            Limits.from_settings(settings),
            shares,
            DenyAddresses.from_settings(settings),
        )

    def why_not(self, seed: str) -> str:
        """Why a seed cannot be crawled, "" if it can."""
        if place_of(seed) is None:
            return "expected a share, as smb://server/share/folder/"
        site = self.sites.for_url(seed)
        credentials = None if site is None else site.options.credentials
        if credentials is not None and credentials.method not in ("ntlm", "negotiate"):
            return f"auth = {credentials.method!r} is not for shares: expected ntlm or negotiate"
        is_by_ticket = credentials is not None and credentials.method == "negotiate"
        if is_by_ticket and not all(map(find_spec, ("gssapi", "krb5"))):
            return "auth = 'negotiate' needs gssapi and krb5: pip install 'larmspider[kerberos]'"
        return ""

    # documents

    def read(self, url: str, asked: dict[str, str], blobs: Path | None = None) -> Answer:
        """Raises the errors of fetch/errors.py."""
        place = place_of(url)
        if place is None or (place.share == "robots.txt" and not place.names):
            return Answer(404)
        try:
            try:
                if place.is_folder:
                    return self._again(lambda: self._list(place, url))
                return self._again(lambda: self._file(place, url, asked, blobs))
            except StatusError as error:
                return self._refused(place, error.status)
        except StatusError as error:  # about the share of a missing file
            raise errors.Unavailable(f"{printable(place.root)}: {error}") from None
        except (struct.error, UnicodeError) as error:
            raise errors.BadResponse(f"{place.server}: a damaged answer: {error}") from None
        except LostError as error:
            raise errors.ConnectionLost(f"{place.server}: the connection ended {error}") from None
        except SignInError as error:
            raise errors.SignInRefused(f"{place.server}: {error}") from None

    def _again(self, call: Callable[[], T]) -> T:
        """A connection or session that ended is made once more; each DFS link of a path is
        followed. Raises LostError, StatusError."""
        is_last = False
        for _ in range(MAX_REFERRALS + 2):
            try:
                return call()
            except _LinkError:
                continue
            except LostError:
                if is_last:
                    raise
            except StatusError as error:
                if error.status not in _EXPIRED and error.status != _TREE_GONE:
                    raise
                if is_last:
                    raise LostError(str(error)) from None
            is_last = True
        raise StatusError(LEADS_NOWHERE)

    def _refused(self, place: Place, status: int) -> Answer:
        """Raises Unmounted, Locked, Unavailable, ConnectionLost, StatusError, LostError,
        SignInError."""
        if status == RING:
            return Answer(404, counts={stats.SOURCE_LEFT_OUT.format(why="ring"): 1})
        if status == LEADS_NOWHERE:
            raise errors.Unavailable("its DFS link leads nowhere")
        if status in _NO_SHARE:
            raise errors.Unmounted(f"{printable(place.root)} is not there: is the share offered?")
        if status in _DENIED:
            try:
                spot = self._spot(place)
            except (StatusError, LostError, SignInError, *_NETWORK):
                spot = None
            if spot is None or spot.path == spot.root:
                raise _away(place, spot, "may not be opened or listed by the crawl's account")
            return Answer(403)
        if status in _LOCKED:
            raise errors.Locked("another program has locked the file")
        if status in _OVERLOADED:
            raise errors.ConnectionLost(f"{place.server} is overloaded (status {status:#010x})")
        if status not in _GONE:
            raise errors.Unavailable(f"{place.server} answers with status {status:#010x}")
        spot, is_there = self._again(lambda: self._looked_at(place))
        if not is_there:
            raise _away(place, spot, "is empty or not there")
        return Answer(404)

    def _looked_at(self, place: Place) -> tuple[Spot, bool]:
        spot = self._spot(place)
        return spot, self._is_there(spot)

    def _file(self, place: Place, url: str, asked: dict[str, str], blobs: Path | None) -> Answer:
        spot = self._spot(place)
        conditional = any(asked.values())
        reading = [] if conditional else [smb.read(0, _FIRST_BYTES)]
        options_ = smb.IS_NO_FOLDER | smb.NO_RECALL
        opening = smb.create(spot.full, smb.READ_FILE, options_)
        created, security, *first = self._ask(
            spot, [opening, smb.query_security(), *reading, smb.close()]
        )[: 2 + len(reading)]
        if created.status == IS_A_FOLDER:
            return Answer(301, {"Location": place._replace(is_folder=True).url})
        if created.status == ACCESS_DENIED:  # the account may perhaps not read the access list
            opening = smb.create(spot.full, smb.READ_FILE_ONLY, options_)
            created, *first = self._ask(spot, [opening, *reading, smb.close()])[: 1 + len(reading)]
            security = Reply(ACCESS_DENIED, b"")
        self._check(created)
        opened = Opened.of(created)
        if opened.attributes & (HIDDEN | SYSTEM):
            return Answer(403, counts={stats.SOURCE_LEFT_OUT.format(why="hidden"): 1})
        rights = self._rights(spot, security)
        pieces = self._pieces(spot, opened, first[0] if first else None)
        found = Found(opened.size, opened.mtime_ns, pieces)
        in_archive = opened.attributes & _IN_AN_ARCHIVE
        if in_archive and not is_as_it_was(headers_of(found, url), asked):
            raise errors.Offline("the file lies in an archive, and is not read from there")
        answer = answer_of(found, url, asked, self.limits, blobs)
        answer.rights = rights
        return answer

    def _pieces(
        self, spot: Spot, opened: Opened, first: Reply | None
    ) -> Callable[[int], Iterator[bytes]]:
        """The bytes of a file. Raises StatusError, CutShort."""

        def pieces(most: int) -> Iterator[bytes]:
            left = min(opened.size, most + 1 if most else opened.size)
            at = 0
            if first is not None and left:
                if first.status and first.status != END_OF_FILE:
                    raise StatusError(first.status)
                begin = first.content[:left] if not first.status else b""
                at = len(begin)
                yield begin
            if at >= left:
                return
            opening = smb.create(spot.full, smb.READ_FILE_ONLY, smb.IS_NO_FOLDER)
            (created,) = self._ask(spot, [opening])
            self._check(created)
            again = Opened.of(created)
            try:
                if (again.mtime_ns, again.size) != (opened.mtime_ns, opened.size):
                    raise errors.CutShort("the file was written to while it was read")
                while at < left:
                    length = min(spot.link.most_bytes, left - at)
                    (reply,) = self._ask(spot, [smb.read(at, length, again.file)])
                    if reply.status == END_OF_FILE or not (reply.status or reply.content):
                        raise errors.CutShort("the file became shorter while it was read")
                    self._check(reply)
                    at += len(reply.content)
                    yield reply.content
            finally:
                spot.link.ask(spot.tree, [smb.close(again.file)])

        return pieces

    # folders

    def _list(self, place: Place, url: str) -> Answer:
        query = url.partition("?")[2]
        if query and not query.startswith(FROM):
            return Answer(404)
        spot = self._spot(place)
        try:
            listing = self._listing(place, spot)
        except StatusError as error:
            if error.status == NO_FOLDER:
                return Answer(301, {"Location": place._replace(is_folder=False).url})
            raise
        if not listing.entries and spot.path == spot.root:
            raise _away(place, spot, "is empty: is the share mounted?")
        begin = _order(unquote(query.removeprefix(FROM)))
        start = bisect.bisect_left(listing.entries, begin, key=lambda one: _order(one.name))
        part = listing.entries[start : start + PART]
        rows, left_out = self._rows(place, spot, part)
        others = listing.entries[start + PART : start + PART + 1]
        following = _escaped(others[0].name) if others else ""
        if not query:
            left_out += listing.left_out
        answer = folder_page(printable(unquote(place.url)), rows, following)
        if left_out:
            said = ", ".join(f"{number} {why}" for why, number in sorted(left_out.items()))
            answer.body += f"\nLeft out: {said}".encode()
        answer.counts = {
            stats.SOURCE_LEFT_OUT.format(why=why): number for why, number in left_out.items()
        }
        return answer

    def _listing(self, place: Place, spot: Spot) -> _Listing:
        """The entries of a folder, by name. A large folder is read once for all of its parts."""
        opening = smb.create(spot.full, smb.LIST_FOLDER, smb.IS_FOLDER)
        (created,) = self._ask(spot, [opening])
        self._check(created)
        opened = Opened.of(created)
        try:
            known = self._listings.get(place.url)
            is_fresh = known is not None and time.monotonic() - known.read < LISTING_SECS
            if known is not None and is_fresh and known.changed == opened.mtime_ns:
                return known
            found = _of_readers(self._entries(spot, opened.file), opened.mtime_ns)
        finally:
            spot.link.ask(spot.tree, [smb.close(opened.file)])
        if len(found.entries) > PART:
            with self._keeping:
                kept = self._listings
                kept.pop(place.url, None)
                while kept and sum(len(one.entries) for one in kept.values()) > (
                    LARGEST - len(found.entries)
                ):
                    del kept[next(iter(kept))]
                kept[place.url] = found
        return found

    def _entries(self, spot: Spot, folder: bytes) -> Iterator[Entry]:
        while True:
            (reply,) = self._ask(spot, [smb.query_directory(spot.link.most_bytes, folder)])
            if reply.status in (NO_MORE_FILES, NO_SUCH_FILE):
                return
            self._check(reply)
            found = smb.entries_of(reply.info)
            if not found:
                return
            yield from found

    def _rows(
        self, place: Place, spot: Spot, entries: list[Entry]
    ) -> tuple[list[Row], Counter[str]]:
        rows, left_out = list[Row](), Counter[str]()
        has_folders = any(entry.attributes & FOLDER for entry in entries)
        above = self._numbers_above(spot) if has_folders else set()
        base = place.url
        for name, mtime_ns, size, attributes, _, number in entries:
            when = mtime_ns / 1e9
            if not attributes & FOLDER:
                rows.append(Row(base + _escaped(name), printable(name), when, size))
            elif number in above or len(place.names) >= MAX_DEPTH:
                left_out["ring" if number in above else "too-deep"] += 1
            else:
                rows.append(Row(f"{base}{_escaped(name)}/", printable(name), when, 0))
        return rows, left_out

    def _numbers_above(self, spot: Spot) -> set[int]:
        """The numbers of a folder and of all folders that it lies in."""
        names = spot.path.split("\\") if spot.path else []
        found, now = set[int](), time.monotonic()
        for depth in range(len(names) + 1):
            at = spot._replace(path="\\".join(names[:depth]))
            key = spot.tree.share_name.lower(), at.path.lower()
            read, known = self._numbers.get(key, (now - LISTING_SECS, 0))
            if now - read >= LISTING_SECS:  # a server gives the number of a deleted folder again
                opening = smb.create(at.full, smb.READ_RIGHTS, smb.IS_FOLDER)
                created, reply, _ = self._ask(at, [opening, smb.query_number(), smb.close()])
                if created.status or reply.status:
                    continue
                if len(self._numbers) >= NUMBERS:
                    self._numbers.clear()
                known = int.from_bytes(reply.info[:8], "little")
                self._numbers[key] = now, known
            found.add(known)
        return found - {0}

    # rights

    def _rights(self, spot: Spot, security: Reply) -> Rights | str:
        """The rights of a file, or why they cannot be read."""
        try:
            above = tuple((url, self._list_of(url, spot)) for url in spot.shares)
            return Rights(_descriptor(security), "", above)
        except UnreadableError as error:
            return str(error)

    def _list_of(self, share_url: str, spot: Spot) -> AccessList:
        """The access list of a share. Raises UnreadableError, LostError."""
        given = self._shares.get(_share_key(share_url))
        if given is not None:
            return given
        if self.known is not None and share_url in self.known:
            return self.known[share_url]
        when, found = self._lists.get(share_url, (-LIST_SECS, ""))
        if self.known is not None or time.monotonic() - when >= LIST_SECS:
            found = self._asked_list(share_url, spot)
            self._lists[share_url] = time.monotonic(), found
        if isinstance(found, str):
            raise UnreadableError(
                f"{share_url}: {found}; LARM_SMB_SHARE_ACCESS can name who may use the share"
            )
        if self.known is not None:
            self.known[share_url] = found
        return found

    def _asked_list(self, share_url: str, spot: Spot) -> AccessList | str:
        place = place_of(share_url)
        assert place is not None
        try:
            return list_of_share(self._link(place.server, place.port), place.share)
        except (UnreadableError, StatusError) as error:
            return str(error)
        except SignInError as error:
            return f"{place.server}: {error}"

    # the pass over rights (access/connected.py)

    def root_of(self, name: str) -> str | None:
        place = place_of(name)
        return None if place is None else place.root

    def is_mounted(self, root: str) -> bool:
        """Whether a share is open to the account, and has entries."""
        place = place_of(root)
        if place is None:
            return False
        try:
            return self._again(lambda: self._is_there(self._spot(place)))
        except (StatusError, LostError, SignInError, *_NETWORK):
            return False

    def _is_there(self, spot: Spot) -> bool:
        """Whether the share of a place, or the folder to which a DFS link leads, has entries, or is
        closed to the account."""
        spot = spot._replace(path=spot.root)
        opening = smb.create(spot.full, smb.LIST_FOLDER, smb.IS_FOLDER)
        created, found, _ = self._ask(spot, [opening, smb.query_directory(65_536), smb.close()])
        if created.status:
            return created.status in _DENIED
        names = {entry.name for entry in smb.entries_of(found.info)} if not found.status else set()
        return bool(names - {".", ".."})

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        """Raises AwayError, UnreadableError."""
        place = place_of(folder)
        if place is None:
            raise UnreadableError("it lies on no share")

        def found() -> list[tuple[str, AccessList]]:
            spot = self._spot(place)
            return [(url, self._list_of(url, spot)) for url in spot.shares]

        return self._unless_away(place, found)

    def files(self, folder: str, names: list[str]) -> Iterator[Checked]:
        """Raises AwayError."""
        for name in names:
            place = place_of(name)
            try:
                if place is None:
                    raise UnreadableError("it lies on no share")
                rights, mark = self._unless_away(
                    place,
                    lambda: self._descriptor_of(place),  # noqa: B023
                )
                yield Checked(name, rights, "", mark)
            except UnreadableError as error:
                yield Checked(name, OPERATORS_ONLY, str(error))

    def _descriptor_of(self, place: Place) -> tuple[AccessList, str]:
        """The list of a document, and its ETag."""
        spot = self._spot(place)
        opening = smb.create(spot.full, smb.READ_RIGHTS, smb.NO_RECALL)
        created, security, _ = self._ask(spot, [opening, smb.query_security(), smb.close()])
        if created.status in _GONE and not self._is_there(spot):
            why = f"{spot.shares[-1]} is empty or not there"
            raise AwayError(why, self._below(place))
        self._check(created)
        opened = Opened.of(created)
        return _descriptor(security), mark_of(opened.mtime_ns, opened.size)

    def _below(self, place: Place) -> str:
        """The folder that is away together with a place: the DFS link above it, or its share."""
        leads = self._referral(_unc(place.server, place.share, place.path))
        depth = leads.prefix.count("\\") - 2 if leads is not None else 0
        return place._replace(names=place.names[: max(0, depth)], is_folder=True).url

    def _unless_away(self, place: Place, call: Callable[[], T]) -> T:
        """Raises AwayError, UnreadableError."""
        try:
            return self._again(call)
        except (LostError, SignInError, *_NETWORK) as error:
            why = str(error) or "the connection ended"
            raise AwayError(why, self._below(place)) from None
        except StatusError as error:
            if error.status in _NO_SHARE or error.status == LEADS_NOWHERE:
                raise AwayError("the share is not there", self._below(place)) from None
            if error.status in _DENIED and not self.is_mounted(place.root):
                raise AwayError("the share is closed to the account", self._below(place)) from None
            if error.status in _GONE or error.status == RING:
                raise UnreadableError("no file is there") from None
            raise UnreadableError(str(error)) from None
        except (struct.error, UnicodeError) as error:
            raise UnreadableError(f"a damaged answer: {error}") from None

    # servers

    def _spot(self, place: Place) -> Spot:
        """The real place, over DFS links. Raises StatusError, LostError, SignInError, and
        Unavailable or DeniedAddress for a link whose targets are away."""
        return self._follow(place.server, place.port, place.share, place.path)

    def _follow(
        self,
        server: str,
        port: int,
        share: str,
        path: str,
        shares: tuple[str, ...] = (),
        came: tuple[Referral, ...] = (),
    ) -> Spot:
        """``came``: the links that have led here."""
        unc, own = _unc(server, share, path), Place(server, port, share).root
        leads = self._referral(unc)
        if leads is None:
            link = self._link_of_target(server) if came else self._link(server, port)
            try:
                tree = link.tree(share)
            except StatusError as error:
                if error.status in _NO_SHARE and self._has_learned(link, _unc(server, share)):
                    return self._follow(server, port, share, path, shares, came)
                if came and error.status not in _EXPIRED:
                    raise errors.Unavailable(f"its DFS link leads to {own}: {error}") from None
                raise
            root = came[-1].path_in_share if came else ""
            is_target = any(one.prefix.count("\\") > 2 for one in came)
            return Spot(link, tree, share, path, (*shares, own), is_target, root)
        came = (*came, leads)
        if len(came) > MAX_REFERRALS:
            raise StatusError(LEADS_NOWHERE)
        if leads.prefix.count("\\") > 2:  # else the whole share lies elsewhere
            shares = *shares, own
        failed: Exception | None = None
        inside = unc.split("\\")[leads.prefix.count("\\") + 1 :]
        for at, target in enumerate(leads.targets):
            if any((one.prefix + "\\").startswith(target.lower() + "\\") for one in came):
                failed = failed or StatusError(RING)
                continue
            chosen = leads._replace(targets=(target, *leads.targets[:at], *leads.targets[at + 1 :]))
            _, server, share, *rest = target.split("\\")
            try:
                there = "\\".join(rest + inside)
                found = self._follow(server, 445, share, there, shares, (*came[:-1], chosen))
            except (errors.Unavailable, errors.DeniedAddress) as error:
                failed = error
                continue
            if at:  # the next documents need not wait for targets that are away
                self._remember(chosen)
            return found
        raise failed or StatusError(LEADS_NOWHERE)

    def _link_of_target(self, server: str) -> Link:
        """The session with a server to which a DFS link leads. Raises DeniedAddress, and
        Unavailable: the server of the link is well."""
        try:
            return self._link(server, 445)
        except (SignInError, errors.Unresolved, errors.Refused, errors.TimedOut,
                errors.ConnectionLost) as error:  # fmt: skip
            raise errors.Unavailable(f"its DFS link leads to {server}: {error}") from None

    def _referral(self, unc: str) -> Referral | None:
        """The longest prefix that is known to lead elsewhere."""
        key, now = unc.lower(), time.monotonic()
        fit = [
            one
            for one in self._referrals
            if one.until > now
            and (key == one.prefix or key.startswith(one.prefix + "\\"))
            and not (one.targets[0].lower() + "\\").startswith(one.prefix + "\\")
        ]
        return max(fit, key=lambda one: len(one.prefix), default=None)

    def _has_learned(self, link: Link, unc: str) -> bool:
        """Ask where a path leads, and whether it leads anywhere else."""
        try:
            self._remember(referral(link, unc))
        except StatusError:
            return False
        return self._referral(unc) is not None

    def _remember(self, found: Referral) -> None:
        with self._keeping:
            now = time.monotonic()
            known = [one for one in self._referrals if one.until > now]
            kept = [one for one in known if one.prefix != found.prefix]
            self._referrals = [*kept[-999:], found]

    def _ask(self, spot: Spot, messages: list[smb.Message]) -> list[Reply]:
        """Raises LostError, TimedOut, StatusError for a session or share that has ended, and
        _LinkError."""
        replies = spot.link.ask(spot.tree, messages, self.limits.total_secs)
        status = replies[0].status
        if status in _EXPIRED:
            spot.link.close()
        elif status == _TREE_GONE:
            spot.link.forget_tree(spot.share)
        elif status == NOT_COVERED:
            if not self._has_learned(spot.link, _unc(spot.link.server, spot.share, spot.path)):
                raise StatusError(LEADS_NOWHERE)
            raise _LinkError
        if status in _EXPIRED or status == _TREE_GONE:
            raise StatusError(status)
        return replies

    @staticmethod
    def _check(reply: Reply) -> None:
        if reply.status:
            raise StatusError(reply.status)

    def _link(self, server: str, port: int) -> Link:
        """The one session with a server. Raises SignInError and errors of fetch/errors.py."""
        origin = f"smb://{f'[{server}]' if ':' in server else server}:{port}"
        site = self.sites.for_url(origin)
        credentials = None if site is None else site.options.credentials
        account = Account()
        if credentials is not None:
            user, password = credentials.user, credentials.password
            account = Account(
                credentials.method,
                user.reveal() if user is not None else "",
                password.reveal() if password is not None else "",
            )
        return LINKS.link(server, port, account, self.limits.connect_secs, self._deny)


class Links:
    """The sessions of this process: one for each server and account."""

    def __init__(self) -> None:
        self._links: dict[tuple[str, int, Account], Link] = {}
        self._refused: dict[tuple[str, int, Account], tuple[float, str]] = {}
        self._failed: dict[tuple[str, int, Account], tuple[float, Exception]] = {}
        self._locks: dict[tuple[str, int, Account], threading.Lock] = {}

    def link(
        self, server: str, port: int, account: Account, secs: float, deny: DenyAddresses
    ) -> Link:
        """Raises SignInError and errors of fetch/errors.py."""
        key, asked = (server, port, account), time.monotonic()
        with self._locks.setdefault(key, threading.Lock()):
            found = self._links.get(key)
            if found is not None and not found.is_lost:
                return found
            if found is not None:
                found.close()
                del self._links[key]
            until, why = self._refused.get(key, (0.0, ""))
            if time.monotonic() < until:
                raise SignInError(why)
            refuse_denied(deny, server, port)
            when, failed = self._failed.get(key, (-inf, None))
            if failed is not None and when >= asked:  # while this thread has waited for the lock
                raise type(failed)(str(failed))
            try:
                check = partial(refuse_denied_peer, deny)
                link = self._links[key] = Link(server, port, account, secs, check)
            except _NETWORK as error:
                self._failed[key] = time.monotonic(), error
                raise
            except SignInError as error:
                by_ticket = "with a Kerberos ticket" if account.method else "as guest"
                who = f"as {account.user}" if account.user else by_ticket
                why = redacted(f"signing in {who} was refused: {error}")
                self._refused[key] = time.monotonic() + REFUSED_SECS, why
                raise SignInError(why) from None
            return link

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._refused.clear()
        self._failed.clear()


LINKS = Links()
_NETWORK = (errors.Unresolved, errors.Refused, errors.TimedOut, errors.ConnectionLost,
            errors.Unavailable, errors.DeniedAddress)  # fmt: skip


def _away(place: Place, spot: Spot | None, why: str) -> Exception:
    """The error for a share that is away, or for the target of a DFS link: the share of the link is
    well."""
    if spot is not None and spot.is_target:
        return errors.Unavailable(
            f"its DFS link leads to {printable(spot.shares[-1])}, which {why}"
        )
    return errors.Unmounted(f"{printable(place.root)} {why}")


def _share_key(url: str) -> tuple[str, int, str]:
    """The share of a URL, whatever the case of its letters."""
    place = place_of(url)
    assert place is not None
    return place.server.lower(), place.port, place.share.lower()


def _unc(*names: str) -> str:
    return "\\" + "\\".join(filter(None, names))


def place_of(url: str) -> Place | None:
    """None for a URL without a share, or with a name that no share has."""
    parts = urlsplit(url.partition("?")[0])
    try:
        server, port = parts.hostname, parts.port or 445
        names = [unquote(name, errors="strict") for name in parts.path.split("/") if name]
    except ValueError:
        return None
    unfit = any(_UNFIT.search(name) or name in (".", "..") for name in names)
    if parts.scheme != "smb" or not server or not names or unfit:
        return None
    if names[0].lower() == "ipc$":  # pipes, no documents
        return None
    return Place(server, port, names[0], tuple(names[1:]), parts.path.endswith("/"))


def _of_readers(entries: Iterator[Entry], changed: int) -> _Listing:
    """The entries that are for readers, by name, each once."""
    found, left_out = dict[str, Entry](), Counter[str]()
    for number, entry in enumerate(entries):
        if number >= 2 * LARGEST:  # a server may repeat its entries for ever
            left_out["too-many"] += 1
            break
        if entry.name in (".", ".."):
            continue
        if why := _why_left_out(entry):
            left_out[why] += 1
        elif len(found) >= LARGEST:
            left_out["too-many"] += 1
        elif (key := _order(entry.name)) in found:
            # one of both, the same one at each visit
            found[key] = min(found[key], entry, key=lambda one: one.name)
            left_out["same-name"] += 1
        else:
            found[key] = entry
    return _Listing(time.monotonic(), changed, [found[key] for key in sorted(found)], left_out)


def _why_left_out(entry: Entry) -> str:
    """A word of the stat larm/left_out; "" for none."""
    if entry.attributes & (HIDDEN | SYSTEM):
        return "hidden"
    if entry.attributes & REPARSE and entry.tag & _NAME_SURROGATE:
        return "link"
    if entry.attributes & _IN_AN_ARCHIVE and not entry.attributes & FOLDER:
        return "offline"
    if _UNFIT.search(entry.name) or (not entry.name.isprintable() and _has_surrogate(entry.name)):
        return "unfit-name"
    return ""


def _has_surrogate(name: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in name)


def _order(name: str) -> str:
    """Names that differ in case alone are one."""
    return name.lower()


def _escaped(name: str) -> str:
    return quote(name, safe="!$&'()+,;=@~")


def _descriptor(security: Reply) -> AccessList:
    """Raises UnreadableError."""
    if security.status:
        raise UnreadableError("the crawl's account may not read its access list")
    return _of_bytes(security.info)


_of_bytes = lru_cache(4_096)(of_bytes)  # many files have the list of their folder
