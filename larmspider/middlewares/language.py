"""Language: links of pages in other languages are not followed (LARM_FOLLOW_LANGUAGES).

    LARM_FOLLOW_LANGUAGES = ["de", "en"]     # links of a French page end here

Page by page, since a link does not say the language of its target. A page whose language is
unknown, or with less than 60 characters of text, passes; redirects do, too. Which pages can be
found is another question (LARM_INDEX_LANGUAGES; pipelines/search_index.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Self

from scrapy.exceptions import NotConfigured

from larmspider.extraction.texts.language import is_in_another, languages_in
from larmspider.items import REDIRECT, Link, Page
from larmspider.middlewares.url_filter import UrlFilter

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from larmspider.middlewares.filter_middleware import FilterMiddleware


class LanguageFilter(UrlFilter):
    """Rejects the links of pages that are in none of ``languages``, if any are set."""

    name = "language"

    def __init__(self, languages: Collection[str] = ()) -> None:
        self.languages = frozenset(languages)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls(languages_in(settings, "LARM_FOLLOW_LANGUAGES"))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FilterMiddleware:
        if not languages_in(crawler.settings, "LARM_FOLLOW_LANGUAGES"):
            raise NotConfigured
        return super().from_crawler(crawler)

    def reject_link(self, link: Link, page: Page) -> str | None:
        return self.reject_links([link], page)[0]

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        reason = None
        if self.languages and is_in_another(page, self.languages):
            reason = f"the page is in {page.language} (LARM_FOLLOW_LANGUAGES)"
        return [None if link.type == REDIRECT else reason for link in links]
