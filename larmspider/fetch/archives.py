"""Pages that were fetched by somebody else: WARC files, caches of HTTrack, folders of wget.

    archive = Archive([Path("2026.warc.gz"), Path("mirror/")])
    archive.find("http://wiki/a")            # Capture(time=..., source=..., place=81_264)
    capture.source.read(capture, Room())     # Answer(200, [...], b"<p>...")

A WARC is read once for the places of its records, then record by record as they are asked for. Of
several captures of a URL the latest counts. A file that is damaged is read up to there; ``damages``
has a line about it.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import quote, urlsplit

from scrapy import Request

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.fetch import errors
from larmspider.fetch.blobs import Blob, Room
from larmspider.formatting import counted, printable
from larmspider.urls.media_types import type_by_name

_HOST = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]+)?")
_CODING = ("content-encoding", "transfer-encoding", "content-length")
_PIECE, _MEMBER_PIECE = 1 << 16, 1 << 14


@dataclass(frozen=True, slots=True)
class Answer:
    """``body`` is decoded, and ``headers`` say nothing of how it was coded. One that is too large
    for memory is the ``blob``."""

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


class Source(Protocol):
    """One file or folder."""

    def captures(self) -> Iterator[Capture]:
        """Those of http and https. Raises DamagedError after the last one that can be read."""

    def read(self, capture: Capture, room: Room) -> Answer:
        """Raises TooBig for a body that finds no ``room``, BadResponse, CrawlDirError."""


class DamagedError(Exception):
    """A source that cannot be read to its end: what is wrong, and where."""


class Archive:
    """What all ``paths`` hold. Raises ConfigError where one is none of these."""

    def __init__(self, paths: Sequence[Path], scheme: str = "http") -> None:
        self.damages: list[str] = []
        self._captures: dict[str, Capture] = {}
        for path in paths:
            found = 0
            try:
                for capture in _source_of(path, scheme).captures():
                    try:
                        key = Request(capture.url).url
                        if urlsplit(key).path == "/robots.txt":
                            continue  # of crawlers that keep it
                    except ValueError:
                        continue  # no URL
                    found += 1
                    known = self._captures.get(key)
                    if known is None or known.time <= capture.time:
                        self._captures[key] = capture
            except DamagedError as error:
                self.damages.append(f"{path}: {error}; {counted(found, 'page')} before that")
            except OSError as error:
                raise ConfigError(f"{path}: {error.strerror or error}") from None
            if not found:
                why = self.damages[-1] if self.damages else f"{path} has no page of http or https"
                raise ConfigError(why)

    def urls(self) -> Iterator[str]:
        """As Scrapy writes them."""
        yield from self._captures

    def find(self, url: str) -> Capture | None:
        return self._captures.get(url)


def _source_of(path: Path, scheme: str) -> Source:
    if (path / "hts-cache" / "new.zip").is_file():
        return HTTrackCache(path)
    if path.is_dir():
        return MirrorFolder(path, scheme)
    if not path.exists():
        raise ConfigError(f"{path}: there is no such file or folder")
    with path.open("rb") as file:
        begins = file.read(4)
    if begins[:2] == b"\x1f\x8b" or begins == b"WARC":
        return WarcFile(path)
    raise ConfigError(
        f"{path}: expected a WARC file (.warc, .warc.gz), the folder of an HTTrack mirror, with"
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

    def captures(self) -> Iterator[Capture]:
        at = 0
        try:
            with self.path.open("rb") as file, self.path.open("rb") as raw:
                records = self._records(file, no_record_parse=True)
                while True:
                    if not _unpacks(raw, records.offset):
                        raise DamagedError(f"the record at byte {records.offset:,} is damaged")
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
            raise DamagedError(f"it is damaged behind the record at byte {at:,}") from None
        if records.offset < self.path.stat().st_size:  # warcio ends there without a word
            raise DamagedError(f"it is damaged behind the record at byte {at:,}")

    def _capture(self, kind: str, head: Any, at: int) -> Capture | None:
        url = (head("WARC-Target-URI") or "").strip("<>")
        if kind not in ("response", "revisit", "resource") or not _is_web(url):
            return None
        digest = head("WARC-Payload-Digest")
        if kind == "response" and digest:
            self._originals[digest] = at
        try:
            date = datetime.fromisoformat(head("WARC-Date") or "")
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return Capture(url, date.timestamp(), self, at)

    def read(self, capture: Capture, room: Room) -> Answer:
        try:
            return self._read(capture.place, room)
        except (errors.TooBig, errors.BadResponse, CrawlDirError):
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise errors.BadResponse(
                f"{self.path}: the record at byte {capture.place:,}: {_line(error)}"
            ) from None

    def _read(self, at: int, room: Room) -> Answer:
        with self.path.open("rb") as file:
            file.seek(at)
            record = next(iter(self._records(file)))
            headers = record.http_headers
            if record.rec_type == "revisit":
                original = self._originals.get(record.rec_headers.get_header("WARC-Payload-Digest"))
                if original is None:
                    raise errors.BadResponse(f"{self.path}: the original of a revisit is not here")
                answer = self._read(original, room)
                if headers is None:
                    return answer
                status, head = int(headers.get_statuscode()), _plain(headers.headers)
                return replace(answer, status=status, headers=head)
            body, blob = room.take(_pieces(record.content_stream()))
            if record.rec_type == "resource" or headers is None:
                return Answer(200, [("Content-Type", record.content_type or "")], body, blob)
            return Answer(int(headers.get_statuscode()), _plain(headers.headers), body, blob)


def _unpacks(file: IO[bytes], at: int) -> bool:
    """Whether the gzip member there is what was packed; True of one that is cut short, and of what
    is none. warcio passes over a wrong checksum, and may lose all records behind it."""
    file.seek(max(0, at))
    unpacked, piece = zlib.decompressobj(31), file.read(_MEMBER_PIECE)
    if not piece.startswith(b"\x1f\x8b"):
        return True
    try:
        while piece and not unpacked.eof:
            unpacked.decompress(piece)
            piece = file.read(_MEMBER_PIECE)
    except zlib.error:
        return False
    return True


class HTTrackCache:
    """hts-cache/new.zip: an entry a URL, whose extra field has the head of the response. A body
    that is not there lies in the mirror."""

    def __init__(self, path: Path) -> None:
        self.path, self._zip = path, path / "hts-cache" / "new.zip"

    def captures(self) -> Iterator[Capture]:
        try:
            with zipfile.ZipFile(self._zip) as cache:
                for entry in cache.infolist():
                    url = entry.filename if "://" in entry.filename else f"http://{entry.filename}"
                    if _is_web(url):
                        when = datetime(*entry.date_time).astimezone().timestamp()
                        yield Capture(url, when, self, entry)
        except (zipfile.BadZipFile, ValueError) as error:
            raise DamagedError(f"hts-cache/new.zip: {_line(error)}") from None

    def read(self, capture: Capture, room: Room) -> Answer:
        entry = capture.place
        try:
            with self._zip.open("rb") as file:
                file.seek(entry.header_offset + 26)
                name, extra = struct.unpack("<HH", file.read(4))
                file.seek(name, os.SEEK_CUR)
                lines = file.read(extra).decode("latin-1").splitlines()
            split = (line.partition(":") for line in lines)
            head = [(name, value.strip()) for name, _, value in split]
            known = dict(head)
            if known.get("X-In-Cache") == "0":
                body, blob = self._saved(known.get("X-Save", ""), room)
            else:
                with zipfile.ZipFile(self._zip) as cache, cache.open(entry) as content:
                    body, blob = room.take(_pieces(content))
            found = [(name, value) for name, value in head if value and name[:2] != "X-"]
            return Answer(int(known["X-StatusCode"]), _plain(found), body, blob)
        except (KeyError, ValueError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise errors.BadResponse(f"{self._zip}: {entry.filename}: {_line(error)}") from None

    def _saved(self, name: str, room: Room) -> tuple[bytes, Blob | None]:
        path = (self.path / name).resolve()
        if not path.is_relative_to(self.path.resolve()):
            raise ValueError(f"{name} is outside of the mirror")
        with path.open("rb") as content:
            return room.take(_pieces(content))


class MirrorFolder:
    """A folder for each host, as of ``wget -m``: ``wiki:8080/a/index.html`` is
    ``http://wiki:8080/a/``. No head is kept, so the status is 200, the type that of the name."""

    def __init__(self, path: Path, scheme: str) -> None:
        self.path, self._scheme = path, scheme

    def captures(self) -> Iterator[Capture]:
        for host in sorted(self.path.iterdir()):
            if not host.is_dir() or not _HOST.fullmatch(host.name):
                continue
            for folder, folders, names in os.walk(host):
                folders.sort()
                for name in sorted(names):
                    file = Path(folder, name)
                    if file.is_file() and not file.is_symlink():
                        yield Capture(self._url(file), file.stat().st_mtime, self, file)

    def _url(self, file: Path) -> str:
        path, mark, query = os.fsencode(file.relative_to(self.path)).partition(b"?")
        if path.endswith(b"/index.html") and not mark:
            path = path[: -len(b"index.html")]
        shown = quote(path, safe="/:!$&'()*+,;=@~%")
        return f"{self._scheme}://{shown}" + (f"?{quote(query, safe=_IN_QUERY)}" if mark else "")

    def read(self, capture: Capture, room: Room) -> Answer:
        file: Path = capture.place
        try:
            with file.open("rb") as content:
                body, blob = room.take(_pieces(content))
        except OSError as error:
            raise errors.BadResponse(f"{file}: {error.strerror or error}") from None
        mime = type_by_name(file.name.partition("?")[0]) or "text/html" * _is_html(body)
        head = [("Content-Type", mime), ("Last-Modified", formatdate(capture.time, usegmt=True))]
        return Answer(200, [one for one in head if one[1]], body, blob)


_IN_QUERY = "/:!$&'()*+,;=@~%?"


_HTML = (b"<!doctype html", b"<html", b"<head", b"<title")


def _is_html(body: bytes) -> bool:
    return body[:1000].lstrip().lower().startswith(_HTML)


def _is_web(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _plain(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without what says how the body was coded."""
    return [(name, value) for name, value in headers if name.lower() not in _CODING]


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(content.read, _PIECE), b"")


def _line(error: Exception) -> str:
    return printable(" ".join(str(error).split()))[:100] or type(error).__name__
