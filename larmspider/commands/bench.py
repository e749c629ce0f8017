"""scrapy bench: Scrapy's command, without touching LARM_DIR and at Scrapy's own pace."""

from __future__ import annotations

import argparse

from scrapy.commands.bench import Command as BenchCommand

from larmspider.command import leave_no_crawl

_PACE = {
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "INFO",
    "ROBOTSTXT_OBEY": False,
    **BenchCommand.default_settings,
}


class Command(BenchCommand):
    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        for name, value in _PACE.items():  # settings of the command line come after
            self.settings.set(name, value, priority="cmdline")
        super().process_options(args, opts)
        leave_no_crawl(self.settings)
