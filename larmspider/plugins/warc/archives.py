"""Pages that other programs fetched: WARC files, caches of HTTrack, folders of wget.

    archive = Archive([Path("2026.warc.gz"), Path("mirror/")])
    archive.find("http://wiki/a")            # Capture(time=..., source=..., place=81_264)
    capture.source.read(capture, Room())     # Answer(200, [...], b"<p>...")

A WARC is read once for the places of its records, then record by record on demand. The latest of
several captures of a URL counts. A damaged file is read up to the damage; ``damages`` has a line
about it. An archive is foreign content: each field of a record is checked (archive_fields.py), and
only a folder's own plain files are opened (plain_files.py). ``refused`` lists what was not taken,
and why.
"""

from __future__ import annotations

import os
import re
import struct
import time
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import quote, urlsplit

from scrapy import Request

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.fetch import errors
from larmspider.fetch.blobs import Blob, Room
from larmspider.fetch.plain_files import (
    Found,
    NotPlainError,
    PlainFolder,
    in_words,
    plain_file,
)
from larmspider.formatting import counted, printable
from larmspider.plugins.warc.archive_fields import (
    CODING,
    MAX_HEAD,
    RefusedError,
    check_url,
    date_of,
    decoded,
    digest_of,
    parse_head,
    plain_headers,
    record_fault,
    status_of,
)
from larmspider.urls.media_types import PAGE_TYPES, type_by_name
from larmspider.urls.syntax import without_userinfo

_HOST = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]+)?")
_PIECE, _MEMBER_PIECE = 1 << 16, 1 << 14


