"""larmspider server: holds any number of crawls, runs them when they are due, and serves them."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from larmspider import options
from larmspider.command import LarmCommand, with_crawls_settings
from larmspider.commands.serve import stopped_by_signals
from larmspider.crawl.reader import read_manifest
from larmspider.crawl.state import RunState, State
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import ConfigError
from larmspider.files import raise_open_files
from larmspider.formatting import printable

if TYPE_CHECKING:
    from larmspider.server.home import Home
    from larmspider.status.crawl_view import Source
    from larmspider.web.server import Binding

LOOPBACK = "127.0.0.1"
DEFAULT_HOME = "larmspider-home"


class Command(LarmCommand):
    of_a_crawl = False

    def syntax(self) -> str:
        return "[options] [add DIR [NAME] | token NAME | backup FILE | halt]"

    def short_desc(self) -> str:
        return "Run and schedule any number of crawls, and serve their pages"

    def long_desc(self) -> str:
        return (
            "Run any number of crawls when they are due, and serve their pages, one search and an"
            " API (docs/server.md). `add DIR` takes over the directory of a crawl that was made on"
            " the command line; `token NAME` makes a token; `backup FILE` copies the home,"
            " without its secrets, into one file (docs/backup.md); `halt` ends crawls that run"
            " without their server, and the next server continues them. `larmspider serve DIR`"
            " shows the pages of one directory, and starts nothing."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--home", metavar="DIR", default=DEFAULT_HOME, help=f"default: {DEFAULT_HOME}"
        )
        parser.add_argument(
            "--host", metavar="ADDRESS", help="setting LARM_WEB_ADDRESS (default 127.0.0.1)"
        )
        parser.add_argument(
            "--port",
            metavar="N",
            help="listen at this port (default: LARM_WEB_PORT, 6080, or the next free one)",
        )
        parser.add_argument(
            "--scope", default="operate", help="token: search, read, push, edit or operate"
        )
        parser.add_argument("--user", default="", help="token: the user to whom it belongs")
        parser.add_argument("--days", default="0", help="token: days until its end; 0: no end")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        # imported here, 0.3 s: Scrapy imports the modules of all commands for each command
        from larmspider.server.audit import Audit
        from larmspider.server.home import Home

        match args:
            case []:
                if opts.host is not None:
                    self.settings.set("LARM_WEB_ADDRESS", opts.host, priority="cmdline")
                if opts.port is not None:
                    self.settings.set("LARM_WEB_PORT", opts.port, priority="cmdline")
                home = Home.open(Path(opts.home))
                raise_open_files()
                with home.claim():
                    asyncio.run(self._serve(home, exact=opts.port is not None))
            case ["add", directory, *name] if len(name) < 2:
                home = Home.open(Path(opts.home))
                done = add(home, Path(directory), *name)
                Audit(home.path).note("operator", "", "add", directory, done)
                print(done)
            case ["token", name]:
                from larmspider.server.people.tokens import TokenStore

                if not re.fullmatch(r"\d{1,4}", opts.days):
                    raise ConfigError(f"--days {opts.days}: expected a number of days")
                home = Home.open(Path(opts.home))
                token = TokenStore(home.path).make(name, opts.scope, int(opts.days), opts.user)
                Audit(home.path).note(
                    "operator", "", "make token", f"{name} ({opts.scope})", "done"
                )
                print(token)
            case ["backup", file]:
                from larmspider.commands.backup import backup

                backup(Path(opts.home), Path(file), as_json=opts.json)
            case ["halt"]:
                from larmspider.server.runs.halt import halt

                home = Home.open(Path(opts.home), make=False)
                with home.claim():
                    print(halt(home))
            case _:
                raise ConfigError(
                    f"{' '.join(args)!r}: expected nothing, add DIR [NAME], token NAME,"
                    " backup FILE, or halt"
                )

    async def _serve(self, home: Home, *, exact: bool) -> None:
        from larmspider.server.api.api import Server as Crawls
        from larmspider.server.api.crawls import Crawls as Acts
        from larmspider.server.api.push import Pushes
        from larmspider.server.api.rate import Rate
        from larmspider.server.api.remote import tell
        from larmspider.server.app import build_server
        from larmspider.server.audit import Audit
        from larmspider.server.config.secrets import Secrets
        from larmspider.server.config.server_settings import ServerSettings
        from larmspider.server.people.people import ServerPeople
        from larmspider.server.people.tokens import TokenGuard, TokenStore, first_key
        from larmspider.server.runs import loop
        from larmspider.server.runs.look import Looks
        from larmspider.server.runs.manager import Manager
        from larmspider.server.runs.nodes import Nodes
        from larmspider.server.runs.process import Launcher
        from larmspider.server.runs.watch import Watch
        from larmspider.status.crawl_workers import write_server_file
        from larmspider.web.server import Binding, Server
        from larmspider.web.tries import Tries

        assert self.settings is not None
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        # synonyms, best bets, labels and the log of queries are the home's
        self.settings.set("LARM_DIR", str(home.path), priority="cmdline")
        settings, store = ServerSettings.read(home.path), TokenStore(home.path)
        binding = Binding.from_settings(self.settings, has_tokens=True)
        people = ServerPeople.open(home.path, store.users, settings)
        is_first = not (binding.token or store.can_operate() or people.can_operate)
        guard = TokenGuard(
            store,
            binding.token,
            binding.names,
            closed=True,
            open_paths=(*_OPEN, *binding.open_paths, *(_SEARCH if binding.is_local else ())),
            tries=Tries(binding.wrong_tokens, binding.wrong_tokens_in_all),
            session_secs=settings.sessions.hours * 3_600,
            idle_secs=settings.sessions.idle_minutes * 60,
        )
        secrets, audit = Secrets(home.path, settings.secrets), Audit(home.path)
        launcher = Launcher(home, nodes=Nodes(home, settings, secrets))
        manager = Manager(home, settings, launcher, act=tell)
        watch = Watch(manager, settings.notify or options.text(self.settings, "LARM_NOTIFY"))

        async def opened() -> str:
            """The first token is made: listen where the operator wanted it."""
            if binding.address == LOOPBACK:
                return ""
            try:
                await server.move(binding.address)
            except ConfigError as error:
                logging.error("%s; still listening at %s", error, server.url)
                return ""
            write_server_file(home.path, server.url, "", guard.key, name=SERVER_FILE)
            crawls.ports.append(urlsplit(server.url).port or 0)
            logging.info("Listening at %s", server.url)
            return server.url

        pushes = Pushes(manager, audit)
        crawls = Crawls(
            Acts(manager, audit), store, secrets, Looks(home), people, pushes, watch, opened,
            searches=Rate(settings.search_per_minute),
        )  # fmt: skip
        app = build_server(crawls, guard, binding, self._source_of)
        address = LOOPBACK if is_first else binding.address
        server = await Server.start(app, address, binding.port, exact=exact)
        crawls.ports.append(urlsplit(server.url).port or 0)
        stopped = stopped_by_signals()
        try:
            write_server_file(home.path, server.url, "", guard.key, name=SERVER_FILE)
            self._greet(home, manager.adopt(), binding, is_first=is_first)
            key = f"first?key={first_key(home.path)}" if is_first else ""
            print(f"{server.url}{key}", flush=True)
            ticking = asyncio.create_task(loop.run(manager, watch))
            await stopped.wait()
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking
            await watch.close()
        finally:
            (home.path / SERVER_FILE).unlink(missing_ok=True)
            await server.stop()

    @staticmethod
    def _greet(home: Home, adopted: list[str], binding: Binding, *, is_first: bool) -> None:
        for entry in home.crawls().values():
            if entry.problem:
                print(f"larmspider server: {printable(entry.problem)}", file=sys.stderr)
        print(f"{home.path}: {len(home.crawls())} crawls")
        if adopted:
            print(f"still running: {', '.join(adopted)}")
        if is_first and binding.address != LOOPBACK:
            print(
                f"no operator can sign in yet: listening at {LOOPBACK}, after the first at"
                f" {binding.address}"
            )
        if is_first:
            print("open this address, which holds a one-time key:")

    def _source_of(self, name: str, path: Path, others: Sequence[Source]) -> Source:
        from larmspider.control.controller import RemoteController
        from larmspider.status.crawl_view import Source

        assert self.settings is not None
        settings = self.settings.copy()
        settings.set("LARM_DIR", str(path), priority="cmdline")
        found = Source(
            path,
            lambda crawl: with_crawls_settings(settings.copy(), crawl),
            RemoteController(lambda: found.directories),
            lambda path: open_crawl(path, (), settings),
            name,
            others,
            is_planned=True,
        )
        return found


_OPEN = ("/first", "/api/", "/oidc/")
"""Paths that check tokens, the one-time key or the provider by themselves."""
_SEARCH = ("/search", "/opensearch.xml")
SERVER_FILE = "server.json"


def add(home: Home, directory: Path, name: str = "") -> str:
    """Take the directory of a crawl into a home, where it lies. Raises ConfigError."""
    from larmspider.server.config.crawl_edit import new_text
    from larmspider.server.home import check_name

    directory = directory.expanduser().absolute()
    state = RunState.of(directory)
    if state.state in (State.NONE, State.EMPTY):
        raise ConfigError(state.sentence)
    if directory.is_symlink():
        raise ConfigError(f"{directory} is a symbolic link: name {directory.resolve()} itself")
    directory = directory.resolve()
    for entry in home.crawls().values():
        own = home.directory_of(entry.name, entry.crawl)
        if entry.crawl is not None and own.resolve() == directory:
            raise ConfigError(f"{directory} is the crawl {entry.name} already")
    manifest = read_manifest(directory)
    identity, settings = manifest.get("identity") or {}, manifest.get("settings") or {}
    name = name or re.sub(r"[^A-Za-z0-9_-]+", "-", directory.name).strip("-_") or "crawl"
    check_name(name, home.crawls())
    values: dict[str, object] = {"kind": "push"}
    if not settings.get("LARM_PUSH"):
        values = {"seeds": identity.get("seeds") or []}
        for key, setting in (("restrict", "LARM_RESTRICT"), ("exclude", "LARM_EXCLUDE")):
            if found := settings.get(setting):
                values[key] = found
    home.write(name, new_text(values | {"settings": {"LARM_DIR": str(directory)}}), new=True)
    return f"{name}: {home.file_of(name)} names {directory}"
