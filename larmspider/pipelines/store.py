"""The storage chain: each store is an item pipeline, one file, and can be taken out in settings.py.

class TitleLog(Store):
    needs = ("url", "title")
    files = ("titles.log",)

    def write(self, page: Page) -> None:
        self.log.append(page.url, page.title)

    def flush(self) -> bytes:                        # called at each checkpoint
        return self.log.flush()

    def recover(self, position: bytes) -> None:      # called at the start
        truncate_file(self.log_path, position)
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem
from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.misc import load_object

from larmspider import options, signals, stats
from larmspider.errors import ConfigError, InvalidURL, MissingFieldError
from larmspider.items import FailedFetch, Kept, Link, Page, Removed, Requisite
from larmspider.requests import MAX_NUMBER
from larmspider.urls.canonical import Canonicalizer, Forms
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)


MANY_LINKS = 10_000
"""After a page with more links each store yields to the crawl: 100,000 links take a store 0.1 s."""
_MAX_SECS = 253_402_300_800
"""The end of the year 9999, in seconds since the epoch."""


class Store(ABC):
    """Base of all stores. A subclass names the fields that it needs, and writes a Page. Other items
    (dict, scrapy.Item, attrs, dataclass, pydantic) are read through itemadapter. A missing field
    gets Page's default. If a field in ``needs`` is missing, this store skips and counts the item;
    later stores and feeds get it. ``write`` raises DropItem to refuse a page; later stores do not
    get it.
    """

    needs: ClassVar[tuple[str, ...]] = ("url",)
    files: ClassVar[tuple[str, ...]] = ()
    """The store's files and folders in LARM_DIR, as names or patterns with * and ?: what ``-a
    fresh=yes`` deletes."""
    _forms: Callable[[str], Forms] = Canonicalizer().forms
    _counters: StatsCollector | None = None
    keeps_requisites = False
    """Whether `requisite` does something, so that LARM_REQUISITES has an effect."""
    refreshing = False
    """Whether pages may have been stored before, as in a run with ``refresh=``."""
    _told: frozenset[str] = frozenset()
    """Types of items that passed and have a line in the log."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        store = cls.build(crawler)
        store._forms = forms_from_settings(crawler.settings)
        store._counters = crawler.stats
        store.refreshing = bool(options.text(crawler.settings, "LARM_REFRESH").strip())
        crawler.signals.connect(store.recovered, signal=signals.recovered)
        crawler.signals.connect(store.checkpoint, signal=signals.checkpoint)
        crawler.signals.connect(store.commit, signal=signals.commit)
        crawler.signals.connect(store.committed, signal=signals.committed)
        return store

    @classmethod
    @abstractmethod
    def build(cls, crawler: Crawler) -> Self:
        """Make the store from the settings, and check them. Opens no file."""

    def open_spider(self) -> Coroutine[Any, Any, None] | None:
        """Open files."""
        return None

    def close_spider(self) -> Awaitable[None] | None:
        """Write buffers and close."""
        return None

    @abstractmethod
    def write(self, page: Page) -> None:
        """Store one page."""

    def write_failure(self, failed: FailedFetch) -> None:  # noqa: B027 - most stores ignore these
        """Record a URL without a response."""

    def kept(self, kept: Kept) -> None:  # noqa: B027 - nothing that is stored has changed
        """Record a visit after which the stored page stays unchanged."""

    def remove(self, removed: Removed) -> None:  # noqa: B027 - a store may have nothing of it
        """Let a page no longer count; data that was written for it may stay."""

    def requisite(self, page: Page) -> None:  # noqa: B027 - most stores are for pages
        """Store an image, a style or a script of a page. Called if ``keeps_requisites`` is True."""

    def flush(self) -> bytes:
        """Hand all written data to the operating system, and return the position by which
        ``recover`` drops later data. Also called after close_spider()."""
        return b""

    def recover(self, position: bytes) -> None:  # noqa: B027 - a store may have nothing to drop
        """Drop data that was written after ``position`` (b"" is the beginning). Called before
        open_spider(), and only with a frontier that remembers positions."""

    def commit(self) -> Awaitable[None] | None:
        """Make the position of the last flush() durable, while pages may be written; may be a
        coroutine."""
        return None

    def committed(self, positions: Mapping[str, bytes]) -> None:  # noqa: B027 - few need to know
        """The checkpoint with these positions, of all stores, is durable. Also called after
        close_spider()."""

    def recovered(self, positions: Mapping[str, bytes]) -> None:
        self.recover(positions.get(type(self).__name__, b""))

    def checkpoint(self) -> tuple[str, bytes]:
        return type(self).__name__, self.flush()

    def process_item(self, item: Any) -> Any:
        try:
            self._store(item)
        except (MissingFieldError, InvalidURL) as error:
            self._passed(item, error)
        except DropItem as error:
            raise self._refused(item, error) from None
        if isinstance(item, Page) and len(item.links) > MANY_LINKS:
            return _after_a_turn(item)
        return item

    def _store(self, item: Any) -> None:
        if isinstance(item, Page):
            self.write(item)
        elif isinstance(item, FailedFetch):
            self.write_failure(item)
        elif isinstance(item, Kept):
            self.kept(item)
        elif isinstance(item, Removed):
            self.remove(item)
        elif isinstance(item, Requisite):
            if not item.failed:
                self.requisite(item.page)
        else:
            self.write(self._foreign(item))

    def _foreign(self, item: Any) -> Page:
        """Raises MissingFieldError, InvalidURL."""
        page = as_page(item, self.needs)
        normalized, exact = self._forms(page.url)
        page.normalized, page.exact = page.normalized or normalized, page.exact or exact
        page.url, page.from_page = without_userinfo(page.url), without_userinfo(page.from_page)
        page.fetched = page.fetched or time.time()
        for link in page.links:
            if link.normalized is None:
                with suppress(InvalidURL):
                    link.normalized, link.exact = self._forms(link.url)
        return page

    def _passed(self, item: Any, error: Exception) -> None:
        """Count an item that is not for this store, and log the first of its type."""
        name, kind = type(self).__name__, type(item).__name__
        self._count(stats.STORES_PASSED)
        if kind not in self._told:
            self._told |= {kind}
            logger.warning(
                "%s does not store %s: %s. The item goes on to the next store; more of type %s are"
                " only counted (%s)",
                *(name, _url_of(item), error, kind, stats.STORES_PASSED.format(store=name)),
            )

    def _count(self, key: str) -> None:
        if self._counters is not None:
            self._counters.inc_value(key.format(store=type(self).__name__))

    def _refused(self, item: Any, error: Exception) -> DropItem:
        """Count and log the refusal, and return the DropItem for Scrapy."""
        self._count(stats.STORES_REFUSED)
        message = f"{type(self).__name__} refuses {_url_of(item)}: {error}"
        logger.warning("%s", message)
        return DropItem(message, log_level="DEBUG")


