"""scrapy hosts: the hosts of a crawl, with state, queue, delay and time of the next request."""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from larmspider import options, plugin, program
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.state import RunState, State
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import counted, printable
from larmspider.learned.describe import (
    HOST_COLUMNS,
    HostRow,
    NextRequest,
    host_rows,
    next_request,
    sorted_rows,
)
from larmspider.learned.factory import politeness_from
from larmspider.status.snapshot import why_stopped

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir

_WIDTHS = "{:<32} {:<14} {:>8} {:>8} {:>7} {:>7} {:>6} {:>9} {:>9}  {}"
_TITLES = (
    "host", "state", "queued", "stored", "failed", "refused", "flight", "delay s", "next",
    "rule; reason",
)  # fmt: skip


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "List the hosts of a crawl: state, queue, delay, next time"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        keys = ", ".join(HOST_COLUMNS)
        parser.add_argument(
            "--sort",
            default="queued",
            metavar="KEY",
            help=f"one of {keys} (default queued); counts are sorted largest first",
        )
        parser.add_argument(
            "-n", type=int, metavar="N", help="only the first N hosts (default all)"
        )
        parser.add_argument(
            "--mirrors",
            action="store_true",
            help="list hosts that have the pages of another one, each as a line for"
            " LARM_HOST_RESOLVER_FILE",
        )
        parser.add_argument(
            "--accept",
            metavar="HOST",
            action="append",
            default=[],
            help="with --mirrors: add the line of this host to LARM_HOST_RESOLVER_FILE; repeatable",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}")
        if opts.sort not in HOST_COLUMNS:
            raise ConfigError(f"--sort {opts.sort}: expected one of {', '.join(HOST_COLUMNS)}")
        if opts.accept and not opts.mirrors:
            raise ConfigError(f"--accept {opts.accept[0]}: expected together with --mirrors")
        if opts.n is not None:
            options.as_integer("-n", opts.n, minimum=1)
        crawl, now = self.open_crawl(), options.clock(self.settings)()
        if opts.mirrors:
            self._mirrors(crawl, opts)
            return
        with crawl.frontier() as frontier:
            if frontier is None:
                raise CrawlDirError(f"the crawl in {crawl.path} has no frontier")
            rows = list(host_rows(frontier, politeness_from(self.settings), now))
        rows = sorted_rows(rows, opts.sort)[: opts.n]
        stopped = _why_stopped(crawl)
        if opts.json:
            print_json({"hosts": [_as_json(row, next_request(row, now, stopped)) for row in rows]})
            return
        print(_WIDTHS.format(*_TITLES))
        if crawl.remark:
            print(f"{program.NAME} hosts: {crawl.remark}", file=sys.stderr)
        for row in rows:
            print(_WIDTHS.format(*_cells(row, next_request(row, now, stopped))).rstrip())

    def _mirrors(self, crawl: CrawlDir, opts: argparse.Namespace) -> None:
        assert self.settings is not None
        mirrors = plugin.load("mirrors.mirrors")
        path = mirrors.resolver_file(self.settings, crawl)
        known = mirrors.rules_in(path)
        new = [mirror for mirror in mirrors.mirrors_in(crawl) if not mirror.is_known(known)]
        found = new[: opts.n]
        by_host = {mirror.host: mirror for mirror in found}
        for host in opts.accept:
            if host not in by_host:
                listed = ", ".join(by_host) or "none is one"
                raise ConfigError(f"--accept {host}: expected a mirror ({listed})")
        for host in opts.accept:
            mirrors.accept(by_host[host], path)
        if opts.json:
            rows = [asdict(m) | {"line": m.line, "accepted": m.host in opts.accept} for m in found]
            print_json({"mirrors": rows})
            return
        for mirror in found:
            accepted = f"added to {path}" if mirror.host in opts.accept else "proposed"
            share = f"{mirror.equal} of {counted(mirror.common, 'common page')} equal"
            print(f"{printable(mirror.line)}    {share}, {accepted}")
        if opts.accept:
            print("It takes effect in a new crawl; -a fresh=force starts this one over.")
        elif not found:
            print("No mirrors but those whose lines are accepted.")


def _why_stopped(crawl: CrawlDir) -> str:
    """Why the crawl sends nothing. A running crawl gets a request, because no file says that it is
    paused."""
    run_state = RunState.of(crawl.path)
    if run_state.state is not State.RUNNING:
        return why_stopped(run_state, None)
    # imported here, 0.2 s: Scrapy imports the modules of all commands for each command
    from larmspider.control.controller import RemoteController

    controller = RemoteController(lambda: [part.path for part in crawl.parts])
    return why_stopped(run_state, asyncio.run(controller.gauges()))


def _cells(row: HostRow, following: NextRequest) -> tuple[str, ...]:
    counts = row.counts
    numbers = (counts.queued, counts.stored, counts.failed, counts.refused, counts.leased)
    why = f"{row.gap.rule}; {row.reason}" if row.reason else row.gap.rule
    return (
        printable(row.host),
        row.state,
        *map(str, numbers),
        f"{round(row.gap.seconds, 3):g}",
        following.short,
        printable(why),
    )


def _as_json(row: HostRow, following: NextRequest) -> dict[str, Any]:
    counts = row.counts
    return {
        "host": row.host,
        "state": row.state,
        "queued": counts.queued,
        "stored": counts.stored,
        "failed": counts.failed,
        "refused": counts.refused,
        "in_flight": counts.leased,
        "delay": row.gap.seconds,
        "delay_rule": row.gap.rule,
        "next_time": following.time,
        "next": following.sentence,
        "reason": row.reason,
    }
