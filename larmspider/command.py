"""LarmCommand, the base of commands that read a crawl; an error is one line and an exit status.

Exit status 0: done; 1: the crawl's directory lacks the wanted data, or a file of it is damaged;
2: bad arguments, or a directory without a crawl; 75: the search engine is away.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from larmspider import options, program
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import (
    ConfigError,
    CrawlDirError,
    InvalidURL,
    LarmspiderError,
    QueryError,
    SearchAwayError,
)
from larmspider.formatting import doing, json_escaped, printable
from larmspider.frontier.overrides import NOTE, Overrides
from larmspider.workdir.access import follow_mode
from larmspider.workdir.frames import damages

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


_OURS = "larmspider."
_STOCK = {
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "DOWNLOADER": "scrapy.core.downloader.Downloader",
    "LARM_FILTER_LOGS": False,
}


def leave_no_crawl(settings: BaseSettings, url: str = "", *, filters: bool = False) -> None:
    """Settings of fetch, parse, shell and view: Scrapy's own scheduler and middlewares, none of our
    extensions and stores, so that LARM_DIR is not touched. ``filters``: keep the spider
    middlewares.

    ``url`` serves as the seed if the spider needs one. Raises UsageError.
    """
    try:
        options.settle_scrapys(settings)
    except ConfigError as error:
        raise UsageError(str(error), print_help=False) from None
    for name, value in _STOCK.items():
        settings.set(name, value, priority="cmdline")
    for name in ("EXTENSIONS", "ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
        if name != "SPIDER_MIDDLEWARES" or not filters:
            settings.set(name, _without_ours(settings, name), priority="cmdline")
    if url:
        settings.set("LARM_START", url, priority="cmdline")


def _without_ours(settings: BaseSettings, name: str) -> dict[str, int]:
    """The user's components, and Scrapy's own components that our settings switch off."""
    return {
        path: order
        for path, order in settings.getdict(name).items()
        if order is not None and not str(path).startswith(_OURS)
    }


_SAY_SECS = 5.0
_DRAW_SECS = 0.1
_NEGATIVE = re.compile(r"-[0-9.]+")
_WHERE = ("LARM_DIR", "LARM_SHARDS", "LARM_WORKER")


class LarmCommand(ScrapyCommand):
    """A command that reads a crawl and prints, as text or with --json as JSON."""

    requires_project = False
    requires_crawler_process = False
    of_a_crawl = True
    """Whether the command reads a crawl's directory, so that it has ``--dir`` and ``--shard``."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print JSON, one object")
        if not self.of_a_crawl:
            parser.set_defaults(dir=None, shard=[])
            return
        parser.add_argument(
            "--dir", metavar="DIR", help="the crawl's directory (setting LARM_DIR, default crawl)"
        )
        parser.add_argument(
            "--shard",
            metavar="DIR",
            action="append",
            default=[],
            help="another directory of the same crawl, such as one of another machine; repeatable",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")  # a title that this terminal cannot show
        if opts.dir is not None:
            self.settings.set("LARM_DIR", opts.dir, priority="cmdline")
        if opts.shard:
            self.settings.set("LARM_SHARDS", opts.shard, priority="cmdline")
        try:
            options.check_names(self.settings)
            self._refuse_unknown_options(args)
            self.answer([arg for arg in args if arg != "--"], opts)
            if damages:  # each was logged
                self.exitcode = 1
        except LarmspiderError as error:
            self.fail(error)
            sys.stdout.flush()
        except KeyboardInterrupt:
            self.fail(CrawlDirError(self.stopped))
        except BrokenPipeError:
            sys.stderr.close()  # `| head` has all it wanted
        except OSError as error:
            self.exitcode = 1
            print(f"{program.NAME}: {error}", file=sys.stderr)

    stopped = "stopped"
    """Printed after Ctrl-C."""

    words_may_begin_with_a_dash = False
    """Whether ``-word`` is an argument and not an option, as in a query."""

    def _refuse_unknown_options(self, args: list[str]) -> None:
        """Scrapy passes unknown options as arguments. Raise ConfigError for them; arguments after
        ``--`` are not options."""
        for arg in args[: args.index("--") if "--" in args else None]:
            word = self.words_may_begin_with_a_dash and not arg.startswith("--") and len(arg) > 2
            if arg.startswith("-") and arg != "-" and not word and not _NEGATIVE.fullmatch(arg):
                raise ConfigError(
                    f"unknown option {arg} (see --help; write -- before words that begin with -)"
                )

    @abstractmethod
    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the answer. Raises LarmspiderError if there is no answer."""

    def open_crawl(self) -> CrawlDir:
        """The crawl in LARM_DIR. Settings and rule files become the crawl's, unless the
        command line sets them."""
        assert self.settings is not None
        shards = [Path(shard) for shard in options.strings(self.settings, "LARM_SHARDS")]
        crawl = open_crawl(options.crawl_root(self.settings), shards, self.settings)
        with_crawls_settings(self.settings, crawl)
        follow_mode(crawl.manifest, *crawl.places)  # the mode of a report, or an index of the logs
        return crawl

    def fail(self, error: LarmspiderError) -> None:
        self.exitcode = 2 if isinstance(error, (ConfigError, InvalidURL, QueryError)) else 1
        if isinstance(error, SearchAwayError):
            self.exitcode = 75
        name, text = type(self).__module__.rsplit(".", 1)[-1], printable(str(error))
        print(f"{program.NAME} {name}: {text}", file=sys.stderr)


def with_crawls_settings(settings: BaseSettings, crawl: CrawlDir) -> BaseSettings:
    """``settings``, changed to the crawl's settings, except where the command line sets another
    value."""
    copies = {name: str(path) for name, path in crawl.rules.items()}
    for name, value in (crawl.settings | copies).items():
        if name not in _WHERE and not name.startswith("LARM_WEB"):
            settings.set(name, value, priority="project")
    with crawl.frontier() as frontier:
        orders = Overrides() if frontier is None else Overrides.unpack(frontier.note(NOTE))
    if orders.restrict and orders.instead_of == options.text(settings, "LARM_RESTRICT"):
        settings.set("LARM_RESTRICT", orders.restrict, priority="cmdline")
    return settings


def one_argument(args: list[str], what: str) -> str:
    """The only argument. Raises UsageError."""
    if len(args) != 1:
        raise UsageError(f"expected exactly one {what}, got {len(args)}", print_help=False)
    return args[0]


def print_json(value: Any) -> None:
    """Print ``value`` as JSON. The output is ASCII if the encoding of standard output lacks a
    character."""
    text = json_escaped(json.dumps(value, ensure_ascii=False, indent=1))
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(value, indent=1)
    print(text)


@contextmanager
def progress(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """A function that shows progress on standard error: one changing line on a terminal, else a
    line every 5 s. Its arguments: the part, the amount done, the whole amount."""
    said = time.monotonic()
    if sys.stderr.isatty():
        with doing(what) as draw:

            def show(_: str, done: int, total: int) -> None:
                nonlocal said
                if (now := time.monotonic()) >= said + _DRAW_SECS:
                    said = now
                    draw(done, max(1, total))

            yield show
        return

    def say(part: str, done: int, total: int) -> None:
        nonlocal said
        if (now := time.monotonic()) >= said + _SAY_SECS:
            said = now
            share = 100 * done // max(1, total)
            print(f"{what}: {part}, {share}%", file=sys.stderr, flush=True)

    yield say
