"""Stores that fail, for a settings module to put into the chain, and such a module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scrapy.exceptions import DropItem

from larmspider.errors import CrawlDirError
from larmspider.pipelines.link_log import LinkLogPipeline as LinkLog
from larmspider.pipelines.search_index import SearchIndexPipeline


class Raises:
    """Raises on pages whose URL has "bad" in it."""

    def process_item(self, item: Any) -> Any:
        if "bad" in item.url:
            raise ValueError("no bad pages here")
        return item


class Drops:
    """Drops them."""

    def process_item(self, item: Any) -> Any:
        if "bad" in item.url:
            raise DropItem("no bad pages here")
        return item


class UncommittedIndex(SearchIndexPipeline):
    """Commits twice, then the disk is gone."""

    commits = 0

    async def commit(self) -> None:
        self.commits += 1
        if self.commits > 2:
            with self._failure_kept():
                raise CrawlDirError(f"{self.directory}: cannot write the index: no such device")
        await super().commit()


class LinkLogPipeline(LinkLog):
    """Has the name of the one in the chain."""


def settings_with(folder: Path, pipelines: dict[str, int | None]) -> str:
    """Writes a settings module with these pipelines of ours besides; its name."""
    named = {
        name if "." in name else f"{__name__}.{name}": order for name, order in pipelines.items()
    }
    (folder / "failing_settings.py").write_text(
        "from larmspider.settings import *\n"
        "from larmspider.settings import ITEM_PIPELINES\n"
        f"ITEM_PIPELINES = {{**ITEM_PIPELINES, **{named!r}}}\n"
    )
    return "failing_settings"
