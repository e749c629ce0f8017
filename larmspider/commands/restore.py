"""larmspider restore FILE DIR: unpacks a backup into a new folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy.exceptions import UsageError

from larmspider import program
from larmspider.command import LarmCommand, print_json, progress
from larmspider.crawl.backup import restore
from larmspider.formatting import counted, printable, size


class Command(LarmCommand):
    of_a_crawl = False

    def syntax(self) -> str:
        return "[options] FILE DIR"

    def short_desc(self) -> str:
        return "Unpack a backup into a new folder"

    def long_desc(self) -> str:
        return (
            "Unpack FILE, which larmspider backup has made, into DIR, which is new or empty. DIR"
            " gets its name once everything is unpacked and verified (docs/backup.md)."
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 2:
            raise UsageError(f"expected FILE and DIR, got {len(args)}", print_help=False)
        file, directory = (Path(arg).expanduser().absolute() for arg in args)
        with progress(f"Restoring {directory}") as say:
            found = restore(file, directory, say)
        if opts.json:
            print_json(
                {
                    "directory": str(directory),
                    "kind": found.kind,
                    "made": found.made,
                    "larmspider": found.version,
                    "files": found.files,
                    "bytes": found.bytes,
                }
            )
            return
        print(
            f"{printable(str(directory))}: {counted(found.files, 'file')}, {size(found.bytes)},"
            f" as of {printable(found.made)} (larmspider {printable(found.version)})"
        )
        if found.kind == "home":
            print(f"Copy its secrets, then: {program.NAME} server --home {directory}")
