"""The records of URLs in a backend, their packed forms and their keys.

    url_key("http://wiki/a")          # 16 bytes: 4 from wiki:80, 12 from the whole URL
    ready_key("wiki:80", 3, 17)       # a place in the host's queue: sorts by priority, then serial

A queued URL is two records: 22 bytes in ``urls`` (its state and its place in the queue) and its
entry in ``queue``, for example 165 bytes for a URL of 60 characters found on a page of 60. When the
URL is fetched the entry is deleted, and a FetchRecord replaces the record in ``urls``. Both are
msgpack arrays of a Struct's fields (msgspec): packing and unpacking take 1 us each and run no code
of the data, as pickle would.
"""

from __future__ import annotations

import struct
from calendar import timegm
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from time import gmtime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from larmspider.formatting import counted
from larmspider.urls.file_urls import FILES, SCHEME
from larmspider.urls.schemes import PORTS

READY = 0
"""The run of a host's queue for URLs that may be fetched now, by priority, then age."""
DELAYED = 1
"""The run of a host's queue for URLs that wait for their earliest time."""

COMPACTED = b"compacted"
"""In ``meta`` of a worker's frontier: the last commit in Redis that it knew of, a line break, and
the positions that replace the positions of that commit."""
MAX_PRIORITY = 0xFFFF
_HELD_BIT = 1 << 47
"""In a DELAYED key, with the group in place of the time."""


def host_of(url: str) -> str:
    """``wiki:80`` for ``http://me@Wiki/a``: host and port of an absolute URL, lower case; FILES for
    all files."""
    scheme, _, rest = url.partition("//")
    netloc = rest
    for end in "/?#":
        netloc = netloc.partition(end)[0]
    if "@" in netloc:
        netloc = netloc.rpartition("@")[2]
    netloc = netloc.lower()
    if ":" in netloc and not netloc.endswith("]"):
        return netloc if netloc[-1] != ":" else netloc[:-1] + PORTS.get(scheme.lower(), "")
    return netloc + PORTS.get(scheme.lower(), "") if netloc or scheme != SCHEME else FILES


@lru_cache(maxsize=16_384)
def host_prefix(host: str) -> bytes:
    """8 bytes for a host; two of 5,000 hosts share one with odds of 7e-13."""
    return blake2b(host.encode(), digest_size=8).digest()


@lru_cache(maxsize=4_096)
def _origin_prefix(origin: str) -> bytes:
    return host_prefix(host_of(origin))[:4]


@lru_cache(maxsize=1_024)
def url_key(normalized: str) -> bytes:
    """16 bytes for a URL in exact form. 1.2 us; unlike hash() the same in every process. The
    cache serves the three calls for a new URL."""
    slash = normalized.find("/", 8)
    origin = normalized if slash < 0 else normalized[:slash]
    data = normalized.encode("utf-8", "surrogatepass")
    return _origin_prefix(origin) + blake2b(data, digest_size=12).digest()


def ready_key(host: str, priority: int, serial: int) -> bytes:
    """A queue place by priority (0..65535, 0 first), then serial number (48 bits)."""
    return b"%b\x00%b%b" % (
        host_prefix(host),
        min(MAX_PRIORITY, max(0, priority)).to_bytes(2, "big"),
        serial.to_bytes(6, "big"),
    )


