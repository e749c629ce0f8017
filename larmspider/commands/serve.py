"""scrapy serve: the web pages of a crawl, running or not."""

from __future__ import annotations

import argparse
import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.command import LarmCommand, with_crawls_settings
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import raise_open_files

if TYPE_CHECKING:
    from larmspider.status.crawl_view import Source
    from larmspider.web.server import Binding


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Serve the web pages of a crawl: overview, hosts, links, search"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--port",
            metavar="N",
            help="setting LARM_WEB_PORT (default 6080, or the next free port)",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}")
        if opts.port is not None:
            self.settings.set("LARM_WEB_PORT", opts.port, priority="cmdline")
        # imported here, 0.3 s: Scrapy imports the modules of all commands for each command
        from larmspider.web.server import Binding

        raise_open_files()
        asyncio.run(self._serve(Binding.from_settings(self.settings)))

    async def _serve(self, binding: Binding) -> None:
        from larmspider.control.controller import RemoteController
        from larmspider.status.crawl_view import Source
        from larmspider.web.server import Server

        assert self.settings is not None
        base, directory = self.settings, options.crawl_root(self.settings)
        shards = [Path(shard) for shard in options.strings(base, "LARM_SHARDS")]
        source = Source(
            directory,
            lambda crawl: with_crawls_settings(base.copy(), crawl),
            RemoteController(lambda: source.directories),
            lambda path: open_crawl(path, shards, base),
        )
        if source.is_private and not (binding.token or _token(source) or binding.open_paths):
            raise ConfigError(
                f"the crawl in {directory} had credentials, so its pages ask for a token, and there"
                f" is none that this user can read ({directory}/web.token): set LARM_WEB_TOKEN"
            )
        # nothing is written to LARM_DIR: a crawl may still claim an empty directory, and brings its
        # token then
        guard = binding.guard(lambda: binding.token or _token(source), lambda: source.is_private)
        app = binding.app(source, guard, ahead=True)
        server = await Server.start(app, binding.address, binding.port)
        stopped = stopped_by_signals()
        print(source.run_state.sentence)
        print(server.url, flush=True)
        await stopped.wait()
        await server.stop()


def stopped_by_signals() -> asyncio.Event:
    """An event that the first SIGINT or SIGTERM sets; a second one ends the process at once.
    asyncio's own handlers are gone when the loop closes, and a second signal would print a
    traceback."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stopped.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return stopped


def _token(source: Source) -> str:
    """The token of the crawl or of its first worker; "" if there is none."""
    from larmspider.status.crawl_workers import read_server_file
    from larmspider.web.auth import found_token

    with suppress(CrawlDirError):
        for directory in (source.path, *source.directories):
            noted = read_server_file(directory)
            if found := noted[1] if noted else found_token(directory):
                return found
    return ""
