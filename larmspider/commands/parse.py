"""scrapy parse URL: Scrapy's command, without touching LARM_DIR; shows the extracted page, with the
fields of LARM_FIELDS."""

from __future__ import annotations

import argparse

from scrapy.commands.parse import Command as ParseCommand
from scrapy.exceptions import UsageError

from larmspider import options
from larmspider.command import leave_no_crawl
from larmspider.errors import ConfigError
from larmspider.extraction.processes.process import Readers


class Command(ParseCommand):
    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        leave_no_crawl(self.settings, *args[:1], filters=True)
        try:
            options.check_names(self.settings)
            Readers.from_settings(self.settings).close()
        except ConfigError as error:
            raise UsageError(str(error), print_help=False) from None

    def set_spidercls(self, url: str, opts: argparse.Namespace) -> None:
        """Use the only spider of the project, whatever the URL is."""
        assert self.crawler_process is not None
        spiders = self.crawler_process.spider_loader.list()
        if not opts.spider and len(spiders) == 1:
            opts.spider = spiders[0]
        super().set_spidercls(url, opts)
