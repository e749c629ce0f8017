"""Thumbnails of documents beside their hits: the first page of a PDF, or a reduced image.

    previews = Previews()
    previews.picture(crawl, page)        # a JPEG; None where there is none

Another process draws them (extraction/documents/pictures.py), one at a time, within SECONDS and
MEMORY_BYTES. KEPT_BYTES of thumbnails are kept on the disk until the server ends, in a folder that
only its user can read. The caller checks first, each time, whether the reader may see the
document.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path

from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.errors import CrawlDirError
from larmspider.extraction.processes.process import (
    RECYCLED,
    ExtractionProcess,
    ExtractionRefused,
    ExtractionStopped,
)
from larmspider.search.results import Hit

logger = logging.getLogger(__name__)

TYPES = frozenset({"application/pdf", "image/jpeg", "image/png", "image/gif", "image/webp"})
"""Media types that have a picture, as in extraction/documents/pictures.py."""
WIDTH = 184
"""Pixels; pages show them half as wide, for screens with two pixels a point."""
SECONDS = 5.0
"""CPU time for one picture; a page of text takes 0.05 s."""
MEMORY_BYTES = 1 << 29
MOST_BYTES = 30_000_000
"""The largest document that has a picture."""
KEPT_BYTES = 50_000_000
"""Some 7,000 pages of text."""
KEPT_NAMES = 20_000
"""Documents that are remembered to have a picture, or none."""


class Previews:
    """Pictures that were drawn. Methods are called in threads."""

    def __init__(self, kept_bytes: int = KEPT_BYTES, kept_names: int = KEPT_NAMES) -> None:
        self._kept_bytes, self._kept_names = kept_bytes, kept_names
        self._lock = threading.Lock()
        self._process: ExtractionProcess | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._sizes: OrderedDict[str, int] = OrderedDict()  # by name, the last used at the end
        self._bytes = 0

    def may_draw(self, hit: Hit) -> bool:
        """Whether a hit is of a document that can have a picture."""
        return hit.mime in TYPES and not hit.container and 0 < hit.size <= MOST_BYTES

    def picture(self, crawl: CrawlDir, page: StoredPage) -> bytes | None:
        """The picture of a stored page. None for a document that cannot be drawn in the limits."""
        if page.mime not in TYPES or not 0 < page.size <= MOST_BYTES:
            return None
        where = f"{page.shard or crawl.path}\0{page.url}\0{page.page_file}\0{page.offset}"
        name = hashlib.blake2b(f"{where}\0{page.size}".encode("utf-8", "replace")).hexdigest()[:40]
        with self._lock:
            if name in self._sizes:
                self._sizes.move_to_end(name)
                return self._read(name)
            try:
                drawn = self._draw(crawl, page)
            except ExtractionStopped:
                return None
            except OSError as error:  # the disk, or no further process: it is tried again
                logger.warning("No preview of %s: %s", page.url, error)
                return None
            except (ExtractionRefused, CrawlDirError) as error:
                logger.info("No preview of %s: %s", page.url, error)
                drawn = b""
            self._keep(name, drawn)
        return drawn or None

    def _draw(self, crawl: CrawlDir, page: StoredPage) -> bytes:
        """Raises ExtractionRefused, ExtractionStopped, CrawlDirError."""
        file = crawl.body_file(page)
        body = crawl.body(page) if file is None else file.read_bytes()
        if self._process is None:
            self._process = ExtractionProcess(SECONDS, MEMORY_BYTES, RECYCLED)
        return self._process.picture(page.mime, body, page.url, WIDTH)

    def _read(self, name: str) -> bytes | None:
        if not self._sizes[name] or self._folder is None:
            return None
        try:
            return Path(self._folder.name, name).read_bytes()
        except OSError:  # a cleaner of /tmp has deleted it
            self._forget(name)
            return None

    def _keep(self, name: str, drawn: bytes) -> None:
        if drawn:
            try:
                Path(self._kept_in(), name).write_bytes(drawn)
            except OSError as error:  # the disk is full: it is drawn again next time
                logger.warning("Previews are not kept: %s", error)
                return
        self._sizes[name] = len(drawn)
        self._bytes += len(drawn)
        while self._bytes > self._kept_bytes or len(self._sizes) > self._kept_names:
            self._forget(next(iter(self._sizes)))

    def _kept_in(self) -> str:
        """The folder of the pictures. Raises OSError."""
        if self._folder is not None and not Path(self._folder.name).is_dir():
            self._folder.cleanup()  # it was tidied away
            self._folder = None
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="larmspider-previews-")
        return self._folder.name

    def _forget(self, name: str) -> None:
        size = self._sizes.pop(name)
        self._bytes -= size
        if size and self._folder is not None:
            Path(self._folder.name, name).unlink(missing_ok=True)

    def close(self) -> None:
        """End the process, and remove what is kept. May be called twice."""
        if self._process is not None:
            self._process.close()
        with self._lock:
            self._sizes.clear()
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None
