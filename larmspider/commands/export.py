"""scrapy export WHAT FILE: pages, text, passages, links or hosts of a crawl as one file; its scope
as a folder of files."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from larmspider import plugin
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.api import Crawl
from larmspider.errors import ConfigError
from larmspider.formatting import counted, doing, printable, size


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] pages|text|passages|links|hosts|removed FILE, or scope FOLDER"

    def short_desc(self) -> str:
        return "Write a crawl's pages, text, passages, links or hosts into a file, or its scope"

    def long_desc(self) -> str:
        return (
            "The ending of FILE sets the format: .jsonl, .csv or .parquet; pages also .warc.gz,"
            " hosts also .graphml, passages only .jsonl. scope writes seeds and URL filters for"
            " Apache Nutch and StormCrawler. The crawl may run meanwhile (docs/export.md)."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--host", default="", help="only pages of this host: wiki, wiki:8080, *.example"
        )
        parser.add_argument(
            "--since", metavar="DATE", help="only pages fetched since 2026-01-31 or ...T12:00 (UTC)"
        )
        parser.add_argument("--bodies", action="store_true", help="bodies of pages, in base64")
        parser.add_argument("--force", action="store_true", help="replace FILE if it exists")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 2:
            raise ConfigError(f"expected what to export and a file: {self.syntax()}")
        what, path = args[0], Path(args[1])
        if what == "scope":
            self._scope(path, opts)
            return
        exporting = plugin.load("export.export")
        exporting.format_of(what, path.name)
        with closing(Crawl(self.open_crawl())) as crawl, doing(f"Exporting {what}") as progress:
            done = exporting.export(
                crawl,
                what,
                path,
                host=opts.host,
                since=opts.since,
                bodies=opts.bodies,
                force=opts.force,
                progress=progress,
            )
        if opts.json:
            print_json({"what": what, "file": str(path), **done._asdict()})
            return
        unit = {"links": "link", "hosts": "pair", "removed": "record"}.get(what, "page")
        rows = counted(done.rows, unit) + (" of hosts" if what == "hosts" else "")
        print(f"{rows} in {printable(str(path))}, {size(done.bytes)}")

    def _scope(self, folder: Path, opts: argparse.Namespace) -> None:
        if opts.host or opts.since or opts.bodies:
            raise ConfigError("scope: expected no --host, --since and --bodies")
        exporting = plugin.load("export.scope")
        done = exporting.export_scope(self.open_crawl(), folder, force=opts.force)
        if opts.json:
            print_json({"what": "scope", "folder": str(folder), **done._asdict()})
            return
        files = ", ".join(done.files)
        print(f"{counted(done.seeds, 'seed')} and the scope in {printable(str(folder))}: {files}")
        for seed in done.left:
            print(f"left out, no web page: {printable(seed)}")
