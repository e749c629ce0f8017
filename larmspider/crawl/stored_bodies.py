"""Finds stored bodies by URL while a crawl runs and appends to the same store.log.

    bodies = StoredBodies(Path("crawl"))
    bodies.find("http://wiki/a", sha1_of_the_body)      # ("text/html", b"<p>...") or None

The first search reads all of store.log, 1 s for a million pages, and keeps 8 bytes for each line;
later ones read the lines added since. Call it in a thread.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b, sha1
from pathlib import Path

from larmspider.errors import CrawlDirError
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS, read_body
from larmspider.pipelines.records import clean
from larmspider.urls.syntax import without_userinfo
from larmspider.workdir.frames import open_stored

_OFFSET_BITS = 36
"""Bits for the offset in store.log (64 GB); the other 28 bits of 64 are a hash of the URL."""
_OFFSET = (1 << _OFFSET_BITS) - 1


class StoredBodies:
    """The page files in ``directory``; bodies of other workers are not found."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._places = array("Q")  # sorted: 28 bits of the URL, then the offset
        self._added: dict[int, list[int]] = {}  # since that was read
        self._end = 0
        self._lock = threading.Lock()

    def find(self, url: str, digest: bytes) -> tuple[str, bytes] | None:
        """Media type and body of the version with this SHA-1; None if no page file has it."""
        with self._lock, suppress(OSError, ValueError, CrawlDirError):
            self._read_on()
            for fields in self._lines(clean(without_userinfo(url))):
                mime, size, number, offset = fields[5], fields[6], fields[8], fields[9]
                body = read_body(self._directory, int(number), int(offset), int(size))
                if sha1(body, usedforsecurity=False).digest() == digest:
                    return mime, body
        return None

    def _read_on(self) -> None:
        is_first = not self._end
        found = array("Q")
        with open_stored(self._directory / "store.log", skip=True) as log:
            log.seek(self._end)
            while (line := log.readline()).endswith(b"\n"):
                url = line.split(b"\t", 2)[1] if line.count(b"\t", 0, 1 << 16) else b""
                found.append(_mark(url) << _OFFSET_BITS | self._end & _OFFSET)
                self._end += len(line)
        if is_first:
            self._places = array("Q", sorted(found))
            return
        for place in found:
            self._added.setdefault(place >> _OFFSET_BITS, []).append(place & _OFFSET)

    def _lines(self, url: str) -> Iterator[list[str]]:
        """The lines of a URL, the last one first."""
        mark = _mark(url.encode("utf-8", "surrogatepass"))
        begin = bisect_left(self._places, mark << _OFFSET_BITS)
        end = bisect_left(self._places, (mark + 1) << _OFFSET_BITS)
        offsets = [place & _OFFSET for place in self._places[begin:end]]
        with open_stored(self._directory / "store.log", skip=True) as log:
            for offset in reversed([*offsets, *self._added.get(mark, ())]):
                log.seek(offset)
                fields = log.readline()[:-1].decode("utf-8", "replace").split("\t")
                if len(fields) == len(STORE_LOG_COLUMNS) and fields[1] == url:
                    yield fields


def _mark(url: bytes) -> int:
    return int.from_bytes(blake2b(url, digest_size=4).digest()) >> 4
