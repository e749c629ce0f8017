"""scrapy remove: takes pages out of the search for good, now."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from larmspider import options, program
from larmspider.command import LarmCommand, one_argument, print_json
from larmspider.control.remove import (
    Found,
    find,
    put_back_now,
    take_out_now,
)
from larmspider.crawl.compact import compact
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.state import RunState, State
from larmspider.errors import ConfigError, HttpError
from larmspider.formatting import counted, printable, size
from larmspider.index.writer import heap_bytes_of
from larmspider.workdir.removals import Removals, Rule

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

SHOWN = 20
"""Pages that a dry run names."""


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] [URL|PATTERN|HOST]"

    def short_desc(self) -> str:
        return "Remove pages from the search for good (a dry run without --yes)"

    def long_desc(self) -> str:
        return (
            "Remove a page, the pages of a host (wiki, wiki:8080, *.old.example) or all pages whose"
            " whole URL matches a regular expression from the search, at once; they are never"
            " fetched again. Without --yes the pages are only listed. Without an argument, list the"
            f" removed pages. A running crawl removes them itself. '{program.NAME} compact' deletes"
            " their stored copies."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--yes", action="store_true", help="do it")
        parser.add_argument(
            "--erase", action="store_true", help=f"with --yes: run '{program.NAME} compact' at once"
        )
        parser.add_argument(
            "--undo", action="store_true", help="fetch the pages again that this argument removed"
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.erase and not opts.yes:
            raise ConfigError("--erase: expected together with --yes")
        if not args and opts.yes:
            raise ConfigError("--yes: expected a URL, a host or a pattern to take out")
        crawl = self.open_crawl()
        removals = Removals.read(crawl.path)
        if not args and not opts.undo:
            rules = [f"{rule.kind} {rule.what}" for rule in removals.rules]
            self._print(opts, {"removed": rules}, "\n".join(rules) or "Nothing was removed")
            return
        rule = Rule.of(one_argument(args, "URL, pattern or host"), crawl.forms)
        if opts.undo:
            self._undo(opts, crawl, removals, rule)
            return
        found = find(crawl, rule)
        if not opts.yes:
            self._show(opts, found, rule)
            return
        runs = self._runs(crawl)
        if opts.erase and runs:
            raise ConfigError(
                f"--erase: the crawl runs; stop it first, or run {program.NAME} compact later"
            )
        if runs:
            Removals(removals.path, [*removals.rules, rule]).write()
            left = f"{counted(len(found.pages), 'page')} removed"
            done = self._ask(crawl, rule, left)
        else:
            pages = take_out_now(crawl, rule, self._settings)
            done = f"{counted(pages, 'page')} removed, and never fetched again"
            if opts.erase:
                heap_bytes = heap_bytes_of(self._settings)
                versions = options.integer(self._settings, "LARM_VERSIONS", minimum=0)
                freed, current = 0, Removals.read(crawl.path)
                for part in crawl.parts:
                    gone = compact(
                        part,
                        versions=versions,
                        heap_bytes=heap_bytes,
                        up_to_date=True,
                        removals=current,
                    )
                    freed += gone.before - gone.after
                done += f"; {size(freed)} given back"
        self._print(opts, {"done": done, "pages": len(found.pages)}, done)

    def _show(self, opts: argparse.Namespace, found: Found, rule: Rule) -> None:
        pages = counted(len(found.pages), "stored page")
        if found.is_everything:
            raise ConfigError(f"{rule.what}: these are all {pages}: expected --yes for that")
        others = counted(len(found.others), "further URL")
        urls = [entry.url for entry, _ in found.pages]
        lines = [f"{pages} and {others} would be removed; --yes removes them", *urls[:SHOWN]]
        if len(urls) > SHOWN:
            lines.append(f"and {len(urls) - SHOWN:,} more")
        self._print(opts, {"pages": urls, "others": len(found.others)}, "\n".join(lines))

    @property
    def _settings(self) -> BaseSettings:
        assert self.settings is not None
        return self.settings

    @staticmethod
    def _runs(crawl: CrawlDir) -> bool:
        return RunState.of(crawl.path).state is State.RUNNING

    def _ask(self, crawl: CrawlDir, rule: Rule, later: str, **more: str) -> str:
        """Let the running crawl do it, or say what it does by itself ``later``: a crawl without web
        pages gets no requests, and follows removed.txt."""
        # imported here, 0.2 s: Scrapy imports the modules of all commands for each command
        from larmspider.control.controller import NOT_REACHED, RemoteController

        controller = RemoteController(lambda: [part.path for part in crawl.parts])
        form = {"kind": rule.kind, "what": rule.what, **more}
        try:
            return asyncio.run(controller.act("remove", form, ""))
        except HttpError as refused:
            if str(refused) == NOT_REACHED:
                return (
                    f"{later} with the next checkpoints: the crawl has no web server to ask, and"
                    " reads removed.txt"
                )
            raise ConfigError(str(refused).removeprefix("Refused: ")) from None

    def _undo(
        self, opts: argparse.Namespace, crawl: CrawlDir, removals: Removals, rule: Rule
    ) -> None:
        if rule not in removals.rules:
            raise ConfigError(
                f"{rule.kind} {rule.what} was not removed: expected a line of {removals.path}"
            )
        if self._runs(crawl):
            Removals(removals.path, [one for one in removals.rules if one != rule]).write()
            done = self._ask(crawl, rule, "queued again", undo="yes")
        else:
            urls = put_back_now(crawl, rule, self._settings)
            done = f"{counted(urls, 'URL')} queued again: the next run fetches them"
        self._print(opts, {"done": done}, done)

    def _print(self, opts: argparse.Namespace, found: dict[str, object], text: str) -> None:
        if opts.json:
            print_json(found)
        else:
            print("\n".join(map(printable, text.split("\n"))))