@dataclass(frozen=True, slots=True)
class Answer:
    """``body`` is decoded, and ``headers`` have no coding. A body that is too large for memory is
    the ``blob``."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    blob: Blob | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """A page in a source; ``time`` in seconds since the epoch."""

    url: str
    time: float
    source: Source
    place: Any


@dataclass(frozen=True, slots=True)
class Refused:
    """A record or file that is not taken: its place, printable, and why."""

    place: str
    why: str


@dataclass
class Refusals:
    """The refusals of one source, by their reasons: the number and the first places."""

    counts: dict[str, int] = field(default_factory=dict)
    _places: dict[str, list[str]] = field(default_factory=dict)

    def add(self, refused: Refused) -> None:
        self.counts[refused.why] = self.counts.get(refused.why, 0) + 1
        places = self._places.setdefault(refused.why, [])
        if len(places) < _PLACES:
            places.append(printable(refused.place)[:_PLACE_CHARS])

    def lines(self) -> list[str]:
        """One for each reason."""
        return [
            f"{counted(number, 'entry', 'entries')} refused: {why} ({', '.join(self._places[why])}"
            f"{', ...' * (number > _PLACES)})"
            for why, number in self.counts.items()
        ]


class Source(Protocol):
    """One file or folder."""

    def captures(self) -> Iterator[Capture | Refused]:
        """The captures of http and https. Raises DamagedError after the last readable one."""

    def read(self, capture: Capture, room: Room) -> Answer:
        """Raises TooBig for a body that finds no ``room``, BadResponse, CrawlDirError."""


class DamagedError(Exception):
    """A source that cannot be read to its end: the fault, and its place."""


class Archive:
    """All pages of all ``paths``. Raises ConfigError for a path that is not an archive."""

    def __init__(self, paths: Sequence[Path], scheme: str = "http") -> None:
        self.damages: list[str] = []
        self.refused: list[str] = []
        """A line for each reason for which something was refused."""
        self.refused_entries = 0
        self._captures: dict[str, Capture] = {}
        for path in paths:
            try:
                self._add(path, scheme)
            except OSError as error:
                raise ConfigError(f"{path}: {error.strerror or error}") from None

    def _add(self, path: Path, scheme: str) -> None:
        found, refusals = 0, Refusals()
        try:
            for capture in _source_of(path, scheme).captures():
                if isinstance(capture, Refused):
                    refusals.add(capture)
                    continue
                try:
                    key = Request(check_url(capture.url)).url
                except (RefusedError, ValueError) as error:
                    refusals.add(Refused(without_userinfo(capture.url), str(error)))
                    continue
                if urlsplit(key).path == "/robots.txt":
                    continue  # some crawlers keep it
                found += 1
                known = self._captures.get(key)
                if known is None or known.time <= capture.time:
                    self._captures[key] = capture
        except DamagedError as error:
            self.damages.append(f"{path}: {error}; {counted(found, 'page')} before that")
        refused = [f"{path}: {line}" for line in refusals.lines()]
        self.refused += refused
        self.refused_entries += sum(refusals.counts.values())
        if not found:
            why = [*refused, *self.damages[-1:]] or [f"{path} has no page of http or https"]
            raise ConfigError(why[-1])

    def urls(self) -> Iterator[str]:
        """The URLs in the form in which Scrapy writes them."""
        yield from self._captures

    def find(self, url: str) -> Capture | None:
        return self._captures.get(url)


def _source_of(path: Path, scheme: str) -> Source:
    if path.is_dir():
        return _folder_source(path, scheme)
    if not path.exists():
        raise ConfigError(f"{path}: there is no such file or folder")
    try:
        with plain_file(path) as file:
            begins = file.read(4)
    except NotPlainError as error:
        raise ConfigError(f"{path}: {error}: {_EXPECTED}") from None
    if begins[:2] == b"\x1f\x8b" or begins == b"WARC":
        return WarcFile(path)
    raise ConfigError(f"{path}: {_EXPECTED}")


def _folder_source(path: Path, scheme: str) -> Source:
    folder = PlainFolder(path)
    try:
        why = folder.kind(_CACHE)
    except (OSError, NotPlainError):
        return MirrorFolder(folder, scheme)
    if why:
        raise ConfigError(f"{path}: {os.fsdecode(_CACHE)}: {why}; expected a plain file")
    return HTTrackCache(folder)


_CACHE = b"hts-cache/new.zip"
_PLACES, _PLACE_CHARS = 3, 200
_EXPECTED = (
    "expected a WARC file (.warc, .warc.gz), the folder of an HTTrack mirror, with"
    " hts-cache/new.zip, or one of a wget mirror, with a folder for each host"
)


class WarcFile:
    """Records of type response, revisit and resource, read by warcio."""

    def __init__(self, path: Path) -> None:
        try:
            from warcio.archiveiterator import ArchiveIterator
        except ImportError:
            raise ConfigError(
                f"{path}: WARC files are read by warcio: pip install 'larmspider[warc]'"
            ) from None
        self.path, self._records = path, ArchiveIterator
        self._originals: dict[str, int] = {}
        """Where the records with a payload are, for revisits of it."""

    def captures(self) -> Iterator[Capture | Refused]:
        at = 0
        try:
            with self._opened() as file, self._opened() as raw:
                records = self._records(file, no_record_parse=True)
                while True:
                    if fault := _fault_at(raw, records.offset):
                        raise DamagedError(f"the record at byte {records.offset:,} {fault}")
                    record = next(records, None)
                    if record is None:
                        break
                    at = records.get_record_offset()
                    head = record.rec_headers.get_header
                    found = self._capture(record.rec_type, head, at)
                    while record.raw_stream.read(_PIECE):
                        pass
                    if record.raw_stream.limit:
                        raise DamagedError(f"the record at byte {at:,} is cut short")
                    if found is not None:
                        yield found
        except (DamagedError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - warcio raises what its input makes it raise
            if "non-chunked" in str(error):
                raise DamagedError(
                    "it is compressed as a whole: expected a gzip member for each record, as"
                    " `warcio recompress` writes them"
                ) from None
            raise DamagedError(f"it is damaged after the record at byte {at:,}") from None
        if records.offset < self.path.stat().st_size:  # warcio ends there without a word
            raise DamagedError(f"it is damaged after the record at byte {at:,}")

    def _opened(self) -> IO[bytes]:
        try:
            return plain_file(self.path)
        except NotPlainError as error:
            raise OSError(0, str(error)) from None

    def _capture(self, kind: str, head: Any, at: int) -> Capture | Refused | None:
        url = (head("WARC-Target-URI") or "").strip("<>")
        if kind not in ("response", "revisit", "resource") or not _is_web(url):
            return None
        try:
            when = date_of(head("WARC-Date") or "")
        except RefusedError as error:
            return Refused(f"the record at byte {at:,}", str(error))
        digest = digest_of(head("WARC-Payload-Digest"))
        if kind == "response" and digest:
            self._originals[digest] = at
        return Capture(url, when, self, at)

    def read(self, capture: Capture, room: Room) -> Answer:
        try:
            return self._read(capture.place, room)
        except (errors.TooBig, CrawlDirError):
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise errors.BadResponse(
                f"{self.path}: the record at byte {capture.place:,}: {_line(error)}"
            ) from None

    def _read(self, at: int, room: Room, *, may_refer: bool = True) -> Answer:
        with self._opened() as file:
            if fault := _fault_at(file, at, whole=False):
                raise errors.BadResponse(f"it {fault}")
            file.seek(at)
            record = next(iter(self._records(file, no_record_parse=True)), None)
            if record is None:
                raise errors.BadResponse("it is gone")
            head = record.rec_headers.get_header
            if record.rec_type == "revisit":
                original = self._originals.get(digest_of(head("WARC-Payload-Digest")) or "")
                if original is None or not may_refer:
                    raise errors.BadResponse("the original of a revisit is not here")
                answer = self._read(original, room, may_refer=False)
                if not record.length:
                    return answer
                status, headers = parse_head(record.raw_stream)
                return replace(answer, status=status, headers=_plain(headers))
            if record.rec_type == "resource":
                kind = plain_headers([("Content-Type", head("Content-Type") or "")])
                body, blob = room.take(_pieces(record.raw_stream))
                return Answer(200, kind, body, blob)
            status, headers = parse_head(record.raw_stream)
            most = room.memory_bytes if room.folder is None else room.blob_bytes
            body, blob = room.take(decoded(record.raw_stream, headers, most))
            return Answer(status, _plain(headers), body, blob)


def _fault_at(file: IO[bytes], at: int, *, whole: bool = True) -> str:
    """A clause about the fault of the record there; "" for a good record, a record that is cut
    short, and other bytes. warcio passes over a wrong checksum, and may lose all records behind it.
    ``whole``: the gzip member is unpacked to its end."""
    file.seek(max(0, at))
    unpacked, piece = zlib.decompressobj(31), file.read(_MEMBER_PIECE)
    if not piece.startswith(b"\x1f\x8b"):
        while len(piece) < MAX_HEAD and (more := file.read(_MEMBER_PIECE)):
            piece += more
            if _HEAD_END.search(piece):
                break
        return record_fault(piece)
    begin = b""
    try:
        while piece and not unpacked.eof:
            found = unpacked.decompress(piece)
            begin += found[: MAX_HEAD - len(begin)]
            if not whole and (len(begin) >= MAX_HEAD or _HEAD_END.search(begin)):
                break
            piece = file.read(_MEMBER_PIECE)
    except zlib.error:
        return "is damaged"
    return record_fault(begin)


_HEAD_END = re.compile(rb"\r?\n\r?\n")


class HTTrackCache:
    """hts-cache/new.zip: an entry a URL, whose extra field has the head of the response. A body
    that is not there lies in the mirror."""

    def __init__(self, folder: PlainFolder) -> None:
        self.path, self._folder = folder.path, folder
        self._file: IO[bytes] | None = None

    def captures(self) -> Iterator[Capture | Refused]:
        try:
            self._file = self._folder.open(_CACHE)
            weakref.finalize(self, self._file.close)
            now = _past(os.fstat(self._file.fileno()).st_mtime)
            self._zip = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise DamagedError(f"hts-cache/new.zip: {_line(error)}") from None
        except NotPlainError as error:
            raise DamagedError(f"hts-cache/new.zip: {error}") from None
        for entry in self._zip.infolist():
            url = entry.filename if "://" in entry.filename else f"http://{entry.filename}"
            if _is_web(url):
                try:
                    when = _past(datetime(*entry.date_time).astimezone().timestamp())
                except (ValueError, OverflowError):
                    when = now
                yield Capture(url, when, self, entry)

    def read(self, capture: Capture, room: Room) -> Answer:
        entry = capture.place
        try:
            head = self._head(entry.header_offset)
            known = dict(head)
            status = status_of(known["X-StatusCode"])
            if known.get("X-In-Cache") == "0":
                body, blob = self._saved(known.get("X-Save", ""), room)
            else:
                with self._zip.open(entry) as content:
                    body, blob = room.take(_pieces(content))
            found = [(name, value) for name, value in head if value and name[:2] != "X-"]
            return Answer(status, _plain(found), body, blob)
        except (errors.TooBig, CrawlDirError):
            raise
        except Exception as error:  # noqa: BLE001 - zipfile raises what its input makes it raise
            why = f"it has no {error.args[0]}" if isinstance(error, KeyError) else _line(error)
            raise errors.BadResponse(
                f"{self.path / os.fsdecode(_CACHE)}: {printable(entry.filename)[:100]}: {why}"
            ) from None

    def _head(self, at: int) -> list[tuple[str, str]]:
        assert self._file is not None
        lengths = os.pread(self._file.fileno(), 4, at + 26)
        name, extra = struct.unpack("<HH", lengths)
        lines = os.pread(self._file.fileno(), extra, at + 30 + name).decode("latin-1").split("\n")
        split = (line.partition(":") for line in lines)
        return plain_headers([(name, value) for name, colon, value in split if colon])

    def _saved(self, name: str, room: Room) -> tuple[bytes, Blob | None]:
        path = name.encode("latin-1")  # reverses the decoding of `_head`
        if path.startswith(b"/") or b".." in path.split(b"/"):
            raise ValueError(f"{name} is outside of the mirror")
        try:
            with self._folder.open(path) as content:
                return _take(content, room)
        except (NotPlainError, OSError) as error:
            raise ValueError(f"{name}: {in_words(error)}") from None


class MirrorFolder:
    """A folder for each host, as of ``wget -m``: ``wiki:8080/a/index.html`` is
    ``http://wiki:8080/a/``. It keeps no head: the status is 200, the type follows the name."""

    def __init__(self, folder: PlainFolder, scheme: str) -> None:
        self._folder, self._scheme = folder, scheme

    def captures(self) -> Iterator[Capture | Refused]:
        for host in self._folder.names():
            if not _HOST.fullmatch(os.fsdecode(host)):
                continue
            try:
                why = self._folder.kind(host)
            except OSError as error:
                why = in_words(error)
            if not why:
                continue  # a plain file between the hosts' folders
            if why != _IS_FOLDER:
                yield Refused(os.fsdecode(host), why)
                continue
            for found in self._folder.walk(host):
                if found.stat is None:
                    yield Refused(os.fsdecode(found.path), found.why)
                else:
                    yield Capture(self._url(found.path), _past(found.stat.st_mtime), self, found)

    def _url(self, file: bytes) -> str:
        path, mark, query = file.partition(b"?")
        if path.endswith(b"/index.html") and not mark:
            path = path[: -len(b"index.html")]
        shown = quote(path, safe="/:!$&'()*+,;=@~%")
        return f"{self._scheme}://{shown}" + (f"?{quote(query, safe=_IN_QUERY)}" if mark else "")

    def read(self, capture: Capture, room: Room) -> Answer:
        found: Found = capture.place
        try:
            with self._folder.open(found.path, found.stat) as content:
                body, blob = _take(content, room)
        except (OSError, NotPlainError, ValueError) as error:
            shown = printable(str(self._folder.path / os.fsdecode(found.path)))
            raise errors.BadResponse(f"{shown}: {in_words(error)}") from None
        name = os.fsdecode(found.path.rpartition(b"/")[2])
        mime = type_by_name(name.partition("?")[0])
        if mime not in (*PAGE_TYPES, "text/plain"):  # the content says the rest, as of a share
            mime = "text/html" * (not mime and _is_html(body))
        head = [("Content-Type", mime), ("Last-Modified", formatdate(capture.time, usegmt=True))]
        return Answer(200, [one for one in head if one[1]], body, blob)


_IS_FOLDER = "it is a folder"


def _take(content: IO[bytes], room: Room) -> tuple[bytes, Blob | None]:
    """The bytes that a file has when it is opened. Raises ValueError if it has others then."""
    size = os.fstat(content.fileno()).st_size

    def pieces() -> Iterator[bytes]:
        left = size
        while left and (piece := content.read(min(_PIECE, left))):
            left -= len(piece)
            yield piece
        if left or os.fstat(content.fileno()).st_size != size:
            raise ValueError("it has changed while it was read")

    return room.take(pieces())


def _past(when: float) -> float:
    """A time of a file, which may be any number: no later than now."""
    return min(max(0.0, when), time.time())


_IN_QUERY = "/:!$&'()*+,;=@~%?"


_HTML = (b"<!doctype html", b"<html", b"<head", b"<title")


def _is_html(body: bytes) -> bool:
    return body[:1000].lstrip().lower().startswith(_HTML)


def _is_web(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _plain(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers without codings of the body."""
    return [(name, value) for name, value in headers if name.lower() not in CODING]


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(content.read, _PIECE), b"")


def _line(error: Exception) -> str:
    return printable(" ".join(str(error).split()))[:100] or type(error).__name__
