"""Page files: bodies as received, one after the other, and store.log, which has their positions.

pagefile_0.pfl, pagefile_1.pfl, ...   at most LARM_PAGEFILE_BYTES each, nothing between bodies
blobs/0-2fd4e1c6..., blobs/1-...      bodies that are too large for these, each once
store.log                             one line a page, ten tab-separated fields (docs/formats.md)

If a URL has several lines, the last one counts. A line with status 0 says that the page was
removed.

With LARM_BODIES=warc the bodies lie in the files of WarcPipeline: page file -1 is the WARC file
with number 0, -2 the next one, and the offset is the record's. Page file BLOBS is the folder
blobs, and the offset is the number of the file.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy.exceptions import DropItem

from larmspider import options, stats
from larmspider.checksums import FOLDER as SUMS
from larmspider.errors import MEND, ConfigError, CrawlDirError
from larmspider.fetch.blobs import FOLDER, PART, blob_files, digest_of
from larmspider.fetch.limits import document_bytes
from larmspider.files import sync_file, sync_folder
from larmspider.formatting import utc
from larmspider.items import Page, Removed
from larmspider.pipelines.records import (
    AppendFile,
    LogStore,
    compression,
    open_appending,
    read_records,
    truncate_file,
)
from larmspider.urls.syntax import without_userinfo
from larmspider.workdir.frames import SUFFIX, open_stored, present

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.statscollectors import StatsCollector

STORE_LOG_COLUMNS = (
    "from-page",
    "url",
    "url-normalized",
    "link-type",
    "http-code",
    "mime-type",
    "size",
    "title",
    "page-file",
    "offset",
)


_PIECE = 1 << 16
WARC = "warc"
BLOBS = -1_000_000_000
"""The page file of a body that has a file of its own."""


def page_file_name(number: int) -> str:
    """Page files are numbered from 0; -1 is the WARC file with number 0, BLOBS the folder."""
    if number == BLOBS:
        return FOLDER
    return f"pagefile_{number}.pfl" if number >= 0 else f"*-{-1 - number:05}.warc.gz"


def body_file(directory: Path, number: int) -> Path:
    """The page file of this number, or the WARC file."""
    name = page_file_name(number)
    if number >= 0:
        return directory / name
    return next((directory / WARC).glob(name), directory / WARC / name)


def bodies_in_warc(settings: BaseSettings) -> bool:
    """LARM_BODIES. Raises ConfigError where WarcPipeline does not run before PageFilesPipeline."""
    if options.choice(settings, "LARM_BODIES", ("page-files", WARC)) != WARC:
        return False
    listed = settings.get_component_priority_dict_with_base("ITEM_PIPELINES")
    order = {str(path).rpartition(".")[2].rstrip("'>"): at for path, at in listed.items()}
    warc, pages = order.get("WarcPipeline"), order.get("PageFilesPipeline")
    if warc is None or pages is None or warc >= pages:
        raise ConfigError(
            "LARM_BODIES=warc: expected larmspider.plugins.warc.pipeline.WarcPipeline in"
            " ITEM_PIPELINES, with a lower number than PageFilesPipeline"
            " (docs/warc.md#without-page-files)"
        )
    return True


class PageFilesPipeline(LogStore):
    """Writes page files and store.log."""

    needs = ("url", "body")
    file_name = "store.log"
    files = (
        file_name, "pagefile_*.pfl", file_name + SUFFIX, f"pagefile_*.pfl{SUFFIX}",
        FOLDER, "compact.new", "compact.done", SUMS,
    )  # fmt: skip
    columns = STORE_LOG_COLUMNS

    def __init__(self, directory: Path, max_bytes: int, counters: StatsCollector) -> None:
        super().__init__(directory)
        self.max_bytes = max_bytes
        self.counters = counters
        self.number = -1
        self.in_warc = False
        self._file: AppendFile | None = None
        self._full: list[AppendFile] = []
        """Full files that are not synced yet."""
        self._next_blob = 0
        self._blobs: dict[str, int] = {}
        """Numbers of blobs, by digest."""
        self._new_blobs: list[Path] = []
        """Blobs that are not synced yet."""

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        max_bytes = options.integer(settings, "LARM_PAGEFILE_BYTES", minimum=1)
        document = options.integer(settings, "DOWNLOAD_MAXSIZE", minimum=0)
        if not 0 < document <= max_bytes:
            raise ConfigError(
                f"DOWNLOAD_MAXSIZE={document or '0 (no limit)'} does not fit"
                f" LARM_PAGEFILE_BYTES={max_bytes}: a document lies in one page file,"
                f" so DOWNLOAD_MAXSIZE must be between 1 and {max_bytes}"
            )
        document_bytes(settings)
        assert crawler.stats is not None
        store = cls(options.larm_dir(settings), max_bytes, crawler.stats)
        store.compressed = compression(settings)
        store.in_warc = bodies_in_warc(settings)
        return store

    def open_spider(self) -> None:
        super().open_spider()
        self._open_file(max(self._present(), default=0))
        folder = self.directory / FOLDER
        for part in folder.glob(f".*{PART}"):  # of a process that was killed
            part.unlink(missing_ok=True)
        for number, path in blob_files(folder).items():
            self._blobs[digest_of(path)] = number
            self._next_blob = max(self._next_blob, number + 1)

    def _present(self) -> list[int]:
        names = (path.name.removesuffix(SUFFIX) for path in self.directory.glob("pagefile_*.pfl*"))
        numbers = (name[9:-4] for name in names if name.endswith(".pfl"))
        return [int(number) for number in numbers if number.isdecimal()]

    def recover(self, position: bytes) -> None:
        """``position``: number and length of the page file, the number of the next blob if there
        ever was one, length of store.log."""
        number, length, *blobs, log = (position or b"0 0 0").split()
        super().recover(log)
        self._next_blob = int(blobs[0]) if blobs else 0
        for later, path in blob_files(self.directory / FOLDER).items():
            if later >= self._next_blob:
                path.unlink()
        truncate_file(self.directory / page_file_name(int(number)), length)
        for later in self._present():
            if later > int(number):
                present(self.directory / page_file_name(later)).unlink()

    def _open_file(self, number: int) -> None:
        if self._file is not None:
            self._file.let_go()  # to sync 50 MB takes 0.1 s and more
            self._full.append(self._file)
        self.number = number
        path = self.directory / page_file_name(number)
        self._file = open_appending(path, compressed=self.compressed, summed=True)
        self.counters.set_value(stats.PAGE_FILES_FILES, number + 1)

    def write(self, page: Page) -> None:
        size = page.size
        if page.body_file is not None:
            number, offset = BLOBS, self._put_blob(page)
        elif self.in_warc and page.stored_at:
            number, offset = page.stored_at
        else:
            number, offset = self._put(page.body)
        page.stored_at = number, offset
        self.log.append(
            without_userinfo(page.from_page),
            without_userinfo(page.url),
            page.normalized or "",
            str(page.link_type),
            str(page.status),
            page.mime,
            str(size),
            page.title,
            str(number),
            str(offset),
        )
        self.counters.inc_value(stats.PAGE_FILES_PAGES)
        self.counters.inc_value(stats.PAGE_FILES_BYTES, size)
        self.counters.inc_value(stats.PAGE_FILES_STATUS.format(status=page.status))

    def _put(self, body: bytes) -> tuple[int, int]:
        """Append it; number and offset."""
        size = len(body)
        if size > self.max_bytes:
            raise DropItem(
                f"it has {size} bytes, a page file holds {self.max_bytes} (LARM_PAGEFILE_BYTES)"
            )
        assert self._file is not None
        if self._file.end + size > self.max_bytes:
            self._open_file(self.number + 1)
        offset = self._file.end
        self._file.write(body)
        return self.number, offset

    def _put_blob(self, page: Page) -> int:
        """Keep its file, unless one with that body is there already; the number."""
        assert page.body_file is not None
        number = self._blobs.get(page.digest, self._next_blob)
        path = self.directory / FOLDER / f"{number}-{page.digest}"
        if number == self._next_blob:
            page.body_file.rename(path)
            self._blobs[page.digest] = number
            self._next_blob += 1
            self._new_blobs.append(path)
            self.counters.inc_value(stats.PAGE_FILES_BLOBS)
        page.body_file = path
        return number

    def remove(self, removed: Removed) -> None:
        url, when = without_userinfo(removed.url), utc(removed.time)
        normalized = self._forms(url).normalized
        self.log.append("", url, normalized, "0", "0", "", "0", when, str(self.number), "0")

    def flush(self) -> bytes:
        if self._file is None:
            return b"0 0 0"
        for full in self._full:
            full.flush()  # raises what sync() met
        # bodies before store.log, which never names missing bytes
        length = self._file.flush()
        blobs = b"%d " % self._next_blob if self._next_blob else b""
        return b"%d %d %b%b" % (self.number, length, blobs, super().flush())

    async def commit(self) -> None:
        if self._file is not None:
            files, blobs = [*self._full, self._file], len(self._new_blobs)
            await asyncio.to_thread(sync_files, files)
            self._full = [full for full in self._full if full.is_unsynced]
            if blobs:
                await asyncio.to_thread(_sync_blobs, self._new_blobs[:blobs])
                del self._new_blobs[:blobs]
        await super().commit()

    def close_spider(self) -> None:
        if self._file is not None:
            for file in (*self._full, self._file):
                file.close()
        super().close_spider()


def stored_pages(directory: Path) -> Iterator[tuple[list[str], Callable[[], bytes]]]:
    """The records of store.log in their order, each with what reads its body. Raises CrawlDirError,
    as that does too."""
    try:
        for fields in read_records(directory / "store.log", len(STORE_LOG_COLUMNS)):
            place = map(int, (fields[8], fields[9], fields[6]))
            yield fields, partial(read_body, directory, *place)
    except (OSError, ValueError) as error:
        raise CrawlDirError(f"{directory / 'store.log'}: cannot be read: {error}") from error


def blob_file(directory: Path, number: int) -> Path:
    """The file of a body that is too large for page files. Raises CrawlDirError if it is
    gone."""
    found = next((directory / FOLDER).glob(f"{number}-*"), None)
    if found is None:
        raise CrawlDirError(f"{directory / FOLDER}: the file {number}-... is gone; {MEND}")
    return found


def read_body(directory: Path, number: int, offset: int, size: int) -> bytes:
    """A body by its page file and place there; b"" of one that has a file of its own. Raises
    CrawlDirError."""
    if number == BLOBS:
        return b""
    path = body_file(directory, number)
    try:
        if number < 0:
            return _read_warc(path, offset, size)
        with open_stored(path) as file:
            file.seek(offset)
            return file.read(size)
    except OSError as error:
        raise CrawlDirError(f"{path}: {error.strerror or error}") from error


def _read_warc(path: Path, offset: int, size: int) -> bytes:
    """The body of the record that begins at ``offset``. Raises OSError, CrawlDirError."""
    record, unpack = bytearray(), zlib.decompressobj(31)
    with path.open("rb") as file:
        file.seek(offset)
        try:
            while not unpack.eof and (piece := file.read(_PIECE)):
                record += unpack.decompress(piece)
        except zlib.error as error:
            raise CrawlDirError(f"{path}: no record can be read at {offset}: {error}") from None
    head, _, block = record.partition(b"\r\n\r\n")
    if b"\r\nWARC-Type: resource\r\n" not in head:
        block = block.partition(b"\r\n\r\n")[2]
    return bytes(block[:size])


def _sync_blobs(blobs: Sequence[Path]) -> None:
    for path in blobs:
        sync_file(path)
    sync_folder(blobs[0].parent)


def sync_files(files: Iterable[AppendFile]) -> None:
    for file in files:
        file.sync()
