"""scrapy parse URL: Scrapy's command, without touching LARM_DIR."""

from __future__ import annotations

import argparse

from scrapy.commands.parse import Command as ParseCommand

from larmspider.command import leave_no_crawl


class Command(ParseCommand):
    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        leave_no_crawl(self.settings, *args[:1], filters=True)
