"""Stored bodies against the digests that the frontier has, and both against store.log.

A page file of 50 MB takes 0.1 s and 20 us a page: bodies are hashed where the page file is mapped.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from larmspider.checksums import crc_of, read_sums, sums_path
from larmspider.crawl.verify.findings import Findings, Say
from larmspider.crawl.verify.logs import is_hole
from larmspider.errors import CrawlDirError, InvalidURL
from larmspider.fetch.blobs import FOLDER as BLOBS_FOLDER
from larmspider.fetch.blobs import blob_files, digest_of
from larmspider.formatting import counted
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import (
    BODY_DIGEST,
    NO_DIGEST,
    FetchRecord,
    UrlState,
    url_key,
)
from larmspider.pipelines.page_files import BLOBS, body_file, page_file_name, read_body
from larmspider.urls.canonical import Forms
from larmspider.workdir.frames import open_stored, present, stored_size

_SPELLINGS = 32
_PIECE = 1 << 20


class StoredUrls:
    """The keys of the records of store.log, in order, and the last line of each key."""

    def __init__(self) -> None:
        self.order: list[bytes] = []
        self.last: dict[bytes, int] = {}
        self.removed: set[bytes] = set()
        self.urls: dict[str, int] = {}
        """The number of the last line of each URL as fetched."""
        self.in_order = True
        """Whether the lines are in the order in which the pages were stored."""

    def add(self, key: bytes, url: str, *, removed: bool) -> None:
        self.last[key] = self.urls[url] = len(self.order)
        self.order.append(key)
        (self.removed.add if removed else self.removed.discard)(key)

    def has(self, key: bytes) -> bool:
        """Whether a page is stored."""
        return key in self.last and key not in self.removed


def stored_by_frontier(frontier: FrontierReader, forms: Callable[[str], Forms]) -> StoredUrls:
    """The pages of a crawl without store.log."""
    stored = StoredUrls()
    stored.in_order = False
    for _, visit in frontier.visits():
        if is_stored_here(visit):
            stored.add(url_key(_exact(forms, visit.url)), visit.url, removed=False)
    return stored


def records(path: Path, end: int) -> Iterator[tuple[int, list[str]]]:
    """Offsets and fields of the whole records of store.log."""
    if not present(path).exists():
        return
    at = 0
    with open_stored(path, skip=True) as log:
        for line in log:
            if at + len(line) > end or not line.endswith(b"\n"):
                return
            fields = line[:-1].decode("utf-8", "replace").split("\t")
            if len(fields) == 10 and not is_hole(line) and _has_numbers(fields):
                yield at, fields
            at += len(line)


def _has_numbers(fields: list[str]) -> bool:
    numbers = fields[4], fields[6], fields[8].removeprefix("-"), fields[9]
    return all(number.isdecimal() for number in numbers)


class Bodies:
    """Reads bodies where they lie; bodies in uncompressed page files are not copied."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self._maps: dict[int, tuple[memoryview, int] | BinaryIO | str] = {}

    def __enter__(self) -> Bodies:
        return self

    def __exit__(self, *error: object) -> None:
        self._maps.clear()
        self._stack.close()

    def digest(self, number: int, offset: int, size: int) -> bytes | str:
        """The SHA-1 of a body, or the fault of the file."""
        if number < 0:
            return self._digest_elsewhere(number, offset, size)
        found = self._maps.get(number)
        if found is None:
            found = self._open(number)
        if isinstance(found, str):
            return found
        if isinstance(found, tuple):
            view, there = found
            if offset + size > there:
                return f"ends at {there:,}, the body goes to {offset + size:,}"
            return hashlib.sha1(view[offset : offset + size], usedforsecurity=False).digest()
        try:
            found.seek(offset)
            body = found.read(size)
        except CrawlDirError as error:
            return str(error).partition(": ")[2] or str(error)
        if len(body) != size:
            return f"ends before the body does, at {offset + size:,}"
        return hashlib.sha1(body, usedforsecurity=False).digest()

    def _open(self, number: int) -> tuple[memoryview, int] | BinaryIO | str:
        while self._maps and len(self._maps) > 64:
            self._maps.pop(next(iter(self._maps)))  # the map goes with its last view
        path = self._directory / page_file_name(number)
        there = present(path)
        found: tuple[memoryview, int] | BinaryIO | str
        try:
            size = there.stat().st_size
            if there != path:
                found = self._stack.enter_context(open_stored(path))
            elif not size:
                found = memoryview(b""), 0
            else:
                with path.open("rb") as file:
                    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                mapped.madvise(mmap.MADV_SEQUENTIAL)
                found = memoryview(mapped), size
        except FileNotFoundError:
            found = "is gone"
        except (OSError, CrawlDirError) as error:
            found = str(error)
        self._maps[number] = found
        return found

    def _digest_elsewhere(self, number: int, offset: int, size: int) -> bytes | str:
        if number == BLOBS:
            path = blob_files(self._directory / BLOBS_FOLDER).get(offset)
            if path is None:
                return f"the file {offset}-... is gone"
            sha1, there = hashlib.sha1(usedforsecurity=False), path.stat().st_size
            if there != size:
                return f"{path.name} has {there:,} bytes, {size:,} were stored"
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    sha1.update(piece)
            if sha1.hexdigest() != digest_of(path):
                return f"{path.name} does not match its name"
            return sha1.digest()
        try:
            body = read_body(self._directory, number, offset, size)
        except CrawlDirError as error:
            return str(error)
        if len(body) != size:
            return "bytes are missing"
        return hashlib.sha1(body, usedforsecurity=False).digest()


