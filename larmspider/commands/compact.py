"""scrapy compact: frees the space of old versions and of removed pages."""

from __future__ import annotations

import argparse

from larmspider import options, program
from larmspider.command import LarmCommand, print_json
from larmspider.errors import ConfigError
from larmspider.formatting import doing, size
from larmspider.index.writer import heap_bytes_of
from larmspider.workdir.removals import Removals


class Command(LarmCommand):
    def short_desc(self) -> str:
        return "Free the space of old versions and of removed pages"

    def long_desc(self) -> str:
        return (
            "Free the space of old versions of pages, and of removed pages, in page files, logs and"
            " search index. Pages that the crawl removed stay for 30 days, for"
            f" '{program.NAME} page URL --at DATE'. No crawl may run there meanwhile. The command"
            " needs free space for the files that it rewrites."
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        from larmspider.crawl.compact import compact  # 40 ms, which each command would take

        assert self.settings is not None
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}: expected --dir DIR, or none")
        heap_bytes = heap_bytes_of(self.settings)
        versions = options.integer(self.settings, "LARM_VERSIONS", minimum=0)
        before = after = 0
        crawl = self.open_crawl()
        removals = Removals.read(crawl.path)
        for part in crawl.parts:
            with doing(f"Compacting {part.path}"):
                freed = compact(
                    part,
                    versions=versions,
                    heap_bytes=heap_bytes,
                    removals=removals,
                    now=options.clock(self.settings)(),
                )
            before, after = before + freed.before, after + freed.after
        if opts.json:
            print_json({"before": before, "after": after})
        else:
            print(f"{size(before)} before, {size(after)} now")
