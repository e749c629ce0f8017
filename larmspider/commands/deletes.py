"""scrapy deletes: pages that are gone and wait for an operator before they leave the search."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from larmspider import options, program
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.state import RunState, State
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import counted, printable, utc
from larmspider.workdir.removals import Rule

if TYPE_CHECKING:
    from larmspider.control.deletes import DeadHost, Row
    from larmspider.crawl.reader import CrawlDir

SAMPLES = 5
REASONS = 3
"""Reasons that are shown of a list; most name a URL each where pages have moved."""


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "List missing pages that wait for approval; approve a list"

    def long_desc(self) -> str:
        return (
            "Pages wait for approval if the brake holds them, if the scope was narrowed, or if"
            " their removal has not been decided for more than 7 days (canaries, a login,"
            " robots.txt, errors). Each list has its reasons and samples. Hosts without an answer"
            " for 7 days, and hosts that have moved, are listed too. --undo fetches pages again"
            " that the crawl has removed."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--approve",
            metavar="HOST",
            help="let the pages of this list go: host:port as shown (also of a host that does not"
            " answer), or scope",
        )
        parser.add_argument(
            "--undo",
            metavar="URL|PATTERN|HOST",
            help="fetch these pages again, which the crawl had removed",
        )
        parser.add_argument(
            "-n", type=int, metavar="N", default=SAMPLES, help=f"pages a list (default {SAMPLES})"
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        # imported here: Scrapy imports the modules of all commands for each command
        from larmspider.control.deletes import (
            approve,
            remember_shown,
            shown_in,
            what_waits,
        )

        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}")
        options.as_integer("-n", opts.n, minimum=0)
        if opts.approve is not None and opts.undo is not None:
            raise ConfigError("--approve and --undo: expected one of them")
        crawl = self.open_crawl()
        if opts.undo is not None:
            done = self._undo(crawl, opts.undo)
            print_json({"done": done}) if opts.json else print(printable(done))
            return
        with crawl.frontier() as frontier:
            if frontier is None:
                raise CrawlDirError(f"the crawl in {crawl.path} has no frontier")
            assert self.settings is not None
            waits = what_waits(frontier, options.clock(self.settings)(), opts.n)
        if opts.approve is not None:
            parts = [part.path for part in crawl.parts]
            done = approve(parts, opts.approve, waits, shown_in(crawl.path).get(opts.approve))
            print_json({"done": done}) if opts.json else print(printable(done))
            return
        remember_shown(crawl.path, waits)
        if opts.json:
            shown = {name: _as_json(rows) for name, rows in waits.lists.items()}
            silent = [
                {
                    "host": o.host,
                    "since": utc(o.since),
                    "pages": o.pages,
                    "samples": list(o.samples),
                }
                for o in waits.dead
            ]
            moved = [
                {
                    "host": o.host,
                    "to": o.to,
                    "others": [*o.others],
                    "since": utc(o.since),
                    "pages": o.pages,
                    "left": o.left,
                }
                for o in waits.moves
            ]
            print_json({"lists": shown, "dead": silent, "moved": moved})
            return
        if crawl.remark:
            print(f"{program.NAME} deletes: {crawl.remark}", file=sys.stderr)
        for move in waits.moves:
            print(printable(move.report()))
        _show(waits.lists, waits.dead, opts.n)

    def _undo(self, crawl: CrawlDir, text: str) -> str:
        # imported here, 0.2 s: as above
        from larmspider.control.controller import RemoteController
        from larmspider.control.remove import find_gone, queue_now

        rule = Rule.of(text, crawl.forms)
        entries = find_gone(crawl, rule)
        if not entries:
            raise ConfigError(
                f"--undo {text}: expected pages that the crawl has removed (deleted.log in"
                f" {crawl.path}) and has not found again since; {program.NAME} remove --undo"
                " brings back pages that an operator has removed"
            )
        if RunState.of(crawl.path).state is State.RUNNING:
            controller = RemoteController(lambda: [part.path for part in crawl.parts])
            form = {"kind": rule.kind, "what": rule.what}
            return asyncio.run(controller.act("queue-again", form, ""))
        assert self.settings is not None
        queued = queue_now(crawl, entries, self.settings)
        return f"{counted(queued, 'URL')} queued again: the next refresh fetches them first"


def _show(lists: Mapping[str, Sequence[Row]], dead: Sequence[DeadHost], samples: int) -> None:
    for one in dead:
        print(
            f"{printable(one.host)}: no answer since {utc(one.since)[:10]};"
            f" {counted(one.pages, 'page')} of it stay in the search"
        )
        for url in one.samples:
            print(f"  {printable(url)}")
        if one.samples and one.pages > len(one.samples):
            print(f"  and {one.pages - len(one.samples):,} more")
        print(f"  {program.NAME} deletes --approve {printable(one.host)}")
    if not lists and not dead:
        print("Nothing pending.")
    for name, rows in lists.items():
        print(f"{printable(name)}: {counted(len(rows), 'page')} wait{'' if rows[1:] else 's'}")
        reasons = [*dict.fromkeys(row.page.why for row in rows)]
        shown = reasons if samples >= len(rows) else reasons[:REASONS]
        for why in shown:
            print(f"  {printable(why)}")
        if len(reasons) > len(shown):
            print(f"  and {counted(len(reasons) - len(shown), 'other reason')}")
        for row in rows[:samples]:
            print(f"  {utc(row.page.since)[:10]} {printable(row.page.url)}")
            print(f"             {printable(row.page.reason)}")
        if len(rows) > samples:
            print(f"  and {len(rows) - samples:,} more (-n {len(rows)} shows all)")
        print(f"  {program.NAME} deletes --approve {printable(name)}")


def _as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [
        {
            "url": row.page.url,
            "host": row.host,
            "seen": row.page.seen,
            "reason": row.page.reason,
            "since": utc(row.page.since),
            "waits_for": row.page.why,
        }
        for row in rows
    ]