def check_bodies(
    found: Findings,
    frontier: FrontierReader | None,
    forms: Callable[[str], Forms],
    end: int,
    say: Say,
    *,
    complete: bool,
) -> StoredUrls:
    """Name the damaged bodies; their pages become due. ``end``: the end of store.log. ``complete``:
    the frontier and store.log have the same pages."""
    path = found.path / "store.log"
    stored = StoredUrls()
    for _, fields in records(path, end):
        exact = _exact(forms, fields[1])
        stored.add(url_key(exact), fields[1], removed=fields[4] == "0")
    ends: dict[int, int] = {}
    with Bodies(found.path) as bodies:
        for line, (at, fields) in enumerate(records(path, end)):
            url, number, offset, size = fields[1], *map(int, (fields[8], fields[9], fields[6]))
            if fields[4] == "0":
                continue
            if number >= 0:
                ends[number] = max(ends.get(number, 0), offset + size)
            key = stored.order[line]
            if stored.last[key] != line or key in stored.removed:
                continue
            if line % 256 == 0:
                say("bodies", line, len(stored.order))
            found.pages += 1
            digest = bodies.digest(number, offset, size)
            visit = None if frontier is None else frontier.visit(key)
            is_bad = isinstance(digest, str) or not _is_known(
                digest, visit, frontier, key, forms, url
            )
            if is_bad and _is_awaited(frontier, key, visit):
                found.awaited[key] = url
            elif isinstance(digest, str):
                found.add(_file_of(found.path, number, offset), digest, offset, url)
                found.make_due([(key, url)])
                _note_bad_blob(found, number, offset)
            elif is_bad:
                what = "a body does not match its digest"
                found.add(_file_of(found.path, number, offset), what, offset, url)
                found.make_due([(key, url)])
            if complete and visit is None and not _is_there(frontier, key, forms, url):
                found.add(path, "a record of a page that the frontier does not know", at, url)
    if complete and frontier is not None:
        _check_records(found, frontier, stored, forms)
    _check_page_files(found, ends)
    return stored


def _exact(forms: Callable[[str], Forms], url: str) -> str:
    try:
        return forms(url).exact
    except InvalidURL:
        return url


def _keys(key: bytes, exact: str) -> Iterator[bytes]:
    """The page's own key, then the keys by which a redirect leads to the page (requests.py)."""
    yield key
    for number in range(1, _SPELLINGS + 1):
        yield url_key(f"{exact}#{number}")