def wants_requisites(settings: BaseSettings) -> bool:
    """LARM_REQUISITES. Raises ConfigError if no store keeps them."""
    if not options.boolean(settings, "LARM_REQUISITES"):
        return False
    stores = settings.get_component_priority_dict_with_base("ITEM_PIPELINES")
    if not any(getattr(load_object(store), "keeps_requisites", False) for store in stores):
        raise ConfigError(
            "LARM_REQUISITES=yes: expected larmspider.plugins.warc.pipeline.WarcPipeline in"
            " ITEM_PIPELINES, or another store that keeps them (docs/warc.md#requisites)"
        )
    return True


def _url_of(item: Any) -> str:
    url = ItemAdapter(item).get("url")
    if not isinstance(url, str):
        return "an item without a URL"
    return f"{without_userinfo(url)!a}"[1:-1][:300]


async def _after_a_turn(item: Page) -> Page:
    """Yield to the crawl before the next store gets the page."""
    await asyncio.sleep(0)
    return item


def _types_of(empty: Page | Link) -> dict[str, type]:
    """The types of each field; None stands for an unknown string."""
    values = ((field.name, getattr(empty, field.name)) for field in fields(empty))
    return {
        name: str if value is None else type(value)
        for name, value in values
        if name not in ("headers", "stored_at", "body_file", "file_bytes", "requisites")
    }


_FIELD_TYPES, _LINK_TYPES = _types_of(Page("")), _types_of(Link(""))


def as_page(item: Any, needs: Iterable[str]) -> Page:
    """A foreign item as a Page. Raises MissingFieldError if it lacks a field of ``needs``."""
    found = {name: value for name, value in ItemAdapter(item).items() if value is not None}
    for name in needs:
        if name not in found:
            raise MissingFieldError(f"the item of type {type(item).__name__} has no field {name!r}")
    values = {name: value for name, value in found.items() if name in _FIELD_TYPES}
    if isinstance(values.get("body"), str):
        values["body"] = values["body"].encode()
    for name, value in values.items():
        values[name] = _as_field(name, value, _FIELD_TYPES[name])
    values["links"] = [_as_link(link) for link in values.get("links", ())]
    return Page(**values)


def _as_field(name: str, value: Any, wanted: type, what: str = "field") -> Any:
    """``value``, an integer as float where that is wanted. Raises MissingFieldError for another
    type, and for numbers that are not a depth, status or time."""
    if wanted is float and type(value) is int:
        value = float(min(max(value, -1), _MAX_SECS))
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise MissingFieldError(f"{what} {name!r} is {type(value).__name__}, not {wanted.__name__}")
    if isinstance(value, int | float) and wanted is not bool:
        most = MAX_NUMBER if wanted is int else _MAX_SECS
        if not 0 <= value < most:
            raise MissingFieldError(
                f"{what} {name!r} is {value!r:.20}, not a number from 0 to {most}"
            )
    return value


def _as_link(link: Any) -> Link:
    if isinstance(link, Link):
        return link
    if isinstance(link, str):
        return Link(link)
    if isinstance(link, Mapping) and link.get("url") is not None:
        values = {name: value for name, value in link.items() if value is not None}
        return Link(
            **{
                name: _as_field(name, values[name], wanted, "a link's")
                for name, wanted in _LINK_TYPES.items()
                if name in values
            }
        )
    raise MissingFieldError(
        f"a link is {type(link).__name__}, not a URL, a mapping with 'url' or a Link"
    )


class StorageChain(ItemPipelineManager):
    """ITEM_PROCESSOR; runs any pipeline, coroutine or not.

    Scrapy's own manager makes a coroutine of every result and waits for it. A store returns the
    item at once, so only other results are waited for.
    """

    async def process_item_async(self, item: Any) -> Any:
        if self._mw_methods_requiring_spider:  # pipelines written for older versions of Scrapy
            return await super().process_item_async(item)
        for process in self.methods["process_item"]:
            assert process is not None
            returned = process(item)
            item = returned if returned is item else await ensure_awaitable(returned)
        return item
