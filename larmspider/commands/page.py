"""scrapy page URL: the stored body of a page, or of a part of it, to standard output."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from larmspider import options
from larmspider.command import LarmCommand, one_argument, print_json
from larmspider.crawl.reader import StoredPage
from larmspider.errors import CrawlDirError
from larmspider.extraction.process import ExtractionRefused, Readers
from larmspider.items import split_part
from larmspider.urls.normalizer import forms_from_settings


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] URL"

    def short_desc(self) -> str:
        return "Print the stored body of a page (--json: its record in store.log)"

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        url = one_argument(args, "URL")
        crawl = self.open_crawl()
        canonical, exact = forms_from_settings(self.settings)(url)
        page = crawl.stored(exact)
        if page is None and (page := crawl.stored(canonical)) is not None:
            print(
                f"{url} is not known to the crawl; this is {page.url}, of the same canonical form",
                file=sys.stderr,
            )
        if page is None:
            raise CrawlDirError(
                f"{url} is not stored in {options.crawl_root(self.settings)}"
                f" (looked up as {exact}); 'scrapy explain URL' says why"
            )
        if opts.json:
            print_json(asdict(page))
        else:
            sys.stdout.flush()
            body = crawl.body(page)
            if part := split_part(url)[1]:
                body = self._part(page, body, part)
            sys.stdout.buffer.write(body)
            sys.stdout.buffer.flush()

    def _part(self, page: StoredPage, body: bytes, part: str) -> bytes:
        """Raises CrawlDirError for a part that is not there or cannot be read."""
        assert self.settings is not None
        with Readers.from_settings(self.settings) as readers:
            try:
                return readers.documents.member(page.mime, body, page.url, part)
            except ExtractionRefused as refused:
                raise CrawlDirError(f"{page.url}: {refused}") from None