def delayed_key(host: str, earliest: float, serial: int) -> bytes:
    """A queue place by earliest time (whole milliseconds, rounded up), then serial number."""
    millis = -int(-earliest * 1000 // 1)
    return b"%b\x01%b%b" % (host_prefix(host), millis.to_bytes(6, "big"), serial.to_bytes(6, "big"))


def delayed_prefix(host: str) -> bytes:
    """The prefix of all delayed_key() of a host."""
    return host_prefix(host) + b"\x01"


HELD_FROM = _HELD_BIT / 1000
"""The time in a place of the first held URL, in seconds: held URLs wait for the year 6429."""


def held_prefix(host: str, group: int) -> bytes:
    """The prefix of all held_key() of a host and group."""
    return host_prefix(host) + b"\x01" + (_HELD_BIT | group).to_bytes(6, "big")


def held_key(host: str, group: int, serial: int) -> bytes:
    """A queue place after all delayed_key() of its host, by group (0 to 2**47 - 1)."""
    return held_prefix(host, group) + serial.to_bytes(6, "big")


def is_held(queue_key: bytes) -> bool:
    """Whether it is a held_key()."""
    return queue_key[8] == DELAYED and queue_key[9] >= 0x80


def waits_as(queue_key: bytes) -> dict[str, int]:
    """The fields of Counts, beside ``queued``, that count a queued URL at this place."""
    if queue_key[8] == READY:
        return {}
    return {"held": 1} if is_held(queue_key) else {"delayed": 1}


def run_of(queue_key: bytes) -> int:
    """READY or DELAYED; held URLs are DELAYED."""
    return queue_key[8]


def earliest_of(queue_key: bytes) -> float:
    """The earliest time in a DELAYED key, in seconds."""
    return int.from_bytes(queue_key[9:15], "big") / 1000


def revisit_key(host: str, due: float, key: bytes) -> bytes:
    """30 bytes: a place in the revisits of a host, by the time (whole milliseconds, rounded up),
    then the key of the URL."""
    return host_prefix(host) + (-int(-due * 1000 // 1)).to_bytes(6, "big") + key


def due_of(revisit: bytes) -> float:
    """The time in a revisit_key(), in seconds."""
    return int.from_bytes(revisit[8:14], "big") / 1000


def serial_of(queue_key: bytes) -> int:
    """The serial number in either kind of queue key."""
    return int.from_bytes(queue_key[-6:], "big")


class UrlState(IntEnum):
    """See backend.py. The numbers are on disk."""

    UNKNOWN = 0
    QUEUED = 1
    LEASED = 2
    STORED = 3
    FAILED = 4
    REFUSED = 5
    MERGED = 6


class _KeptUrl(msgspec.Struct, array_like=True, eq=False):
    """The stored fields of a QueuedUrl; its key precedes them. New fields go to the end, with a
    default."""

    url: str
    normalized: str
    key: bytes
    host: str
    depth: int = 0
    link_type: int = 0
    redirects: int = 0
    priority: int = 0
    from_page: str = ""
    payload: bytes = b""
    attempts: int = 0


class QueuedUrl(_KeptUrl, eq=False):
    """A URL that is to be fetched.

    ``url`` is as found and as it will be fetched, ``normalized`` its canonical form, ``key`` the
    url_key() of its exact form. ``exact`` is the exact form or "". ``guess`` is the url_key() of
    ``normalized`` if that differs from ``key``; neither is stored. ``host`` names its queue.
    ``redirects``: the number in a row. ``link_type`` is as in items.py. ``priority`` is 0..65535, 0
    first. ``payload`` is bytes of the caller, for example a packed Request.
    ``attempts`` counts the fetches that failed. ``visit`` is the record of the last visit, None
    for a new URL. ``again``: a refused URL is queued again. ``doubted``: a stored page is stored
    again at its next visit. ``met``: the groups of the URL (learned/traps/host_traps.py). None of
    these fields is stored, or compared.
    """

    exact: str = ""
    guess: bytes = b""
    visit: FetchRecord | None = None
    again: bool = False
    doubted: bool = False
    met: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueuedUrl) and _kept_of(self) == _kept_of(other)


_kept_of = attrgetter(*_KeptUrl.__struct_fields__)


if TYPE_CHECKING:
    _Date: TypeAlias = str
else:
    _Date = str | int  # as packed


class _FirstVisit(msgspec.Struct, array_like=True, eq=False):
    """The stored fields of a page after its first visit: the record ends here."""

    state: UrlState
    time: float = 0.0
    status: int = 0
    etag: str = ""
    last_modified: _Date = ""
    digest: bytes = b""
    reason: str = ""
    url: str = ""
    depth: int = 0
    from_page: str = ""
    link_type: int = 0
    signature: bytes = b""
    link_signature: bytes = b""
    due: float = 0.0
    stored: float = 0.0
    shard: str = ""
    inlinks: int = 1
    shared: int = 0


class _Visits(_FirstVisit, eq=False):
    """The stored fields of a page that was visited again, or not found. New fields go to the end,
    with a default."""

    rates: bytes = b""
    missing_since: float = 0.0
    confirmations: int = 0
    missing_as: str = ""


class FetchRecord(_Visits, eq=False):
    """The outcome of a URL's last fetch, and what its next visit needs to know.

    ``state`` is STORED, FAILED or REFUSED. ``time`` is the end of the last fetch, 0.0 for none;
    ``status`` is 0 when there was no response; ``digest`` is of the content, at most 64 bytes.
    ``inlinks``: the links to the URL that were counted.

    For revisits: ``signature`` of the text and ``link_signature`` of the links, 8 bytes or none
    (fingerprint.py). ``a`` and ``b`` are estimates of its changes (refresh.py), 0.0
    without an estimate. ``due``: time of the next visit, 0.0 for never. ``missing_since``: the page
    has been missing since then, at ``confirmations`` visits in a row, the last as ``missing_as``.

    If workers share a crawl: ``stored`` is the ``time`` of the version that counts. ``shard`` is
    the worker whose directory has this version and its line in fetch.log, "" for this worker.

    As packed, ``last_modified`` is in seconds if it is a date; ``stored`` is _AS_TIME if it equals
    ``time``; ``from_page`` lacks its first ``shared`` characters, which are equal to ``url``'s;
    ``rates`` are ``a`` and ``b`` in 4 bytes each.
    """

    a: float = 0.0
    b: float = 0.0

    def __eq__(self, other: object) -> bool:
        """Compares all fields except ``inlinks``, ``stored``, ``shard`` and fields as packed."""
        return isinstance(other, FetchRecord) and _compared(self) == _compared(other)

    @property
    def has_page(self) -> bool:
        """Whether a store has the page: it was stored, or is an error status of the server."""
        return self.state is UrlState.STORED or (self.state is UrlState.FAILED and self.status > 0)

    @property
    def stands(self) -> bool:
        """Whether others may be merged into the URL (merging.py): only two 200s count, and no page
        that a revisit has found missing, though it is kept for now."""
        return self.state is UrlState.STORED and self.status == 200 and not self.missing_as


_compared = attrgetter(
    *(
        name
        for name in FetchRecord.__struct_fields__
        if name not in ("stored", "shard", "inlinks", "shared", "rates")
    )
)


@dataclass(slots=True)
class MergedUrl:
    """A URL that another URL stands for. ``entry``: the entry that would have been queued.
    ``rules``: the rules that make both URLs equal (a mask of urls/equivalence.py). ``into``: the
    other URL's key."""

    entry: QueuedUrl
    rules: int
    into: bytes


@dataclass(slots=True)
class Counts:
    """Numbers of URLs by state. ``delayed`` (with an earliest time) and ``held`` (not handed out)
    are among ``queued``."""

    discovered: int = 0
    queued: int = 0
    leased: int = 0
    stored: int = 0
    failed: int = 0
    refused: int = 0
    delayed: int = 0
    merged: int = 0
    held: int = 0

    @property
    def to_fetch(self) -> int:
        """The queued URLs that are not held."""
        return self.queued - self.held

    def after_run(self) -> Counts:
        """The counters while no process runs the crawl: a killed one leaves leased URLs, and the
        next run queues them again."""
        return replace(self, queued=self.queued + self.leased, leased=0)

    def balanced(self) -> bool:
        """discovered = queued + leased + stored + failed + refused + merged."""
        done = self.stored + self.failed + self.refused + self.merged
        return self.discovered == self.queued + self.leased + done

    def __str__(self) -> str:
        """For a crawl that has ended: nothing is leased."""
        return (
            f"{counted(self.discovered, 'URL')} discovered, {self.stored} stored,"
            f" {self.refused} refused, {self.failed} failed,"
            f"{f' {self.merged} merged,' if self.merged else ''}"
            f"{f' {self.held} held,' if self.held else ''} {self.to_fetch} to fetch"
        )


@dataclass(slots=True)
class Recovery:
    """The result of Backend.recover(): the stores' positions, and the number of requeued leases."""

    positions: Mapping[str, bytes] = field(default_factory=dict)
    requeued: int = 0
    fresh: bool = True


BODY_DIGEST = 20
"""Bytes of FetchRecord.digest that are the body's; a fingerprint (extraction/texts/fingerprint.py)
follows."""
NO_DIGEST = bytes(BODY_DIGEST)
"""The digest if the stored body may differ from the last fetched one."""

_HEAD = struct.Struct(">BI")
_COUNTS = struct.Struct(">9Q")
_MERGED = struct.Struct(">BIB16s")
_RATES = struct.Struct(">ff")
_AS_TIME = -1
_FIELDS = attrgetter(*Counts.__slots__)
_LENGTH = struct.Struct(">I")
_encode = msgspec.msgpack.Encoder().encode
_STATES = tuple(bytes((state,)) for state in UrlState)
_decode_url = msgspec.msgpack.Decoder(QueuedUrl).decode
_decode_visit = msgspec.msgpack.Decoder(FetchRecord).decode
T = TypeVar("T", bound=msgspec.Struct)


def packed(record: msgspec.Struct) -> bytes:
    """A Struct with ``array_like`` as msgpack. msgspec refuses texts with lone surrogates and
    subclasses of str: where a record has one, its texts are packed as bytes."""
    try:
        return _encode(record)
    except (UnicodeEncodeError, TypeError):
        values = msgspec.structs.astuple(record)
        return _encode([_bytes_of(one) if isinstance(one, str) else one for one in values])


def unpacked(kind: type[T], decode: Callable[[bytes], T], data: bytes) -> T:
    """The reverse. Fields that ``data`` does not have yet get their defaults."""
    try:
        return decode(data)
    except msgspec.ValidationError:
        types = [field.type for field in msgspec.structs.fields(kind)]
        values = [
            _text_of(one) if isinstance(one, bytes) and wanted is not bytes else one
            for one, wanted in zip(msgspec.msgpack.decode(data), types, strict=False)
        ]
        return msgspec.convert(values, kind)


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def pack_waiting(state: UrlState, inlinks: int, queue_key: bytes) -> bytes:
    """The record in ``urls`` of a queued or leased URL."""
    return _HEAD.pack(state, inlinks) + queue_key


def unpack_waiting(data: bytes) -> tuple[UrlState, int, bytes]:
    """State, number of links to the URL, queue key."""
    state, inlinks = _HEAD.unpack_from(data)
    return UrlState(state), inlinks, data[_HEAD.size :]


def inlinks_of(data: bytes) -> int:
    """The number of links to a URL, from any record in ``urls``."""
    return unpack_visit(data).inlinks if is_final(data) else int.from_bytes(data[1:5], "big")


def pack_entry(entry: QueuedUrl) -> bytes:
    """The entry in ``queue``, which begins with the key of its URL; it has the priority too, which
    the key of a delayed entry lacks."""
    url, normalized = entry.url, entry.normalized
    kept = _KeptUrl(
        url, "" if normalized == url else normalized, b"", entry.host, entry.depth,
        entry.link_type, entry.redirects, entry.priority, entry.from_page, entry.payload,
        entry.attempts,
    )  # fmt: skip
    return entry.key + packed(kept)


def unpack_entry(data: bytes) -> QueuedUrl:
    entry = unpacked(QueuedUrl, _decode_url, data[16:])
    entry.key = data[:16]
    if not entry.normalized:
        entry.normalized = entry.url
    return entry


def pack_visit(visit: FetchRecord, inlinks: int, entry: QueuedUrl | None = None) -> bytes:
    """The record of a URL in a final state, on disk and in Redis: its state, then the FetchRecord.
    URL, depth and where it was found are its entry's, if there is one."""
    of = entry or visit
    url, page, time, stored = of.url, of.from_page, visit.time, visit.stored
    if stored:
        stored = _AS_TIME if stored == time else stored
    shared = url.rfind("/") + 1  # most pages are found in their own folder, or host
    if not page.startswith(url[:shared]):
        shared = url.find("/", 8) + 1
        if not page.startswith(url[:shared]):
            shared = 0
    first = (
        visit.state, time or 0, visit.status, visit.etag, _seconds_of(visit.last_modified),
        visit.digest, visit.reason, url, of.depth, page[shared:], of.link_type, visit.signature,
        visit.link_signature, visit.due or 0, stored or 0, visit.shard, inlinks, shared,
    )  # fmt: skip
    a, b, since, as_what = visit.a, visit.b, visit.missing_since, visit.missing_as
    if a or b or since or as_what or visit.confirmations:
        rates = _RATES.pack(a, b) if a or b else b""
        visits = _Visits(*first, rates, since or 0, visit.confirmations, as_what)
        return _STATES[visit.state] + packed(visits)
    return _STATES[visit.state] + packed(_FirstVisit(*first))


def unpack_visit(data: bytes) -> FetchRecord:
    visit = unpacked(FetchRecord, _decode_visit, data[1:])
    if visit.shared:
        visit.from_page = visit.url[: visit.shared] + visit.from_page
        visit.shared = 0
    date: object = visit.last_modified
    if isinstance(date, int):
        visit.last_modified = _date_of(date)
    if visit.rates:
        visit.a, visit.b = _RATES.unpack(visit.rates)
        visit.rates = b""
    if visit.stored == _AS_TIME:
        visit.stored = visit.time
    return visit


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@lru_cache(maxsize=4_096)  # files that were installed together have one date: 3 us
def _seconds_of(date: str) -> Any:
    """The seconds since the epoch of a date in the form of RFC 9110 5.6.7; any other text stays
    unchanged."""
    try:
        at = int(date[12:16]), _MONTHS.index(date[8:11]) + 1, int(date[5:7])
        seconds = timegm((*at, int(date[17:19]), int(date[20:22]), int(date[23:25])))
        return seconds if _date_of(seconds) == date else date
    except (ValueError, OverflowError):
        return date


@lru_cache(maxsize=4_096)
def _date_of(seconds: int) -> str:
    year, month, day, hour, minute, second, weekday = gmtime(seconds)[:7]
    return (
        f"{_DAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year:04}"
        f" {hour:02}:{minute:02}:{second:02} GMT"
    )


FORGOTTEN = b"\0"
"""In a batch, in place of a record in ``urls``: the URL becomes unknown."""


def is_final(record: bytes) -> bool:
    """Whether a record in ``urls`` is a FetchRecord."""
    return UrlState.STORED <= record[0] <= UrlState.REFUSED


def is_elsewhere(record: bytes) -> bool:
    """Whether a FetchRecord is for a page in another worker's directory."""
    return bool(unpack_visit(record).shard)


def is_waiting(record: bytes) -> bool:
    """Whether a record in ``urls`` belongs to a queued or leased URL."""
    return UrlState.QUEUED <= record[0] <= UrlState.LEASED


def pack_merged(merged: MergedUrl, inlinks: int) -> bytes:
    """The record in ``urls`` of a merged URL."""
    head = _MERGED.pack(UrlState.MERGED, inlinks, merged.rules, merged.into)
    return head + pack_entry(merged.entry)


def is_counted(record: bytes) -> bool:
    """Whether a merged URL counts: one that was only fetched for a comparison does not."""
    return record[5] != 0


def unpack_merged(data: bytes) -> MergedUrl:
    _, _, rules, into = _MERGED.unpack_from(data)
    return MergedUrl(unpack_entry(data[_MERGED.size :]), rules, into)


HOST_NOTES = tuple(
    b"n%b " % name
    for name in (
        b"robots", b"aliases", b"sources", b"deletes", b"refresh", b"brake", b"traps", b"novelty",
        b"values", b"named", b"views", b"shortfall", b"scripts",
    )
)  # fmt: skip
"""The prefixes of the keys of a host's notes; its name follows. They move with its partition."""

GUESS = b"g"
"""A known URL by its canonical form: 4 bytes of the host, 8 of the form, 12 of the URL's key."""
OF_HOST = b"m"
"""A merged URL by its host: 8 bytes of the host, the URL's key."""
INTO = b"i"
"""A merged URL by the one that stands for it: the keys of both."""


def guess_prefix(guess: bytes) -> bytes:
    """The prefix of the rows of all URLs with one canonical form; ``guess`` is its url_key()."""
    return GUESS + guess[:12]


def guess_row(guess: bytes, key: bytes) -> bytes:
    """25 bytes: a row of ``aliases``, without a value."""
    return GUESS + guess[:12] + key[4:]


def guess_rows(joined: bytes) -> list[bytes]:
    """Several guess_row(), joined."""
    return [joined[at : at + 25] for at in range(0, len(joined), 25)]


def merged_rows(host: str, key: bytes, into: bytes) -> tuple[bytes, bytes]:
    """The two rows of ``aliases`` by which a merged URL is found."""
    return OF_HOST + host_prefix(host) + key, INTO + into + key


def pack_counts(counts: Counts) -> bytes:
    """72 bytes."""
    return _COUNTS.pack(*_FIELDS(counts))


def unpack_counts(data: bytes) -> Counts:
    return Counts(*_COUNTS.unpack(data))


def pack_positions(positions: Mapping[str, bytes]) -> bytes:
    """Names and positions of the stores, each after its length."""
    parts = (part for name in sorted(positions) for part in (_bytes_of(name), positions[name]))
    return b"".join([_LENGTH.pack(len(part)) + part for part in parts])


def unpack_positions(data: bytes) -> dict[str, bytes]:
    parts, at = [], 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        parts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return {_text_of(name): value for name, value in zip(parts[::2], parts[1::2], strict=True)}
