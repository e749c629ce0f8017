"""The storage chain: each store is an item pipeline, one file, and can be taken out in settings.py.

class TitleLog(Store):
    needs = ("url", "title")

    def write(self, page: Page) -> None:
        self.log.append(page.url, page.title)

    def flush(self) -> None:          # asked at each checkpoint
        self.log.flush()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem

from larmspider import signals
from larmspider.errors import MissingFieldError
from larmspider.items import FailedFetch, Link, Page

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

_PAGE_FIELDS = frozenset(field.name for field in fields(Page))
_LINK_FIELDS = frozenset(field.name for field in fields(Link))


class Store(ABC):
    """Base of all stores. A subclass names the fields it needs and writes a Page.

    Items of other kinds (dict, scrapy.Item, attrs, dataclass, pydantic) are read through
    itemadapter: a field the item lacks takes Page's default, unless it is in ``needs``, when the
    item is dropped with a message that names the store and the field.
    """

    needs: ClassVar[tuple[str, ...]] = ("url",)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        store = cls.build(crawler)
        crawler.signals.connect(store.flush, signal=signals.checkpoint)
        return store

    @classmethod
    @abstractmethod
    def build(cls, crawler: Crawler) -> Self:
        """The store as the settings describe it; reads and checks them, opens nothing."""

    def open_spider(self) -> None:  # noqa: B027 - a store without files opens nothing
        """Open what is written to."""

    def close_spider(self) -> Awaitable[None] | None:
        """Write what is left and close."""
        return None

    @abstractmethod
    def write(self, page: Page) -> None:
        """Store one page."""

    def write_failure(self, failed: FailedFetch) -> None:  # noqa: B027 - most stores ignore these
        """Note a URL that gave no response."""

    def flush(self) -> Awaitable[None] | None:
        """Put all that was written so far on disk; may be a coroutine."""
        return None

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page):
            self.write(item)
        elif isinstance(item, FailedFetch):
            self.write_failure(item)
        else:
            try:
                page = as_page(item, self.needs)
            except MissingFieldError as error:
                raise DropItem(f"{type(self).__name__}: {error}") from None
            self.write(page)
        return item


def as_page(item: Any, needs: Iterable[str]) -> Page:
    """A foreign item as a Page. Raises MissingFieldError when it lacks one of ``needs``."""
    found = {name: value for name, value in ItemAdapter(item).items() if value is not None}
    for name in needs:
        if name not in found:
            raise MissingFieldError(f"the item of type {type(item).__name__} has no field {name!r}")
    values = {name: value for name, value in found.items() if name in _PAGE_FIELDS}
    if isinstance(values.get("body"), str):
        values["body"] = values["body"].encode()
    values["links"] = [_as_link(link) for link in values.get("links", ())]
    return Page(**values)


def _as_link(link: Any) -> Link:
    if isinstance(link, Link):
        return link
    if isinstance(link, str):
        return Link(link)
    if isinstance(link, Mapping) and "url" in link:
        return Link(**{name: link[name] for name in link if name in _LINK_FIELDS})
    raise MissingFieldError(
        f"a link is {type(link).__name__}, not a URL, a mapping with 'url' or a Link"
    )
