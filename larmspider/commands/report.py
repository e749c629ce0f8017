"""scrapy report: a crawl on one page, as text, JSON or HTML."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from larmspider import program
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.log_index.builder import bring_up_to_date
from larmspider.crawl.log_index.index import IndexBusyError
from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.formatting import count, counted, doing, printable, rate, size
from larmspider.frontier.factory import politeness_from
from larmspider.reports.crawl_report import CrawlReport, crawl_report
from larmspider.reports.documents import REFUSED


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Report on a crawl: totals, hosts, refusals, broken links, duplicates (--html FILE)"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--html", metavar="FILE", help="write a self-contained web page")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}")
        if opts.html is not None and opts.json:
            raise ConfigError("--html and --json exclude each other")
        crawl = self.open_crawl()
        try:
            with doing("Counting links") as progress:
                bring_up_to_date(crawl, progress)
        except IndexBusyError as error:
            print(f"{error}; the report shows the counts so far", file=sys.stderr)
        with doing("Making the report"):
            report = crawl_report(crawl, self.settings, politeness_from(self.settings))
        if opts.json:
            print_json(_as_json(report))
        elif opts.html is not None:
            # imported here: Scrapy imports the modules of all commands for each command
            from larmspider.web.render import report_page

            _write(Path(opts.html), report_page(report, str(crawl.path)))
            print(f"report of {crawl.path} written to {opts.html}")
        else:
            _print(report)


def _write(path: Path, page: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        replace_file(path, page.encode("utf-8", "replace"), draft=draft, synced=False)
    except OSError as error:
        raise ConfigError(f"--html {path} cannot be written: {error.strerror or error}") from None


def _print(report: CrawlReport) -> None:
    """The most important parts; --html and --json have all."""
    rows = [("crawl", report.condition.sentence), ("urls", str(report.counts))]
    documents = report.documents
    rows.append(("stored", f"{counted(documents.count, 'document')}, {size(documents.bytes)}"))
    if documents.of_failed:
        failed = counted(documents.of_failed, "last answer")
        rows.append(("failed", f"{failed} in the page files, {size(documents.of_failed_bytes)}"))
    if documents.of_old:
        old = counted(documents.of_old, "old version")
        rows.append(("old", f"{old}, {size(documents.of_old_bytes)} ({program.NAME} compact)"))
    rows += [
        ("result", f"{word}: {counted(fetches.times, 'fetch', 'fetches')}")
        for word, fetches in report.results
    ]
    rows += [
        (
            "refused by" if row.rule == REFUSED else "rejected by",
            f"{row.rule}: {counted(row.targets, 'target')}",
        )
        for row in report.refusals
    ]
    rows += [
        ("unread", f"{outcome}: {counted(number, 'document')}")
        for outcome, number in report.unread.items()
    ]
    rows += [("empty", f"{host} without JavaScript") for host in report.scripts]
    rows += [("little", sentence) for sentence in report.shortfalls]
    if report.freshness.is_known:
        fresh = report.freshness
        rows += [("fresh", sentence) for sentence in fresh.sentences]
        seen = ", ".join(f"{count(number)} {word}" for word, number in report.visits.items())
        requests = counted(report.requests, "request")
        rows.append(("visits", f"{seen}; {requests}, {count(report.saved)} saved"))
        rows += [("requests", report.spent)] if report.spent else []
        due = (f"{count(number)} {word}" for word, number in fresh.due.items())
        rows.append(("due", ", ".join(due)))
        rows += [
            ("changes", f"{host}: {rate(number)} a day")
            for host, number in list(fresh.changes.items())[:5]
        ]
    rows += [
        ("slow host", f"{slow.host}: {slow.mean:.3g} s on average of {count(slow.fetches)}")
        for slow in report.slowest[:5]
    ]
    rows += [
        ("broken", f"{link.result} {link.url}, on {counted(link.pages, 'page')}")
        for link in report.broken[:20]
    ]
    rows.append(("broken", f"{counted(report.broken_in_all, 'target')} in all"))
    same = report.duplicates.urls
    have = "has" if same == 1 else "have"
    rows.append(("same", f"{counted(same, 'page')} {have} the content of another page"))
    for label, text in rows:
        print(f"{label:<12} {printable(text)}")


def _as_json(value: Any) -> Any:
    """Plain data for JSON: infinity is null, a host's packed rules are left out."""
    if isinstance(value, CrawlReport):
        value = asdict(value)
        for row in value["hosts"]:
            del row["record"], row["rule"]
    if isinstance(value, dict):
        return {str(name): _as_json(inner) for name, inner in value.items()}
    if hasattr(value, "_asdict"):
        return _as_json(value._asdict())
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
