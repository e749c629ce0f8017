"""scrapy crawl SPIDER: Scrapy's command with a summary at the end.

Exit status 0: the crawl ended, or was stopped by a signal; 1: it stopped because of an error or a
second signal, or stored nothing; 2: bad arguments or settings, nothing was begun; 75: temporary
failure (other workers have taken over from this one, or Redis or a receiver is away). The summary
is in LOG_FILE too, because scrapyd shows nothing else of a job.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from larmspider import options, plugin, program
from larmspider.errors import ConfigError, LarmspiderError, TemporaryError
from larmspider.formatting import printable
from larmspider.learned.factory import INDEX
from larmspider.program import OWN
from larmspider.quiet_log import LOG_NAME, ON_SCREEN, QuietLog
from larmspider.spiders.intranet import IntranetSpider
from larmspider.status.summary import Summary
from larmspider.urls.file_urls import is_archive
from larmspider.urls.seeds import read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class Command(CrawlCommand):
    word = "crawl"
    crawler: Crawler | None = None
    """The crawler that ran."""
    log: QuietLog | None = None
    """The log of ``larmspider crawl``; None if the user wants the log on the screen."""

    def short_desc(self) -> str:
        return "Crawl: fetch, store and index pages from seeds (spider: intranet)"

    def long_desc(self) -> str:
        return (
            "Run a spider. The spider 'intranet' takes -a start=URL (several in quotes, or @FILE),"
            " -a restrict=REGEX, -a exclude=REGEX (several in quotes), -a hostresolver=FILE,"
            " -a threads=N, -a fresh=yes|force, -a refresh=due|watch|all|index|REGEX."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--file",
            metavar="FILE",
            help="a crawl file (docs/server.md), such as one of larmspider server; what -a and -s"
            " say comes first",
        )
        parser.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            help=f"larmspider: the log on the screen, not in LARM_DIR/{LOG_NAME}",
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        try:
            if opts.file is not None:
                from larmspider.server.runs.run_file import settings_of_run

                for name, value in settings_of_run(Path(opts.file)).items():
                    self.settings.set(name, value, "project")
            super().process_options(args, opts)
            options.settle_scrapys(self.settings, "LOG_")
            level = options.log_level(self.settings)
        except ConfigError as refused:
            print(f"{program.NAME} {self.word}: {refused}", file=sys.stderr)
            raise SystemExit(2) from None  # before the log is opened at that level
        shows = opts.verbose or opts.nolog or opts.loglevel or opts.logfile
        if program.NAME == OWN and not (shows or self.settings.get("LOG_FILE") or self._is_set()):
            self._log_into_file(level)
        self.settings.set("LOG_LEVEL", level, "cmdline")

    def _is_set(self) -> bool:
        """Whether ``-s`` gives the level of the log."""
        assert self.settings is not None
        return self.settings.getpriority("LOG_LEVEL") == SETTINGS_PRIORITIES["cmdline"]

    def _log_into_file(self, level: str | int) -> None:
        assert self.settings is not None
        if self.settings.getpriority("LARM_PROGRESS") == SETTINGS_PRIORITIES["project"]:
            self.settings.set("LARM_PROGRESS", "line", "cmdline")
        self.settings.set("LOG_INSTALL_ROOT_HANDLER", False, "cmdline")
        self.log = QuietLog(options.larm_dir(self.settings), level)
        self.log.install()

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"expected exactly one spider, such as: {program.NAME} crawl intranet")
        assert self.crawler_process is not None
        assert self.settings is not None
        try:
            options.settle_scrapys(self.settings)
            plugin.check(self.settings.getdict("EXTENSIONS"))
            crawler = self.crawler = self._create_crawler(args[0])
            is_push = options.boolean(self.settings, "LARM_PUSH")
            if crawler.spidercls is IntranetSpider and is_push:
                from larmspider.spiders.push import PushSpider

                crawler = self.crawler = self._create_crawler(PushSpider)
            elif crawler.spidercls is IntranetSpider:
                start = opts.spargs.get("start") or self.settings.get("LARM_START") or ""
                if any(map(is_archive, read_seeds(start))):
                    archives = plugin.load("warc.spider")
                    paths = archives.archives_of(start, self.settings)
                    crawler = self.crawler = self._create_crawler(archives.ArchiveSpider)
                    opts.spargs.pop("start", None)
                    opts.spargs["paths"] = paths
        except ConfigError as refused:
            self.complain(str(refused))
            self.exitcode = 2
            return
        except KeyError as unknown:
            self.complain(unknown.args[0])
            self.exitcode = 2
            return
        if opts.spargs.get("refresh", self.settings.get("LARM_REFRESH")) == INDEX:
            self._reindex(opts)
            return
        # a mapped file that a full disk cannot hold, or a library that crashes, ends the process
        faulthandler.enable(all_threads=False)
        task = self.crawler_process.crawl(crawler, **opts.spargs)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else nohup
            signal.signal(signal.SIGHUP, _hang_up)
        self.crawler_process.start()
        error = _error_of(task)
        if isinstance(error, LarmspiderError):
            self.complain(str(error))
            temporary = 75 if isinstance(error, TemporaryError) else 1
            self.exitcode = 2 if isinstance(error, ConfigError) else temporary
        elif error is not None or self.crawler_process.bootstrap_failed:
            logger.critical("The crawl broke off", exc_info=error)
            self.exitcode = 1
        else:
            summary = Summary.of(crawler)
            self._say(summary)
            if summary.complaint:
                self.complain(summary.complaint)
            self.exitcode = summary.exit_status
            for line in getattr(crawler.spider, "refused", ()):
                self.complain(line)
            for damage in getattr(crawler.spider, "damages", ()):
                self.complain(damage)
                self.exitcode = self.exitcode or 1

    def _reindex(self, opts: argparse.Namespace) -> None:
        """A crawl that makes no request: scrapy reindex."""
        from larmspider.commands.reindex import Command as Reindex

        assert self.settings is not None
        if fresh := opts.spargs.get("fresh"):
            self.complain(f"refresh={INDEX} and fresh={fresh}: expected one of them")
            self.exitcode = 2
            return
        command = Reindex()
        command.settings = self.settings
        command.run([], argparse.Namespace(dir=None, shard=[], json=False))
        self.exitcode = command.exitcode

    def _say(self, summary: Summary) -> None:
        assert self.settings is not None
        if self.log is not None or self.settings.get("LOG_FILE"):
            for line in summary.lines():
                logger.info("%s", line)
        try:
            print("\n".join(map(printable, summary.lines())), flush=True)
        except OSError:  # a closed terminal, or scrapyd that was stopped with its jobs
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def complain(self, message: str) -> None:
        assert self.settings is not None
        print(f"{program.NAME} {self.word}: {printable(message)}", file=sys.stderr)
        if self.log is not None or self.settings.get("LOG_FILE"):
            logger.critical("%s", message, extra=ON_SCREEN)


def _hang_up(_number: int, _frame: FrameType | None) -> None:
    """A closed terminal stops the crawl as SIGTERM does, once, although the shell sends SIGHUP
    too."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.raise_signal(signal.SIGTERM)


def _error_of(task: Awaitable[None]) -> BaseException | None:
    """The exception that ended the crawl; once it is retrieved, asyncio does not print it."""
    if isinstance(task, asyncio.Task) and task.done() and not task.cancelled():
        return task.exception()
    return None
