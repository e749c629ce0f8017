"""scrapy traps: the classes of URLs that are held as traps, with samples and a rule for each."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from larmspider import options, program
from larmspider.command import LarmCommand, print_json
from larmspider.errors import ConfigError
from larmspider.formatting import counted, printable

if TYPE_CHECKING:
    from larmspider.reports.traps import Trap


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "List the URLs that are held as traps, by class; accept or reject a class"

    def long_desc(self) -> str:
        return (
            "List each class of URLs without new pages: its last pages and the pages that they"
            " repeat, the number of held URLs, and a rule for LARM_KNOWN_PATHS_FILE that matches"
            " all URLs of the class, and no other fetched URL."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--accept",
            metavar="CLASS",
            help="add the rule of this class to LARM_KNOWN_PATHS_FILE",
        )
        parser.add_argument(
            "--reject",
            metavar="CLASS",
            help="this class is not a trap: this crawl fetches its URLs",
        )
        parser.add_argument(
            "-n", type=int, metavar="N", help="only the N classes with most held URLs (default all)"
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        # imported here: Scrapy imports the modules of all commands for each command
        from larmspider.reports.traps import accept, reject, rules_file, traps_in

        assert self.settings is not None
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}")
        if opts.n is not None:
            options.as_integer("-n", opts.n, minimum=1)
        crawl = self.open_crawl()
        traps = traps_in(crawl)
        done = ""
        if opts.accept is not None:
            trap = _named("--accept", opts.accept, traps)
            path, is_new = accept(trap, rules_file(self.settings, crawl))
            did = "added to" if is_new else "is already in"
            done = f"{opts.accept}: {did} {path}. It counts for a crawl that begins."
        if opts.reject is not None:
            trap = _named("--reject", opts.reject, traps)
            reject(trap, crawl)
            done = f"{trap.name}: not a trap. {counted(trap.held, 'held URL')} will be fetched."
        if done:
            print_json({"done": done}) if opts.json else print(printable(done))
        elif opts.json:
            print_json({"traps": [asdict(trap) for trap in traps[: opts.n]]})
        else:
            if crawl.remark:
                print(f"{program.NAME} traps: {crawl.remark}", file=sys.stderr)
            for line in [line for trap in traps[: opts.n] for line in _lines(trap)]:
                print(printable(line))
            if not traps:
                print("No URL is held as a trap.")


def _named(option: str, name: str, traps: list[Trap]) -> Trap:
    for trap in traps:
        if trap.name == name:
            return trap
    names = ", ".join(trap.name for trap in traps) or "none is held"
    raise ConfigError(f"{option} {name}: expected a class that is held: {names}")


def _lines(trap: Trap) -> list[str]:
    lines = [
        trap.name,
        f"  {trap.why}; {counted(trap.fetched, 'page')} fetched, {counted(trap.held, 'URL')} held",
    ]
    for sample in trap.samples:
        repeats = f"  {sample.repeats}" if sample.repeats else ""
        lines.append(f"  {trap.shown:<8} {sample.url}{repeats}")
    if trap.drop:
        lines.append(f"  {trap.drop} changes nothing: LARM_SESSION_IDS may name it")
    return [*lines, f"  rule     {trap.line or trap.no_line}"]
