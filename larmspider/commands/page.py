"""scrapy page URL: the stored body of a page, or of a part of it, to standard output; or of an
older version (--at), its history (--versions), and what changed (--diff)."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from larmspider import options, plugin, program
from larmspider.command import LarmCommand, one_argument, print_json
from larmspider.crawl.reader import StoredPage, check_bodies
from larmspider.errors import CrawlDirError
from larmspider.extraction.processes.process import ExtractionRefused, Readers
from larmspider.formatting import counted, printable, readable, size
from larmspider.items import split_part
from larmspider.urls.normalizer import forms_from_settings

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir

_VERSIONS = "versions.versions"


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] URL"

    def short_desc(self) -> str:
        return "Print the stored body of a page (--json: its record in store.log), or its history"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--at",
            metavar="DATE",
            help="the version of that time: 2026-01-31 (its end), 2026-01-31T12:00 (UTC)",
        )
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--versions", action="store_true", help="list visits and versions")
        what.add_argument(
            "--diff",
            action="store_true",
            help="what has changed in the text since the version of --at, else the one before",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        url = one_argument(args, "URL")
        crawl = self.open_crawl()
        canonical, exact = forms_from_settings(self.settings)(url)
        page = crawl.stored(exact)
        if page is None and (page := crawl.stored(canonical)) is not None:
            print(
                f"{url} is not known to the crawl; this is {page.url}, of the same canonical form",
                file=sys.stderr,
            )
        found = None
        if opts.versions or opts.diff or opts.at is not None:
            versions = plugin.load(_VERSIONS)
            found = versions.history(
                crawl, exact if page is None else page.exact, options.clock(self.settings)()
            )
        if page is None and not (found and found.versions):
            check_bodies(crawl)
            raise CrawlDirError(
                f"{url} is not stored in {options.crawl_root(self.settings)}"
                f" (looked up as {exact}); '{program.NAME} explain URL' says why"
            )
        if found is not None and opts.versions:
            _print_history(found, as_json=opts.json)
            return
        if found is not None and opts.diff:
            self._print_changes(crawl, found, opts)
            return
        if found is not None:
            page = found.at(plugin.load(_VERSIONS).moment(opts.at))[1]
        assert page is not None
        if opts.json:
            print_json(asdict(page))
        else:
            sys.stdout.flush()
            part, file = split_part(url)[1], crawl.body_file(page)
            if file is not None and not part:
                with file.open("rb") as stored:
                    shutil.copyfileobj(stored, sys.stdout.buffer)
            else:
                body = crawl.body(page)
                sys.stdout.buffer.write(self._part(page, body, part) if part else body)
            sys.stdout.buffer.flush()

    def _print_changes(self, crawl: CrawlDir, found: Any, opts: argparse.Namespace) -> None:
        versions = plugin.load(_VERSIONS)
        assert self.settings is not None
        if opts.at is None and len(found.versions) < 2:
            raise CrawlDirError(f"{found.url} has one version")
        new = found.versions[-1]
        before = found.versions[-2].time if opts.at is None else ""
        old, old_page = found.at(versions.moment(before or opts.at))
        if new.page is None:
            raise CrawlDirError(f"{found.url}: the version of {new.time} {new.why}")
        lines, left = versions.changes(
            *(versions.text_of(crawl, page, self.settings) for page in (old_page, new.page))
        )
        if opts.json:
            print_json({"from": old.time, "to": new.time, "changes": lines, "left_out": left})
            return
        print(f"--- {old.time}\n+++ {new.time}")
        for sign, block in lines:
            print(f"{sign} {readable(block)}")
        if left:
            print(f"({left})")

    def _part(self, page: StoredPage, body: bytes, part: str) -> bytes:
        """Raises CrawlDirError for a part that is not there or cannot be read."""
        assert self.settings is not None
        with Readers.from_settings(self.settings) as readers:
            try:
                return readers.documents.first.member(page.mime, body, page.url, part)
            except ExtractionRefused as refused:
                raise CrawlDirError(f"{page.url}: {refused}") from None


def _print_history(found: Any, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    for visit in found.visits:
        print(
            f"{visit.time}  {visit.result}  {printable(_said(visit.message, visit.url))}".rstrip()
        )
    print(counted(len(found.versions), "version"))
    for version in found.versions:
        said = printable(_said(version.why, version.url))
        print(f"{version.time}  {version.status}  {size(version.size)}  {said}".rstrip())


def _said(text: str, old_url: str) -> str:
    """The text with the page's URL at that time, if it was another one."""
    return "; ".join(filter(None, (text, f"at {old_url}" if old_url not in ("", text) else "")))
