"""scrapy import PATH...: WARC files and mirrors of HTTrack or wget, as pages already fetched."""

from __future__ import annotations

import argparse

from scrapy.exceptions import UsageError

from larmspider import plugin
from larmspider.commands.crawl import Command as CrawlCommand
from larmspider.errors import ConfigError


class Command(CrawlCommand):
    word = "import"

    def syntax(self) -> str:
        return "[options] PATH..."

    def short_desc(self) -> str:
        return "Store the pages of WARC files and of mirrors by HTTrack or wget"

    def long_desc(self) -> str:
        return (
            "Each page goes through filters, extraction and stores as if it were fetched now; no"
            " request is made and no link followed. -a restrict=REGEX, -a hostresolver=FILE,"
            " -a fresh=yes|force as for a crawl; -a scheme=https for folders of wget."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args:
            raise UsageError("expected WARC files, or folders of mirrors by HTTrack or wget")
        opts.spargs["paths"] = args
        try:
            spider = plugin.load("warc.spider").ArchiveSpider
        except ConfigError as refused:
            self.complain(str(refused))
            self.exitcode = 2
            return
        super().run([spider], opts)
