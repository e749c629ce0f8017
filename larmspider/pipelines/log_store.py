"""A store that is one file of records: opened, flushed, truncated and closed as the others.

class TitleLog(LogStore):
    file_name = "titles.log"
    files = (file_name,)
    columns = ("url", "title")

    def write(self, page: Page) -> None:
        self.log.append(page.url, page.title)
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from larmspider import options
from larmspider.pipelines.records import RecordLog, truncate_file
from larmspider.pipelines.store import Store

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class LogStore(Store):
    """Writes ``file_name`` in LARM_DIR; its position is the length of the file."""

    file_name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._log: RecordLog | None = None

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        return cls(options.larm_dir(crawler.settings))

    @property
    def log(self) -> RecordLog:
        """Open from open_spider() on."""
        assert self._log is not None
        return self._log

    def open_spider(self) -> None:
        options.writable_dir(self.directory)
        self._log = RecordLog(self.directory / self.file_name, self.columns)

    def recover(self, position: bytes) -> None:
        truncate_file(self.directory / self.file_name, position)

    def flush(self) -> bytes:
        return b"" if self._log is None else self._log.flush()

    async def commit(self) -> None:
        if self._log is not None:
            await asyncio.to_thread(self._log.sync)

    def close_spider(self) -> None:
        if self._log is not None:
            self._log.close()
