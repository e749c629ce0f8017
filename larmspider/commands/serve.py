"""scrapy serve: the web pages of a crawl, running or not."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larmspider import options, program
from larmspider.command import LarmCommand, with_crawls_settings
from larmspider.crawl.state import State
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import ConfigError, CrawlDirError, NoCrawlError
from larmspider.files import raise_open_files
from larmspider.formatting import printable

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.status.crawl_view import Source
    from larmspider.web.server import Binding

NOBODY_SIGNS_IN = (
    "there is no token, so no reader can sign in and see the pages of hosts with credentials: set"
    " LARM_WEB_TOKEN"
)


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] [DIR ...]"

    def short_desc(self) -> str:
        return "Serve the web pages of a crawl: overview, hosts, links, search"

    def long_desc(self) -> str:
        return (
            "Serve the web pages of a crawl. With several DIRs, the search has the pages of all;"
            " the other pages show the first one. Nothing is started or written: `larmspider"
            " server` runs and schedules crawls."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--port",
            metavar="N",
            help="listen at this port (default: LARM_WEB_PORT, 6080, or the next free one)",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args and opts.dir is not None:
            raise ConfigError(f"unexpected argument {args[0]!r}: --dir names a directory already")
        if args:
            self.settings.set("LARM_DIR", args[0], priority="cmdline")
        if opts.port is not None:
            self.settings.set("LARM_WEB_PORT", opts.port, priority="cmdline")
        # imported here, 0.3 s: Scrapy imports the modules of all commands for each command
        from larmspider.web.server import Binding

        raise_open_files()
        binding = Binding.from_settings(self.settings)
        asyncio.run(self._serve(binding, args[1:], exact=opts.port is not None))

    async def _serve(self, binding: Binding, further: Sequence[str], *, exact: bool) -> None:
        from larmspider.control.controller import RemoteController
        from larmspider.status.crawl_view import Source
        from larmspider.web.server import Server

        assert self.settings is not None
        base, directory = self.settings, options.crawl_root(self.settings)
        shards = [Path(shard) for shard in options.strings(base, "LARM_SHARDS")]
        paths = [directory, *(Path(name).expanduser().absolute() for name in further)]
        named = options.mapping(base, "LARM_COLLECTIONS")
        names = collection_names(paths, named)
        others = [_other(base, path, names[path]) for path in paths[1:]]
        source = Source(
            directory,
            lambda crawl: with_crawls_settings(base.copy(), crawl),
            RemoteController(lambda: source.directories),
            lambda path: open_crawl(path, shards, base),
            names[directory] if others else "",
            others,
        )
        for one in source.all:
            if one.run_state.state is State.NONE or (others and not one.exists()):
                raise NoCrawlError(one.run_state.sentence)

        def token() -> str:
            # the token of one crawl opens no other
            return binding.token or ("" if others else _token(source))

        if source.is_private and not (token() or binding.open_paths):
            raise ConfigError(
                "a crawl had credentials, so the pages ask for a token, and the token of one crawl"
                " does not open several: set LARM_WEB_TOKEN"
                if others
                else f"the crawl in {directory} had credentials, so its pages ask for a token, and"
                f" there is none that this user can read ({directory}/web.token): set"
                " LARM_WEB_TOKEN"
            )
        # nothing is written to LARM_DIR: a crawl may still claim an empty directory, and brings its
        # token then
        guard = binding.guard(token, source)
        app = binding.app(source, guard, ahead=True)
        server = await Server.start(app, binding.address, binding.port, exact=exact)
        stopped = stopped_by_signals()
        for one in source.all:
            print(f"{one.name}: {one.run_state.sentence}" if others else one.run_state.sentence)
        unserved = [
            f"LARM_COLLECTIONS: {path} is not one of the served directories"
            for path in named
            if not any(_is_same(path, served) for served in paths)
        ]
        keyless = source.is_private and not (token() or binding.readers.groups)
        stale = []
        with suppress(CrawlDirError):
            stale = [line for one in source.all for line in one.stale_link_texts]
            stale += [line for one in source.all for line in one.unknown_rights]
        for line in (*unserved, *[NOBODY_SIGNS_IN] * keyless, *source.unsearched, *stale):
            print(f"{program.NAME} serve: {printable(line)}", file=sys.stderr)
        print(server.url, flush=True)
        await stopped.wait()
        await server.stop()


def _other(base: BaseSettings, path: Path, name: str) -> Source:
    """A second crawl that is searched together with the first one."""
    from larmspider.status.crawl_view import Source

    settings = base.copy()
    settings.set("LARM_DIR", str(path), priority="cmdline")
    return Source(
        path,
        lambda crawl: with_crawls_settings(settings.copy(), crawl),
        opened=lambda path: open_crawl(path, (), settings),
        name=name,
    )


def collection_names(paths: Sequence[Path], named: Mapping[str, Any]) -> dict[Path, str]:
    """The names of crawls by their directories: the names in LARM_COLLECTIONS, else the ends of
    their paths, long enough to differ. Raises ConfigError.

    >>> collection_names([Path("/a/crawl"), Path("/b/crawl")], {"/b/crawl": "Staff"})
    {PosixPath('/a/crawl'): 'crawl', PosixPath('/b/crawl'): 'Staff'}
    """
    from larmspider.web.site import EVERY_INDEX

    all_crawls = f"{', '.join(EVERY_INDEX)}, which mean all crawls"
    expected = f"a name without commas that is none of {all_crawls}"

    def is_reserved(name: str) -> bool:
        return "," in name or name.strip() in EVERY_INDEX  # reserved in the path of _search

    places: dict[str, Path] = {}
    for path in paths:
        place = os.path.realpath(path)
        if place in places:
            other = "" if places[place] == path else f", as {places[place]} too"
            raise ConfigError(f"{path}: the same directory is named twice{other}")
        places[place] = path
    found: dict[Path, str] = {}
    for directory, name in named.items():
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ConfigError(f"LARM_COLLECTIONS: {directory}: expected a name")
        if is_reserved(name):
            raise ConfigError(f"LARM_COLLECTIONS: {directory}: {name.strip()}: expected {expected}")
        for path in paths:
            if _is_same(directory, path):
                found[path] = name.strip()
    rest = [path for path in paths if path not in found]
    for path in rest:
        ends = ("/".join(path.parts[-n:]) for n in range(1, len(path.parts) + 1))
        others = [str(other) for other in rest if other != path]
        found[path] = next(
            (end for end in ends if not any(other.endswith(f"/{end}") for other in others)),
            str(path),
        )
        if is_reserved(found[path]) and len(paths) > 1:
            example = json.dumps({str(path): "Staff"}, ensure_ascii=False)
            raise ConfigError(
                f"{path}: its pages cannot be searched as the collection {found[path]!r}, named for"
                f" the directory: give it {expected}, as in LARM_COLLECTIONS={example}"
            )
    names = [found[path] for path in paths]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two crawls have the name {twice!r}: set LARM_COLLECTIONS")
    return {path: found[path] for path in paths}


def _is_same(named: str, path: Path) -> bool:
    """Whether a directory of LARM_COLLECTIONS is ``path``, however it is spelt."""
    return os.path.realpath(Path(named).expanduser()) == os.path.realpath(path)


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
    """The token of the crawl or of its first worker, or ""."""
    from larmspider.status.crawl_workers import read_server_file
    from larmspider.web.auth import found_token

    with suppress(CrawlDirError):
        for directory in (source.path, *source.directories):
            noted = read_server_file(directory)
            if found := noted[1] if noted else found_token(directory):
                return found
    return ""
