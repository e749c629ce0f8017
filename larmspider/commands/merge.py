"""scrapy merge: makes one directory from the directories of many workers."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from larmspider import options
from larmspider.command import LarmCommand, one_argument, print_json
from larmspider.crawl.worker_dirs import CrawlOfWorkers
from larmspider.errors import ConfigError
from larmspider.formatting import counted, doing
from larmspider.index.writer import heap_bytes_of
from larmspider.workers.merge import merge

_EACH = 1 << 20  # bytes between two lines of progress


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] DIR"

    def short_desc(self) -> str:
        return "Merge the directories of many workers into one"

    def long_desc(self) -> str:
        return (
            "Merge the workers' directories in LARM_DIR and --shard into one directory DIR: logs,"
            " page files and search index. All commands that read a crawl can read DIR; no crawl"
            " can continue there. The workers' directories stay unchanged, and no worker may run"
            " meanwhile."
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        target = Path(one_argument(args, "directory to make")).expanduser().absolute()
        crawl = self.open_crawl()
        if not isinstance(crawl, CrawlOfWorkers):
            raise ConfigError(f"LARM_DIR={crawl.path}: expected the crawl of many workers")
        last = 0
        with doing(f"Merging {counted(len(crawl.workers), 'directory', 'directories')}") as say:

            def progress(done: int, whole: int) -> None:
                nonlocal last
                if done - last >= _EACH:
                    last = done
                    say(done, whole)

            made = merge(
                crawl,
                target,
                page_file_bytes=options.integer(self.settings, "LARM_PAGEFILE_BYTES", minimum=1),
                heap_bytes=heap_bytes_of(self.settings),
                progress=progress,
                restricted=crawl.restricted(self.settings),
            )
        if opts.json:
            print_json({"directory": str(target), **asdict(made)})
            return
        print(
            f"{target}: {counted(made.pages, 'page')}, {made.indexed:,} in the search index,"
            f" {counted(made.fetches, 'fetch', 'fetches')}, {counted(made.links, 'link')},"
            f" of {counted(len(crawl.workers), 'directory', 'directories')}"
        )
