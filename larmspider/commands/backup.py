"""larmspider backup DIR FILE: a crawl, running or not, or the home of a server, as one tar file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from scrapy.exceptions import UsageError

from larmspider.command import LarmCommand, print_json, progress
from larmspider.crawl.backup import BackupFile, add_crawl, check_target, size_of
from larmspider.formatting import counted, duration, printable, size


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] DIR FILE"

    def short_desc(self) -> str:
        return "Copy a crawl, or the home of a server, into one file"

    def long_desc(self) -> str:
        return (
            "Copy the directory of a crawl, or the home of a server, into FILE, which ends in .tar"
            " or .tar.zst (compressed). Crawls and server may run meanwhile. Secrets and tokens"
            " are left out, but hashes of the server's tokens are in it. larmspider restore FILE"
            " DIR unpacks it (docs/backup.md)."
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 2:
            raise UsageError(f"expected DIR and FILE, got {len(args)}", print_help=False)
        backup(Path(args[0]), Path(args[1]), as_json=opts.json)


def backup(source: Path, file: Path, *, as_json: bool) -> None:
    """Make a backup and say what it has. Raises LarmspiderError."""
    # imported here: other commands need no server
    from larmspider.server.backup import add_home, expected_bytes, is_home
    from larmspider.server.home import Home

    source, file = source.expanduser().absolute(), file.expanduser().absolute()
    check_target(file, source)
    began, crawls = time.monotonic(), 1
    with progress(f"Copying {source}") as say:
        if is_home(source):
            home = Home.open(source, make=False)
            with BackupFile(file, "home", say, expected_bytes(home)) as out:
                crawls = add_home(out, home)
        else:
            with BackupFile(file, "crawl", say, size_of(source)) as out:
                add_crawl(out, source)
    length = file.stat().st_size
    if as_json:
        print_json(
            {
                "file": str(file),
                "crawls": crawls,
                "files": out.files,
                "bytes": out.bytes,
                "file_bytes": length,
                "notes": out.notes,
            }
        )
        return
    for note in out.notes:
        print(printable(note))
    print(
        f"{printable(str(file))}: {counted(crawls, 'crawl')}, {counted(out.files, 'file')},"
        f" {size(out.bytes)} in {size(length)}, {duration(time.monotonic() - began)}"
    )
