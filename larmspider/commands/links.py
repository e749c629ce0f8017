"""scrapy links: broken links with their pages, URLs of one page, or the most linked pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.log_index.builder import bring_up_to_date
from larmspider.crawl.log_index.index import MAX_REFERRERS, IndexBusyError
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import counted, doing, printable
from larmspider.reports.link_faults import Fragments, link_faults
from larmspider.reports.links import (
    ALIAS_COLUMNS,
    BROKEN_COLUMNS,
    BrokenLink,
    aliases,
    broken_links,
    broken_rows,
    most_linked,
    rules_by_host,
    to_csv,
)

if TYPE_CHECKING:
    from larmspider.crawl.log_index.index import LogIndex

_MOST = 1_000
FEW_PAGES = 1_000
"""In crawls of up to this number of stored pages, fragments are checked by default: 1 s."""


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "List broken links, duplicate URLs, or the most linked pages"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--broken", action="store_true", help="links whose last fetch failed or gave 4xx or 5xx"
        )
        parser.add_argument(
            "--fragments",
            action="store_true",
            help="with --broken: look for links to places that their page lacks; reads all stored"
            f" pages twice (without it in crawls of up to {FEW_PAGES:,} pages)",
        )
        parser.add_argument(
            "--aliases",
            action="store_true",
            help="URLs that are not fetched because another URL gives the same page",
        )
        parser.add_argument("--csv", action="store_true", help="print CSV, one row a page")
        parser.add_argument(
            "-n",
            type=int,
            metavar="N",
            help="only the first N targets (default 20; with --broken all)",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}")
        if opts.csv and opts.json:
            raise ConfigError("--csv and --json exclude each other")
        if opts.n is not None:
            options.as_integer("-n", opts.n, minimum=1)
        if opts.broken and opts.aliases:
            raise ConfigError("--broken and --aliases exclude each other")
        if opts.fragments and not opts.broken:
            raise ConfigError("--fragments belongs to --broken")
        crawl = self.open_crawl()
        if opts.aliases:
            self._aliases(opts, crawl)
            return
        with _index(crawl) as index:
            if opts.broken:
                rows = index.broken()[: opts.n]
                links = broken_links(crawl.logs, index, rows, MAX_REFERRERS)
                links += [*link_faults(crawl), *_fragments(opts, crawl)]
                self._broken(opts, links[: opts.n])
            else:
                self._most(opts, crawl, index)

    def _aliases(self, opts: argparse.Namespace, crawl: CrawlDir) -> None:
        with crawl.frontier() as frontier:
            if frontier is None:
                raise CrawlDirError(f"the crawl in {crawl.path} has no frontier of larmspider")
            found = list(islice(aliases(frontier), opts.n))
            rules = rules_by_host(frontier)
        beyond = sum(
            max((record.beyond for record in host.rules.values()), default=0)
            for host in rules.values()
        )
        if opts.csv:
            rows = [
                (one.url, one.same_as, " ".join(one.rules), one.held, one.depth, one.from_page)
                for one in found
            ]
            sys.stdout.write(to_csv(ALIAS_COLUMNS, rows))
        elif opts.json:
            hosts = {host: list(one.in_words()) for host, one in rules.items()}
            print_json({"aliases": list(map(asdict, found)), "hosts": hosts, "beyond": beyond})
        else:
            for one in found:
                what = "held, perhaps the same page as" if one.held else "same page as"
                print(f"{printable(one.url)}\n         {what} {printable(one.same_as)}, {one.why}")
            for host, one_host in rules.items():
                print(f"{host:<24} {printable('; '.join(one_host.in_words()) or 'nothing proven')}")
            more = f", and {beyond:,} more that are only counted" if beyond else ""
            print(f"{counted(len(found), 'merged URL')}{more}")

    def _broken(self, opts: argparse.Namespace, links: Sequence[BrokenLink]) -> None:
        if opts.csv:
            sys.stdout.write(to_csv(BROKEN_COLUMNS, broken_rows(links)))
        elif opts.json:
            print_json({"broken": list(map(asdict, links))})
        else:
            for link in links:
                print(f"{link.result:<8} {printable(link.url)}  {printable(link.message)}".rstrip())
                for carrier in link.carriers:
                    text = f'  "{printable(carrier.anchor)}"' if carrier.anchor else ""
                    print(f"         on {printable(carrier.page)}{text}")
                if link.pages > len(link.carriers):
                    print(f"         on {counted(link.pages - len(link.carriers), 'page')} more")
            print(counted(len(links), "broken target"))

    def _most(self, opts: argparse.Namespace, crawl: CrawlDir, index: LogIndex) -> None:
        many = min(opts.n or 20, _MOST)
        pages, hosts = most_linked(crawl.logs, index, 0, many), index.most_linked_hosts()[:many]
        if opts.csv:
            rows = [(page.pages, page.url, page.anchor) for page in pages]
            sys.stdout.write(to_csv(("pages", "url", "anchor"), rows))
        elif opts.json:
            state = index.state()
            found = [host._asdict() for host in hosts]
            totals = {name: state[name] for name in ("links", "pairs")}
            print_json({**totals, "pages": list(map(asdict, pages)), "hosts": found})
        else:
            print(f"{'pages':>9}  most linked page")
            for page in pages:
                print(f"{page.pages:>9,}  {printable(page.url)}  {printable(page.anchor)}".rstrip())
            print(f"\n{'links':>9} {'from others':>12}  most linked host")
            for host in hosts:
                print(f"{host.links:>9,} {host.from_others:>12,}  {printable(host.name)}")


@contextmanager
def _index(crawl: CrawlDir) -> Iterator[LogIndex]:
    """The index of the logs, as of the crawl's last checkpoint. Raises CrawlDirError."""
    if not crawl.logs.size("links.log"):
        raise CrawlDirError(f"the crawl in {crawl.path} has no links.log, or an empty one")
    try:
        with doing("Counting links") as progress:
            bring_up_to_date(crawl, progress)
    except IndexBusyError:
        print("Another process is counting the links; these are its last results",
              file=sys.stderr)  # fmt: skip
    with crawl.logs.index() as index:
        if index is None:
            raise CrawlDirError(
                f"the links of the crawl in {crawl.path} are not counted yet; try again later"
            )
        yield index


def _fragments(opts: argparse.Namespace, crawl: CrawlDir) -> list[BrokenLink]:
    """The links to places that their page lacks."""
    with crawl.frontier() as frontier:
        stored = FEW_PAGES + 1 if frontier is None else frontier.counts().stored
    if stored > FEW_PAGES and not opts.fragments:
        print("Fragments are not checked: --fragments reads all pages for them", file=sys.stderr)
        return []
    with doing(f"Reading the pages of {crawl.path}") as say:
        fragments = Fragments(crawl, lambda done: say(done, 2 * stored))
        found = fragments.missing()
    if fragments.unread:
        print(f"{counted(fragments.unread, 'page')} not read for fragments", file=sys.stderr)
    if fragments.beyond:
        print(f"{counted(fragments.beyond, 'fragment')} not checked: too many", file=sys.stderr)
    return found