def _is_there(
    frontier: FrontierReader | None, key: bytes, forms: Callable[[str], Forms], url: str
) -> bool:
    if frontier is None or frontier.state(key) is not UrlState.UNKNOWN:
        return True
    exact = _exact(forms, url)
    return any(frontier.state(other) is not UrlState.UNKNOWN for other in _keys(key, exact))


def _is_known(
    digest: bytes,
    visit: FetchRecord | None,
    frontier: FrontierReader | None,
    key: bytes,
    forms: Callable[[str], Forms],
    url: str,
) -> bool:
    """Whether a record of the page has the digest of the body, or no record has a digest."""
    if frontier is None or visit is None or _says(visit) in (b"", digest):
        return True
    others = map(frontier.visit, _keys(key, _exact(forms, url)))
    return any(other is not None and _says(other) == digest for other in others)


def _is_awaited(frontier: FrontierReader | None, key: bytes, visit: FetchRecord | None) -> bool:
    """Whether a repair has made a page due, or has queued it."""
    if frontier is None:
        return False
    if visit is None:
        return frontier.state(key) in (UrlState.QUEUED, UrlState.LEASED)
    return frontier.is_doubtful(key, visit.url)


def _says(visit: FetchRecord) -> bytes:
    """The digest of the body; b"" if it is not known."""
    digest = visit.digest[:BODY_DIGEST]
    counts = visit.has_page and not visit.shard and len(digest) == BODY_DIGEST
    return digest if counts and digest != NO_DIGEST else b""


def _file_of(directory: Path, number: int, offset: int) -> Path:
    if number == BLOBS:
        folder = directory / BLOBS_FOLDER
        return blob_files(folder).get(offset, folder)
    return present(body_file(directory, number))


def _note_bad_blob(found: Findings, number: int, offset: int) -> None:
    """Remove the file of a bad blob; otherwise another page with this body would use the file."""
    if number == BLOBS:
        path = blob_files(found.path / BLOBS_FOLDER).get(offset)
        if path is not None and path not in found.gone:
            found.gone.append(path)


def _check_records(
    found: Findings,
    frontier: FrontierReader,
    stored: StoredUrls,
    forms: Callable[[str], Forms],
) -> None:
    """Pages that the frontier has, and store.log has not."""
    path = found.path / "store.log"
    for key, visit in frontier.visits():
        if not is_stored_here(visit) or stored.has(key):
            continue
        exact = _exact(forms, visit.url)
        if stored.has(url_key(exact)):
            continue
        if _is_awaited(frontier, key, visit):
            found.awaited[key] = visit.url
        else:
            found.add(path, "the record of a stored page is missing", url=visit.url)
            found.make_due([(key, visit.url)])


def is_stored_here(visit: FetchRecord) -> bool:
    """Whether store.log has the page: it has error pages, but no pages that a store refused."""
    if not visit.url or visit.shard:
        return False
    if visit.state is UrlState.STORED:
        return visit.status > 0
    return visit.state is UrlState.FAILED and visit.reason == f"http-{visit.status}"


def _check_page_files(found: Findings, ends: dict[int, int]) -> None:
    """Check page files by their checksums: old versions of pages no longer have a digest."""
    named = {damage.file for damage in found.damages}
    for number in sorted(ends):
        path = found.path / page_file_name(number)
        if present(path) != path or not path.exists():
            continue
        stretches, bad = read_sums(path)
        for line in bad:
            found.add(sums_path(path), f"line {line} is damaged")
        size = stored_size(path)
        wrong = [s for s in stretches if s.end <= size and crc_of(path, s.start, s.end) != s.crc]
        for start, stop, _ in wrong if path not in named else ():
            what = f"{counted(stop - start, 'byte')} do not match their checksum"
            found.add(path, f"{what}; the bodies that count are whole", start)
        if bad or wrong or path in named:
            found.unsummed.append(path)
